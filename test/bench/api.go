package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// lists is how often everything is listed.
const lists = 10

// payload is the data of every ConfigMap.
var payload = strings.Repeat("x", 64)

// An api runs operations against the API server from many clients.
type api struct {
	*bench
	cluster *cluster
	clients []*kubernetes.Clientset
}

// An operation does the i-th of many.
type operation func(ctx context.Context, maps typedcorev1.ConfigMapInterface, i int) error

// measureAPI does each verb as fast as possible with ConfigMaps.
func measureAPI(ctx context.Context, b *bench) error {
	c, err := b.open(ctx)
	if err != nil {
		return err
	}
	a := &api{bench: b, cluster: c}
	if err := a.connect(ctx); err != nil {
		return err
	}
	phases := []struct {
		name, upstream string
		do             operation
	}{
		{"create", "526/s, p99 65 ms", func(ctx context.Context, maps typedcorev1.ConfigMapInterface, i int) error {
			_, err := maps.Create(ctx, configMap(name(i), payload), metav1.CreateOptions{})
			return err
		}},
		{"get", "943/s", func(ctx context.Context, maps typedcorev1.ConfigMapInterface, _ int) error {
			_, err := maps.Get(ctx, name(rand.IntN(b.objects)), metav1.GetOptions{}) //nolint:gosec // not a secret
			return err
		}},
		{"update", "466/s", func(ctx context.Context, maps typedcorev1.ConfigMapInterface, i int) error {
			_, err := maps.Update(ctx, configMap(name(i), payload+"!"), metav1.UpdateOptions{})
			return err
		}},
	}
	for _, p := range phases {
		if err := a.throughput(ctx, p.name, p.upstream, b.objects, p.do); err != nil {
			return err
		}
	}
	if err := a.list(ctx); err != nil {
		return err
	}
	if err := a.watch(ctx); err != nil {
		return err
	}
	return a.throughput(ctx, "delete", "409/s", b.objects, func(ctx context.Context, maps typedcorev1.ConfigMapInterface, i int) error {
		return maps.Delete(ctx, name(i), metav1.DeleteOptions{})
	})
}

func name(i int) string { return fmt.Sprintf("cm-%05d", i) }

func configMap(name, data string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"bench": "1"}}, Data: map[string]string{"k": data}}
}

// connect opens the connections, so that no operation pays for one.
func (a *api) connect(ctx context.Context) error {
	for range a.bench.clients {
		c, err := a.cluster.newClient()
		if err != nil {
			return err
		}
		if _, err := c.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{}); err != nil {
			return err
		}
		a.clients = append(a.clients, c)
	}
	return nil
}

// throughput does an operation many times, shared out over all clients.
func (a *api) throughput(ctx context.Context, verb, upstream string, total int, do operation) error {
	before, err := a.cluster.usage()
	if err != nil {
		return err
	}
	begin := time.Now()
	latencies, err := a.share(ctx, total, do)
	took := time.Since(begin)
	if err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	after, err := a.cluster.usage()
	if err != nil {
		return err
	}
	a.results.add(figure{
		Name: fmt.Sprintf("%s, %d clients", verb, len(a.clients)), Unit: "/s", Value: float64(total) / took.Seconds(), Upstream: upstream,
		Note: fmt.Sprintf("%d µs of CPU each, of peri with etcd", (after.CPU-before.CPU).Microseconds()/int64(total)),
	})
	a.results.durations(verb+", latency", latencies, "", "")
	return nil
}

// share has every client take the next until all are done; the first error ends it.
func (a *api) share(ctx context.Context, total int, do operation) ([]time.Duration, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	latencies := make([]time.Duration, total)
	var all sync.WaitGroup
	for _, c := range a.clients {
		maps := c.CoreV1().ConfigMaps(namespace)
		all.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= total || ctx.Err() != nil {
					return
				}
				begin := time.Now()
				if err := do(ctx, maps, i); err != nil {
					cancel(err)
					return
				}
				latencies[i] = time.Since(begin)
			}
		})
	}
	all.Wait()
	return latencies, context.Cause(ctx)
}

// list lists everything, one list after another.
func (a *api) list(ctx context.Context) error {
	maps := a.clients[0].CoreV1().ConfigMaps(namespace)
	for _, kind := range []struct {
		name, upstream string
		options        metav1.ListOptions
	}{
		{"all", "66 ms", metav1.ListOptions{}},
		{"all, resourceVersion=0", "", metav1.ListOptions{ResourceVersion: "0"}},
		{"in pages of 500", "", metav1.ListOptions{Limit: 500}},
	} {
		var took []time.Duration
		for range lists {
			begin := time.Now()
			options, items := kind.options, 0
			for {
				l, err := maps.List(ctx, options)
				if err != nil {
					return fmt.Errorf("list %s: %w", kind.name, err)
				}
				items += len(l.Items)
				if options.Continue = l.Continue; l.Continue == "" {
					break
				}
			}
			if items < a.objects {
				return errors.New("list " + kind.name + ": objects are missing")
			}
			took = append(took, time.Since(begin))
		}
		a.results.durations(fmt.Sprintf("list %d %s", a.objects, kind.name), took, "", kind.upstream)
	}
	return nil
}
