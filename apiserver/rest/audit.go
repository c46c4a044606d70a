package rest

import (
	"bytes"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/periplus/periplus/apiserver/cacher"
	"github.com/periplus/periplus/apiserver/request"
)

// What is told to the auditor of a request. Objects are logged as JSON in the version
// that the client speaks, whatever form they came in. An object that cannot be
// encoded is not logged: the request tells its client.

// auditRequest tells what the client sent.
func (c *Codecs) auditRequest(r *http.Request, obj runtime.Object) {
	a, requests, _ := request.Audited(r.Context())
	if a == nil {
		return
	}
	if o, ok := obj.(metav1.ObjectMetaAccessor); ok {
		a.About(o.GetObjectMeta())
	}
	if requests {
		if body, err := c.EncodeJSON(obj); err == nil {
			a.Request(body)
		}
	}
}

// auditPatch tells what the client wants to be changed.
func auditPatch(r *http.Request, p *patch) {
	a, requests, _ := request.Audited(r.Context())
	if !requests {
		return
	}
	body := p.body
	if p.kind == types.ApplyYAMLPatchType || p.kind == types.ApplyCBORPatchType {
		toJSON := yaml.YAMLToJSON
		if p.kind == types.ApplyCBORPatchType {
			toJSON = cborToJSON
		}
		var err error
		if body, err = toJSON(body); err != nil {
			return
		}
	}
	a.Request(body)
}

// auditResponse tells what the answer is.
func (c *Codecs) auditResponse(r *http.Request, obj runtime.Object) {
	if a, _, responses := request.Audited(r.Context()); responses {
		if body, err := c.EncodeJSON(obj); err == nil {
			a.Response(body)
		}
	}
}

// auditFailure tells how the request failed; at every level.
func (c *Codecs) auditFailure(r *http.Request, s *metav1.Status) {
	if a, _, responses := request.Audited(r.Context()); a != nil {
		a.Failure(s)
		if responses {
			c.auditResponse(r, s)
		}
	}
}

// auditItem tells an answer that is one object, of which body is the encoding.
func (e *endpoint) auditItem(r *http.Request, c *call, obj *cacher.Object, body []byte) {
	a, _, responses := request.Audited(r.Context())
	if !responses {
		return
	}
	if c.format.media != mediaJSON {
		var err error
		if body, err = e.encodeItem(mediaJSON, obj, false); err != nil {
			return
		}
	}
	a.Response(bytes.TrimSpace(body))
}

// auditList tells an answer that is a list.
func (e *endpoint) auditList(r *http.Request, p *page) {
	a, _, responses := request.Audited(r.Context())
	if !responses {
		return
	}
	if body, err := e.listJSON(p); err == nil {
		a.Response(body)
	}
}
