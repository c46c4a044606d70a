package aggregator

import (
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	upgrade "k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/client-go/transport"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/periplus/periplus/apiserver/request"
)

// groupVersionOf reads /apis/<group>/<version>/…; the zero value is another path.
func groupVersionOf(path string) schema.GroupVersion {
	rest, ok := strings.CutPrefix(path, "/apis/")
	if !ok {
		return schema.GroupVersion{}
	}
	group, rest, _ := strings.Cut(rest, "/")
	version, _, _ := strings.Cut(rest, "/")
	return schema.GroupVersion{Group: group, Version: version}
}

// available reports what clients read in the APIService.
func (s *Server) available(r *remote) bool {
	obj, err := s.config.Rest.Get(apiServices, "", r.name)
	if err != nil {
		return false
	}
	c := conditionOf(obj.(*apiregistrationv1.APIService))
	return c != nil && c.Status == apiregistrationv1.ConditionTrue
}

// proxy passes a request on in the name of its user, and everything that comes of it:
// watches, and connections that are upgraded.
func (s *Server) proxy(w http.ResponseWriter, r *http.Request, to *remote) {
	if !s.available(to) {
		http.Error(w, "service unavailable", http.StatusServiceUnavailable)
		return
	}
	if to.broken != nil {
		http.Error(w, to.broken.Error(), http.StatusInternalServerError)
		return
	}
	state := request.From(r.Context())
	if state == nil || state.User == nil {
		http.Error(w, "missing user", http.StatusInternalServerError)
		return
	}
	location := &url.URL{Scheme: "https", Host: to.host, Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery}
	out := r.Clone(r.Context())
	// The sender's credentials are this server's alone; other headers of a proxy are not believed.
	out.Header.Del("Authorization")
	for name := range out.Header {
		if strings.HasPrefix(name, "X-Remote-") {
			delete(out.Header, name)
		}
	}
	u := state.User
	transport.SetAuthProxyHeaders(out, u.GetName(), u.GetUID(), u.GetGroups(), u.GetExtra())
	out.Header.Set("Audit-Id", state.AuditID)
	out.URL, out.Host = location, to.host
	upgraded := httpstream.IsUpgradeRequest(r)
	var t http.RoundTripper = to.transport
	if !upgraded {
		t = once{t}
	}
	h := upgrade.NewUpgradeAwareHandler(location, t, false, upgraded, refusal{})
	h.RejectForwardingRedirects = true
	h.ServeHTTP(w, out)
}

// once drops what this server has put into the answer's header already.
type once struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (o once) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := o.next.RoundTrip(r)
	if err == nil {
		resp.Header.Del("Audit-Id")
	}
	return resp, err
}

// refusal answers for a server that cannot be reached.
type refusal struct{}

// Error implements proxy.ErrorResponder.
func (refusal) Error(w http.ResponseWriter, _ *http.Request, err error) {
	http.Error(w, err.Error(), http.StatusServiceUnavailable)
}
