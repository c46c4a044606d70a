package crd

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/periplus/periplus/apiserver/rest"
)

// Define makes definitions that are part of the program, unless they are there, in
// whatever version. They are known to be valid and are not checked again: compiling
// the rules of a big schema for that alone costs 20 MB, which no schema costs that
// nobody uses.
func (s *Server) Define(ctx context.Context, list []*apiextensionsv1.CustomResourceDefinition) error {
	objects := s.rest.Objects(definitions)
	for _, d := range list {
		if err := objects.Note(nil, d, ""); err != nil {
			return fmt.Errorf("definition %s: %w", d.Name, err)
		}
		_, err := objects.Create(ctx, d, "", rest.Write{Strategy: objects.Resource.Strategy, Internal: true})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("definition %s: %w", d.Name, err)
		}
	}
	return nil
}
