package aggregator

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/runtime/schema"
	upgrade "k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/transport"

	"github.com/periplus/periplus/apiserver/openapi"
)

// A swagger is a server's document of OpenAPI v2 as it was last read.
type swagger struct {
	etag string
	text []byte
}

// index asks where the document of OpenAPI v3 of the group version is: its path and
// hash. That of servers without OpenAPI v3 is made here.
func (r *remote) index(ctx context.Context) string {
	body, _, err := r.get(ctx, "/openapi/v3", "application/json", "")
	if err == nil {
		r.mu.Lock()
		r.own = conversion{}
		r.mu.Unlock()
		return place(body, "apis/"+r.gv.String())
	}
	var status *statusError
	if errors.As(err, &status) && status.code == http.StatusNotFound {
		return r.convert(ctx)
	}
	return ""
}

// place reads the place of a group version off an index.
func place(index []byte, gv string) string {
	var list struct {
		Paths map[string]struct {
			ServerRelativeURL string `json:"serverRelativeURL"`
		} `json:"paths"`
	}
	if json.Unmarshal(index, &list) != nil {
		return ""
	}
	at := list.Paths[gv].ServerRelativeURL
	if u, err := url.Parse(at); err != nil || u.Path != "/openapi/v3/"+gv {
		return ""
	}
	return at
}

// document returns the server's document of OpenAPI v2; what was read before while the
// server cannot be reached.
func (r *remote) document(ctx context.Context) (etag string, text []byte) {
	r.mu.Lock()
	last := r.v2
	r.mu.Unlock()
	body, tag, err := r.get(ctx, "/openapi/v2", "application/json", last.etag)
	if err != nil || body == nil {
		return last.etag, last.text
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.v2 = swagger{tag, body}
	return tag, body
}

// serveV3 passes a question for the document of OpenAPI v3 on, as this server's own.
func (r *remote) serveV3(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	own := r.own.h
	r.mu.Unlock()
	if own != nil {
		own.ServeHTTP(w, q)
		return
	}
	if r.broken != nil {
		http.Error(w, r.broken.Error(), http.StatusServiceUnavailable)
		return
	}
	location := &url.URL{Scheme: "https", Host: r.host, Path: q.URL.Path, RawQuery: q.URL.RawQuery}
	out := q.Clone(q.Context())
	out.Header = http.Header{}
	for _, name := range []string{"Accept", "Accept-Encoding", "If-None-Match"} {
		if v := q.Header.Values(name); len(v) > 0 {
			out.Header[name] = v
		}
	}
	transport.SetAuthProxyHeaders(out, "system:aggregator", "", []string{user.SystemPrivilegedGroup}, nil)
	out.URL, out.Host = location, r.host
	upgrade.NewUpgradeAwareHandler(location, once{r.transport}, false, false, refusal{}).ServeHTTP(w, out)
}

// Documents are the OpenAPI documents of extension API servers.
func (s *Server) Documents() map[schema.GroupVersion]openapi.Remote {
	backends := *s.backends.Load()
	if len(backends) == 0 {
		return nil
	}
	out := make(map[schema.GroupVersion]openapi.Remote, len(backends))
	for gv, r := range backends {
		r.mu.Lock()
		at := r.v3
		r.mu.Unlock()
		out[gv] = openapi.Remote{At: at, V3: http.HandlerFunc(r.serveV3), V2: r.document}
	}
	return out
}
