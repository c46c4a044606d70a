package measure

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/base/metric"
	"github.com/periplus/periplus/store"
)

// storage are the metrics of the store.
type storage struct {
	calls *metric.Family[*calls]
}

// calls are one operation on objects of one resource.
type calls struct {
	count, errors prometheus.Counter
	took          prometheus.Observer
}

func newStorage(s *metric.Set) storage {
	of := []string{"operation", "group", "resource"}
	took := s.HistogramVec(metric.Alpha, "etcd_request_duration_seconds", "Etcd request latency in seconds for each operation and object type.", slow, of...)
	count := s.CounterVec(metric.Alpha, "etcd_requests_total", "Etcd request counts for each operation and object type.", of...)
	failed := s.CounterVec(metric.Alpha, "etcd_request_errors_total", "Etcd failed request counts for each operation and object type.", of...)
	return storage{metric.NewFamily(func(l metric.Labels) *calls {
		return &calls{count.WithLabelValues(l[:3]...), failed.WithLabelValues(l[:3]...), took.WithLabelValues(l[:3]...)}
	})}
}

// A measured store counts what is asked of it.
type measured struct {
	store.Store
	metrics  *Metrics
	resource func(key string) schema.GroupResource
}

var _ store.Store = (*measured)(nil)

// Store returns s with its calls counted. resource tells whose objects are stored under a key.
func (m *Metrics) Store(s store.Store, resource func(key string) schema.GroupResource) store.Store {
	return &measured{s, m, resource}
}

// Unwrap returns the store itself.
func (s *measured) Unwrap() store.Store { return s.Store }

func (s *measured) note(operation, key string, start time.Time, err error) {
	gr := s.resource(key)
	c := s.metrics.calls.Of(metric.Labels{operation, gr.Group, gr.Resource})
	c.count.Inc()
	c.took.Observe(time.Since(start).Seconds())
	if err != nil {
		c.errors.Inc()
	}
}

// Get implements store.Store.
func (s *measured) Get(ctx context.Context, key string) (store.Entry, error) {
	start := time.Now()
	e, err := s.Store.Get(ctx, key)
	s.note("get", key, start, err)
	return e, err
}

// List implements store.Store.
func (s *measured) List(ctx context.Context, prefix string, o store.ListOptions) (store.ListResult, error) {
	start := time.Now()
	out, err := s.Store.List(ctx, prefix, o)
	s.note("list", prefix, start, err)
	return out, err
}

// Create implements store.Store.
func (s *measured) Create(ctx context.Context, key string, value []byte) (int64, error) {
	start := time.Now()
	rev, err := s.Store.Create(ctx, key, value)
	s.note("create", key, start, err)
	return rev, err
}

// Update implements store.Store.
func (s *measured) Update(ctx context.Context, key string, value []byte, mod int64) (int64, error) {
	start := time.Now()
	rev, err := s.Store.Update(ctx, key, value, mod)
	s.note("update", key, start, err)
	return rev, err
}

// Delete implements store.Store.
func (s *measured) Delete(ctx context.Context, key string, mod int64) (int64, error) {
	start := time.Now()
	rev, err := s.Store.Delete(ctx, key, mod)
	s.note("delete", key, start, err)
	return rev, err
}

// Commit implements store.Store. It is noted as what is done to the first key: the
// object's own.
func (s *measured) Commit(ctx context.Context, ops ...store.Op) (int64, error) {
	start := time.Now()
	rev, err := s.Store.Commit(ctx, ops...)
	operation := "update"
	switch {
	case ops[0].Value == nil:
		operation = "delete"
	case ops[0].Mod == 0:
		operation = "create"
	}
	s.note(operation, ops[0].Key, start, err)
	return rev, err
}
