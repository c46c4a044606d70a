package crd

import (
	"strconv"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	openapiv2 "k8s.io/apiextensions-apiserver/pkg/controller/openapi/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Schema returns the schema of a custom kind, for OpenAPI v3 documents and for field
// management; nil if the kind is not served. The caller may modify it.
func (s *Server) Schema(gvk schema.GroupVersionKind) *spec.Schema {
	return s.schema(gvk, func(s *structuralschema.Structural) *structuralschema.Structural { return s })
}

// SchemaV2 is Schema with what OpenAPI v2 can express, and kubectl understands.
func (s *Server) SchemaV2(gvk schema.GroupVersionKind) *spec.Schema {
	return s.schema(gvk, openapiv2.ToStructuralOpenAPIV2)
}

func (s *Server) schema(gvk schema.GroupVersionKind, form func(*structuralschema.Structural) *structuralschema.Structural) *spec.Schema {
	s.mu.RLock()
	v := s.kinds[gvk]
	s.mu.RUnlock()
	if v == nil {
		return nil
	}
	c := v.compiled()
	if c.structural == nil {
		return nil
	}
	out := form(c.structural).ToKubeOpenAPI()
	if v.preserve {
		out.AddExtension("x-kubernetes-preserve-unknown-fields", true)
	}
	return out
}

// Tag names the state of a kind's schema: it differs whenever the schema does.
func (s *Server) Tag(gvk schema.GroupVersionKind) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if v := s.kinds[gvk]; v != nil {
		return v.tag
	}
	return ""
}

// Serves reports whether a kind is served by this package.
func (s *Server) Serves(gvk schema.GroupVersionKind) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.kinds[gvk] != nil
}

func tagOf(uid string, generation int64) string {
	return uid + "/" + strconv.FormatInt(generation, 10)
}
