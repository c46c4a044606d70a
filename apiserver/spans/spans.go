package spans

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/periplus/periplus/apiserver/request"
	"github.com/periplus/periplus/store"
)

// Start begins a step of the request that ctx belongs to, with attributes: name, value,
// name, value. Without a request that is traced it does nothing.
func Start(ctx context.Context, step string, attributes ...string) (context.Context, func(error)) {
	if s := request.From(ctx); s == nil || !s.Traced {
		return ctx, func(error) {}
	}
	list := make([]attribute.KeyValue, 0, len(attributes)/2)
	for i := 0; i+1 < len(attributes); i += 2 {
		list = append(list, attribute.String(attributes[i], attributes[i+1]))
	}
	ctx, span := trace.SpanFromContext(ctx).TracerProvider().Tracer(scope).Start(ctx, step, trace.WithAttributes(list...))
	return ctx, func(err error) {
		if err != nil {
			span.RecordError(err)
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}

// Pass lets a program that is asked in a request's name know of its span.
func Pass(ctx context.Context, h http.Header) {
	if s := request.From(ctx); s != nil && s.Traced {
		propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(h))
	}
}

// stored makes spans of what is asked of a store.
type stored struct{ store.Store }

var _ store.Store = stored{}

// Store returns s with spans.
func Store(s store.Store) store.Store { return stored{s} }

// Unwrap returns the store itself.
func (s stored) Unwrap() store.Store { return s.Store }

// Get implements store.Store.
func (s stored) Get(ctx context.Context, key string) (store.Entry, error) {
	ctx, end := Start(ctx, "Get etcd3", "key", key)
	e, err := s.Store.Get(ctx, key)
	end(err)
	return e, err
}

// List implements store.Store.
func (s stored) List(ctx context.Context, prefix string, o store.ListOptions) (store.ListResult, error) {
	ctx, end := Start(ctx, "List(recursive=true) etcd3", "key", prefix)
	out, err := s.Store.List(ctx, prefix, o)
	end(err)
	return out, err
}

// Create implements store.Store.
func (s stored) Create(ctx context.Context, key string, value []byte) (int64, error) {
	ctx, end := Start(ctx, "Create etcd3", "key", key)
	rev, err := s.Store.Create(ctx, key, value)
	end(err)
	return rev, err
}

// Update implements store.Store.
func (s stored) Update(ctx context.Context, key string, value []byte, mod int64) (int64, error) {
	ctx, end := Start(ctx, "GuaranteedUpdate etcd3", "key", key)
	rev, err := s.Store.Update(ctx, key, value, mod)
	end(err)
	return rev, err
}

// Delete implements store.Store.
func (s stored) Delete(ctx context.Context, key string, mod int64) (int64, error) {
	ctx, end := Start(ctx, "Delete etcd3", "key", key)
	rev, err := s.Store.Delete(ctx, key, mod)
	end(err)
	return rev, err
}
