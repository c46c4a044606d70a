package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

const (
	// watched is the number of objects that are updated in turn.
	watched = 100
	// sent marks the time at which an update was sent, in nanoseconds of 19 digits.
	sent = "sent-ns:"
	// watchTimeout bounds the delivery of all events.
	watchTimeout = time.Minute
)

// A receiver watches until ctx ends. It calls seen with the time at which each
// update was sent, and opened once.
type receiver func(ctx context.Context, c *kubernetes.Clientset, revision string, opened func(), seen func(sent int64)) error

// watch has many watchers see every update.
func (a *api) watch(ctx context.Context) error {
	if err := a.makeWatched(ctx); err != nil {
		return err
	}
	if err := a.deliver(ctx, "decoded", "32000/s", receive); err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	if err := a.deliver(ctx, "raw", "41000/s", receiveRaw); err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	return nil
}

// makeWatched makes the objects that are updated.
func (a *api) makeWatched(ctx context.Context) error {
	_, err := a.share(ctx, watched, func(ctx context.Context, maps typedcorev1.ConfigMapInterface, i int) error {
		_, err := maps.Create(ctx, configMap(watchedName(i), payload), metav1.CreateOptions{})
		return err
	})
	return err
}

func watchedName(i int) string { return fmt.Sprintf("watched-%02d", i%watched) }

// deliver measures how fast events reach all watchers.
func (a *api) deliver(ctx context.Context, kind, upstream string, r receiver) error {
	l, err := a.cluster.client.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	watchCtx, cancel := context.WithCancelCause(ctx)
	want := int64(a.watches) * int64(a.updates)
	var got atomic.Int64
	delivered := make(chan struct{})
	latencies := make([][]time.Duration, a.watches)
	var opened, ended sync.WaitGroup
	opened.Add(a.watches)
	defer ended.Wait()
	defer cancel(nil)
	for i := range a.watches {
		c, err := a.cluster.newClient()
		if err != nil {
			return err
		}
		latencies[i] = make([]time.Duration, 0, a.updates)
		once := sync.OnceFunc(opened.Done)
		ended.Go(func() {
			defer once()
			err := r(watchCtx, c, l.ResourceVersion, once, func(sent int64) {
				latencies[i] = append(latencies[i], time.Duration(time.Now().UnixNano()-sent))
				if got.Add(1) == want {
					close(delivered)
				}
			})
			if watchCtx.Err() == nil {
				cancel(errors.Join(errors.New("a watch ended early"), err))
			}
		})
	}
	opened.Wait()
	before, err := a.cluster.usage()
	if err != nil {
		return err
	}
	begin := time.Now()
	if _, err := a.share(watchCtx, a.updates, func(ctx context.Context, maps typedcorev1.ConfigMapInterface, i int) error {
		_, err := maps.Update(ctx, configMap(watchedName(i), sent+strconv.FormatInt(time.Now().UnixNano(), 10)), metav1.UpdateOptions{})
		return err
	}); err != nil {
		return err
	}
	updated := time.Since(begin)
	select {
	case <-delivered:
	case <-time.After(watchTimeout):
		return fmt.Errorf("%d of %d events came within %v", got.Load(), want, watchTimeout)
	case <-watchCtx.Done():
		return context.Cause(watchCtx)
	}
	took := time.Since(begin)
	after, err := a.cluster.usage()
	if err != nil {
		return err
	}
	a.results.add(figure{
		Name: fmt.Sprintf("%d watchers, %d updates, %s", a.watches, a.updates, kind), Unit: "events/s", Value: float64(want) / took.Seconds(), Upstream: upstream,
		Note: fmt.Sprintf("%d µs of CPU per event, of peri; updates %.0f/s", (after.CPU-before.CPU).Microseconds()/want, float64(a.updates)/updated.Seconds()),
	})
	var all []time.Duration
	for _, l := range latencies {
		all = append(all, l...)
	}
	a.results.durations(fmt.Sprintf("%d watchers, %s, delay of an event", a.watches, kind), all, "", "")
	return nil
}

// receive decodes every event, as client programs do.
func receive(ctx context.Context, c *kubernetes.Clientset, revision string, opened func(), seen func(int64)) error {
	w, err := c.CoreV1().ConfigMaps(namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: revision})
	if err != nil {
		return err
	}
	defer w.Stop()
	opened()
	for e := range w.ResultChan() {
		cm, ok := e.Object.(*corev1.ConfigMap)
		if !ok {
			return apierrors.FromObject(e.Object)
		}
		if s, ok := strings.CutPrefix(cm.Data["k"], sent); ok {
			t, err := strconv.ParseInt(s, 10, 64)
			if err != nil {
				return err
			}
			seen(t)
		}
	}
	return nil
}

// receiveRaw looks for the time in the bytes, so that it is the server that is measured.
func receiveRaw(ctx context.Context, c *kubernetes.Clientset, revision string, opened func(), seen func(int64)) error {
	body, err := c.CoreV1().RESTClient().Get().Namespace(namespace).Resource("configmaps").
		Param("watch", "1").Param("resourceVersion", revision).Stream(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	opened()
	var frame []byte
	for {
		var size [4]byte // big-endian, before each frame
		if _, err := io.ReadFull(body, size[:]); err != nil {
			return err
		}
		n := int(binary.BigEndian.Uint32(size[:]))
		if cap(frame) < n {
			frame = make([]byte, n)
		}
		frame = frame[:n]
		if _, err := io.ReadFull(body, frame); err != nil {
			return err
		}
		if _, after, ok := bytes.Cut(frame, []byte(sent)); ok && len(after) >= 19 {
			t, err := strconv.ParseInt(string(after[:19]), 10, 64)
			if err != nil {
				return err
			}
			seen(t)
		}
	}
}
