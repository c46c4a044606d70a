package request_test

import (
	"net/http/httptest"
	"testing"

	"github.com/periplus/periplus/apiserver/request"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method, url string
		want        request.Info
	}{
		{"GET", "/api/v1/pods", request.Info{IsResource: true, Verb: "list", Version: "v1", Resource: "pods"}},
		{"GET", "/api/v1/pods?watch=true", request.Info{IsResource: true, Verb: "watch", Version: "v1", Resource: "pods"}},
		{"GET", "/api/v1/pods?watch=1&fieldSelector=metadata.name%3Dp", request.Info{IsResource: true, Verb: "watch", Version: "v1", Resource: "pods", Name: "p", FieldSelector: "metadata.name=p"}},
		{"GET", "/api/v1/pods?fieldSelector=metadata.name%21%3Dp", request.Info{IsResource: true, Verb: "list", Version: "v1", Resource: "pods", FieldSelector: "metadata.name!=p"}},
		{"GET", "/api/v1/pods?watch=false", request.Info{IsResource: true, Verb: "list", Version: "v1", Resource: "pods"}},
		{"GET", "/api/v1/watch/namespaces/a/pods", request.Info{IsResource: true, Verb: "watch", Version: "v1", Namespace: "a", Resource: "pods"}},
		{"GET", "/api/v1/namespaces/a", request.Info{IsResource: true, Verb: "get", Version: "v1", Namespace: "a", Resource: "namespaces", Name: "a"}},
		{"PUT", "/api/v1/namespaces/a/finalize", request.Info{IsResource: true, Verb: "update", Version: "v1", Namespace: "a", Resource: "namespaces", Name: "a", Subresource: "finalize"}},
		{"POST", "/api/v1/namespaces/a/pods/p/exec", request.Info{IsResource: true, Verb: "create", Version: "v1", Namespace: "a", Resource: "pods", Name: "p", Subresource: "exec"}},
		{"GET", "/api/v1/namespaces/a/services/s:80/proxy/x/y", request.Info{IsResource: true, Verb: "get", Version: "v1", Namespace: "a", Resource: "services", Name: "s:80", Subresource: "proxy", Rest: "x/y"}},
		{"DELETE", "/apis/apps/v1/namespaces/a/deployments", request.Info{IsResource: true, Verb: "deletecollection", Group: "apps", Version: "v1", Namespace: "a", Resource: "deployments"}},
		{"PATCH", "/apis/apps/v1/namespaces/a/deployments/d/scale", request.Info{IsResource: true, Verb: "patch", Group: "apps", Version: "v1", Namespace: "a", Resource: "deployments", Name: "d", Subresource: "scale"}},
		{"GET", "/apis/apps/v1", request.Info{Verb: "get", Group: "apps", Version: "v1"}},
		{"GET", "/healthz", request.Info{Verb: "get"}},
	} {
		r := httptest.NewRequest(c.method, c.url, nil)
		c.want.Path = r.URL.Path
		if got := request.Parse(r); got != c.want {
			t.Errorf("%s %s:\n got %+v\nwant %+v", c.method, c.url, got, c.want)
		}
	}
}
