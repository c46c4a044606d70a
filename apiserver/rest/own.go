package rest

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/store"
)

var _ registry.Syncer = (*Server)(nil)

// ownManager owns the fields of what the server makes itself.
const ownManager = "kube-apiserver"

func (s *Server) endpointOf(gvr schema.GroupVersionResource) *endpoint {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.endpoints[gvr]
}

// Make creates an object on the server's own behalf, without admission. One of a kind
// that is not served is not made.
func (s *Server) Make(ctx context.Context, gvr schema.GroupVersionResource, obj runtime.Object) error {
	o := s.Objects(gvr)
	if o == nil {
		return nil
	}
	if e := s.endpointOf(gvr); e != nil {
		if err := e.track(e.blank, obj, nil, "", ownManager); err != nil {
			return err
		}
	}
	_, err := o.Create(ctx, obj, metaOf(obj).Namespace, Write{Strategy: o.Resource.Strategy, Internal: true})
	return err
}

// Unmake deletes an object on the server's own behalf, if there is one.
func (s *Server) Unmake(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string) error {
	o := s.Objects(gvr)
	if o == nil {
		return nil
	}
	if err := o.Purge(ctx, namespace, name, &metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

// Sync implements registry.Syncer.
func (s *Server) Sync(ctx context.Context) error { return s.config.Caches.Sync(ctx) }

// doubtful reports whether a write that failed may have been done, or be done yet.
func doubtful(err error) bool {
	var conflict *store.ConflictError
	var taken *contested
	switch {
	case err == nil, errors.Is(err, store.ErrExists), errors.Is(err, store.ErrTooLarge), errors.As(err, &conflict), errors.As(err, &taken):
		return false
	}
	return true
}
