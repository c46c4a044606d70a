package rest

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
)

// TypesOf returns what the fields of a kind are, and how lists of it merge, for policies
// that change objects. It is read when it is first needed.
func (s *Server) TypesOf(gvk schema.GroupVersionKind) (managedfields.TypeConverter, error) {
	s.mu.RLock()
	var found *endpoint
	for _, e := range s.endpoints {
		if e.gvk == gvk {
			found = e
			break
		}
	}
	s.mu.RUnlock()
	if found == nil {
		return nil, fmt.Errorf("nothing of kind %v is served", gvk)
	}
	types, err := found.objects.types()
	if err != nil {
		return nil, err
	}
	return typesOf{types}, nil
}
