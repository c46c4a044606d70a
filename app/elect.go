package app

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/periplus/periplus/base"
)

// How leadership is kept, as upstream.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// elected runs lead while this process holds the lease of that name in kube-system,
// again each time that it gets it, until ctx ends or lead fails.
func elected(ctx context.Context, c kubernetes.Interface, name, node string, log *slog.Logger, lead func(context.Context) error) error {
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, metav1.NamespaceSystem, name,
		c.CoreV1(), c.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: node + "_" + string(uuid.NewUUID())})
	if err != nil {
		return fmt.Errorf("lease %s: %w", name, err)
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	for ctx.Err() == nil {
		t := &turn{ended: make(chan struct{})}
		term, over := context.WithCancel(ctx)
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod, ReleaseOnCancel: true, Name: name,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(leading context.Context) {
					if !t.begin() {
						return
					}
					defer close(t.ended)
					defer over()
					log.Info("leading", base.KeyName, name)
					if err := lead(leading); err != nil && leading.Err() == nil {
						fail(err)
					}
				},
				OnStoppedLeading: func() {
					if t.begun() {
						log.Info("not leading any more", base.KeyName, name)
					}
				},
			},
		})
		if err != nil {
			over()
			return fmt.Errorf("lease %s: %w", name, err)
		}
		elector.Run(term)
		over()
		if t.settle(ctx.Err() != nil) {
			<-t.ended
		}
	}
	if cause := context.Cause(ctx); cause != context.Canceled { //nolint:errorlint // the plain end of ctx
		return cause
	}
	return nil
}

// A turn is one time of leading. The elector starts it in a goroutine that it does
// not wait for.
type turn struct {
	ended chan struct{} // closed after a turn that has begun

	mu     sync.Mutex // guards what follows
	led    bool
	closed bool // it must not begin any more
}

func (t *turn) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.led = !t.closed
	return t.led
}

func (t *turn) begun() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.led
}

// settle says whether a turn has begun or surely will. The elector returns before
// it has led only when it is told to stop.
func (t *turn) settle(stopping bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = stopping && !t.led
	return !t.closed
}
