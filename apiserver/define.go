package apiserver

import (
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Define makes definitions of custom resources that are part of the program; see
// crd.Server.Define.
func (s *Server) Define(ctx context.Context, list []*apiextensionsv1.CustomResourceDefinition) error {
	return s.crds.Define(ctx, list)
}
