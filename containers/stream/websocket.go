package stream

import (
	"net/http"
	"net/url"

	upgrade "k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/apiserver/pkg/util/proxy"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream/wsstream"
)

// The library speaks SPDY and the older WebSocket protocols, in which a client cannot
// say that its input has ended. The newer ones are translated (KEP-4006), by another
// request to ourselves:
//
//	v5.channel.k8s.io (exec, attach)          its channels become SPDY streams
//	SPDY/3.1+portforward.k8s.io (portforward) SPDY inside the WebSocket's messages
//	anything else                             goes to the library as it is
type translator struct {
	next      http.Handler
	host      string // where next is served
	transport *http.Transport
}

func (t *translator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	target := &url.URL{Scheme: "http", Host: t.host, Path: r.URL.Path, RawQuery: r.URL.RawQuery}
	// The library would log every client that goes without a word.
	quiet := r.WithContext(klog.NewContext(r.Context(), klog.Logger{}))
	switch {
	case wsstream.IsWebSocketRequestWithStreamCloseProtocol(r):
		query := r.URL.Query()
		proxy.NewStreamTranslatorHandler(target, t.transport, 0, proxy.Options{
			Stdin: query.Has("stdin"), Stdout: query.Has("stdout"), Stderr: query.Has("stderr"), Tty: query.Has("tty"),
		}).ServeHTTP(w, quiet)
	case wsstream.IsWebSocketRequestWithTunnelingProtocol(r):
		proxy.NewTunnelingHandler(upgrade.NewUpgradeAwareHandler(target, t.transport, false, true, t)).ServeHTTP(w, quiet)
	default:
		t.next.ServeHTTP(w, r)
	}
}

// Error implements upgrade.ErrorResponder.
func (t *translator) Error(w http.ResponseWriter, _ *http.Request, err error) {
	http.Error(w, err.Error(), http.StatusBadGateway)
}

// GetExec returns a URL that is good for one connection within a minute. Its query says
// which streams there are, for the translator.
func (s *Server) GetExec(r *runtimeapi.ExecRequest) (*runtimeapi.ExecResponse, error) {
	resp, err := s.server.GetExec(r)
	if err == nil {
		resp.Url += streams(r.GetStdin(), r.GetStdout(), r.GetStderr(), r.GetTty())
	}
	return resp, err
}

// GetAttach is like GetExec.
func (s *Server) GetAttach(r *runtimeapi.AttachRequest) (*runtimeapi.AttachResponse, error) {
	resp, err := s.server.GetAttach(r)
	if err == nil {
		resp.Url += streams(r.GetStdin(), r.GetStdout(), r.GetStderr(), r.GetTty())
	}
	return resp, err
}

// GetPortForward is like GetExec.
func (s *Server) GetPortForward(r *runtimeapi.PortForwardRequest) (*runtimeapi.PortForwardResponse, error) {
	return s.server.GetPortForward(r)
}

func streams(stdin, stdout, stderr, tty bool) string {
	query := url.Values{}
	for name, is := range map[string]bool{"stdin": stdin, "stdout": stdout, "stderr": stderr && !tty, "tty": tty} {
		if is {
			query.Set(name, "1")
		}
	}
	return "?" + query.Encode()
}
