package apiserver

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/periplus/periplus/apiserver/authz"
	"github.com/periplus/periplus/apiserver/openapi"
	"github.com/periplus/periplus/apiserver/request"
)

// types reads the types of kinds from their OpenAPI definitions, for field management.
func (s *Server) types(kinds map[schema.GroupVersionKind]runtime.Object) (managedfields.TypeConverter, error) {
	definitions, err := openapi.Definitions(kinds, s.crds.Schema)
	if err != nil {
		return nil, err
	}
	return managedfields.NewTypeConverter(definitions, false)
}

// mayCreate checks that who writes an absent object may create it.
func (s *Server) mayCreate(ctx context.Context) error {
	state := request.From(ctx)
	if state == nil {
		return nil // the server itself
	}
	q := authz.Of(state)
	q.Verb = "create"
	if err := authz.Check(ctx, s.authz, q); err != nil {
		return err
	}
	return nil
}
