package rest

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ChangeStatus writes the status of an object on the server's own behalf.
func (s *Server) ChangeStatus(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string, change func(runtime.Object) (runtime.Object, error)) error {
	o := s.Objects(gvr)
	if o == nil || o.Resource.Status == nil {
		return apierrors.NewNotFound(gvr.GroupResource(), name)
	}
	_, _, err := o.Update(ctx, namespace, name, change, Write{Strategy: o.Resource.Status, Subresource: "status", Internal: true})
	return err
}
