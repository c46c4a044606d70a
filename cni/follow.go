package cni

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/periplus/periplus/base"
)

// A failed Sync is tried again after retryMin, doubled up to retryMax.
const (
	retryMin = time.Second
	retryMax = time.Minute
)

// Follow keeps the routes of node self as the nodes say, until ctx ends. The
// caller starts the informer. synced, if not nil, is called once, when the routes to
// all nodes that there are have been made.
func Follow(ctx context.Context, nodes coreinformers.NodeInformer, self string, b Backbone, synced func(), log *slog.Logger) error {
	wake := make(chan struct{}, 1)
	changed := func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
	registration, err := nodes.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { changed() },
		UpdateFunc: func(a, b any) {
			// Heartbeats are most of what happens to nodes.
			old, ok1 := a.(*corev1.Node)
			now, ok2 := b.(*corev1.Node)
			if ok1 && ok2 {
				x, had := PeerOf(old)
				if y, has := PeerOf(now); had == has && x.Equal(y) {
					return
				}
			}
			changed()
		},
		DeleteFunc: func(any) { changed() },
	})
	if err != nil {
		return fmt.Errorf("watch nodes: %w", err)
	}
	defer func() { _ = nodes.Informer().RemoveEventHandler(registration) }()
	select {
	case <-registration.HasSyncedChecker().Done():
	case <-ctx.Done():
		return nil
	}
	changed()
	var (
		retry <-chan time.Time
		pause = retryMin
		last  []Peer
		clean bool // last is in the kernel
	)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-wake:
		case <-retry:
		}
		retry = nil
		list, err := nodes.Lister().List(labels.Everything())
		if err != nil {
			return err
		}
		own, others, ok := PeersOf(list, self)
		if !ok {
			continue // the node registers itself, which is an event
		}
		now := append([]Peer{own}, others...)
		if clean && slices.EqualFunc(now, last, Peer.Equal) {
			continue
		}
		err = b.Sync(own, others)
		last, clean = now, err == nil
		if err != nil {
			log.Warn("some nodes cannot be reached by pods; will try again", base.KeyError, err, "after", pause)
			retry, pause = time.After(pause), min(2*pause, retryMax)
			continue
		}
		pause = retryMin
		if synced != nil {
			synced()
			synced = nil
		}
	}
}
