package aggregator

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	specs "k8s.io/kube-openapi/pkg/aggregator"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/openapiconv"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// A conversion is the document of OpenAPI v3 of a server that only has v2, made here.
type conversion struct {
	of string // tag of the document of OpenAPI v2
	at string // its place, with the hash
	h  http.Handler
}

// convert makes a document of OpenAPI v3 out of that of v2; "" if there is neither. What
// was made before is kept as long as the server says the same.
func (r *remote) convert(ctx context.Context) string {
	tag, text := r.document(ctx)
	r.mu.Lock()
	last := r.own
	r.mu.Unlock()
	if len(text) == 0 {
		return ""
	}
	if last.h != nil && last.of == tag && tag != "" {
		return last.at
	}
	made, err := converted(text, "apis/"+r.gv.String())
	if err != nil {
		return ""
	}
	made.of = tag
	r.mu.Lock()
	defer r.mu.Unlock()
	r.own = made
	return made.at
}

// converted converts the part of a document of OpenAPI v2 that is about a group version.
func converted(text []byte, gv string) (conversion, error) {
	var old spec.Swagger
	if err := json.Unmarshal(text, &old); err != nil {
		return conversion{}, fmt.Errorf("document of OpenAPI v2: %w", err)
	}
	part := specs.FilterSpecByPathsWithoutSideEffects(&old, []string{"/" + gv + "/"})
	service := handler3.NewOpenAPIService()
	service.UpdateGroupVersion(gv, openapiconv.ConvertV2ToV3(part))
	var list memory
	index, err := http.NewRequest(http.MethodGet, "/openapi/v3", nil) //nolint:noctx // it goes nowhere
	if err != nil {
		return conversion{}, err
	}
	service.HandleDiscovery(&list, index)
	at := place(list.body, gv)
	if at == "" {
		return conversion{}, fmt.Errorf("document of OpenAPI v2: there is nothing about %s", gv)
	}
	return conversion{at: at, h: http.HandlerFunc(service.HandleGroupVersion)}, nil
}

// memory is an answer that is kept.
type memory struct {
	header http.Header
	body   []byte
}

// Header implements http.ResponseWriter.
func (m *memory) Header() http.Header {
	if m.header == nil {
		m.header = http.Header{}
	}
	return m.header
}

// WriteHeader implements http.ResponseWriter.
func (*memory) WriteHeader(int) {}

// Write implements http.ResponseWriter.
func (m *memory) Write(p []byte) (int, error) {
	m.body = append(m.body, p...)
	return len(p), nil
}
