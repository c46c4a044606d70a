package rest

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/apiserver/measure"
)

// Serves reports whether the server has a group version of a resource, and the subresource
// if one is named.
func (s *Server) Serves(gvr schema.GroupVersionResource, subresource string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	e := s.endpoints[gvr]
	if e == nil {
		return false
	}
	switch subresource {
	case "", "status", "scale":
		return true
	}
	return s.extra[gvr.GroupResource().String()+"/"+subresource] != nil || e.objects.Resource.Views[subresource] != nil
}

// Metrics are the server's.
func (s *Server) Metrics() *measure.Metrics { return s.config.Metrics }
