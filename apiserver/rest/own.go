package rest

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/apiserver/registry"
)

var _ registry.Writer = (*Server)(nil)

// ownManager owns the fields of what the server makes itself.
const ownManager = "kube-apiserver"

func (s *Server) endpointOf(gvr schema.GroupVersionResource) *endpoint {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.endpoints[gvr]
}

// Make implements registry.Writer.
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

// Unmake implements registry.Writer.
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
