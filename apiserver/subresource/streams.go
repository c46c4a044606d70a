package subresource

import (
	"fmt"
	"net/http"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	upgrade "k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream/wsstream"

	"github.com/periplus/periplus/apiserver/authz"
	"github.com/periplus/periplus/apiserver/request"
	"github.com/periplus/periplus/apiserver/rest"
)

// Streams reach kubelets over SPDY, or over the older WebSocket protocols, in
// which a client cannot say that its input has ended. Newer WebSocket protocols
// are translated here (KEP-4006):
//
//	v5.channel.k8s.io (exec, attach)          its channels become SPDY streams
//	SPDY/3.1+portforward.k8s.io (portforward) SPDY inside the WebSocket's messages
//	anything else                             passed on as it is

// streams renames the API's parameters to the kubelet's.
func streams(in url.Values) url.Values {
	out := url.Values{}
	for from, to := range map[string]string{"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"} {
		if isSet(in, from) {
			out.Set(to, "1")
		}
	}
	for _, c := range in["command"] {
		out.Add("command", c)
	}
	return out
}

func isSet(query url.Values, name string) bool {
	v := query.Get(name)
	return v == "true" || v == "1"
}

func (k *kubelets) exec(w http.ResponseWriter, r *http.Request, info *request.Info, pods *rest.Objects) error {
	return k.stream(w, r, info, pods, "/exec/")
}

func (k *kubelets) attach(w http.ResponseWriter, r *http.Request, info *request.Info, pods *rest.Objects) error {
	return k.stream(w, r, info, pods, "/attach/")
}

// mayCreate asks for the right to create as well when a stream is opened with GET,
// as WebSockets are: to read a pod's streams is not to run something in it.
func (k *kubelets) mayCreate(r *http.Request) error {
	q := authz.Of(request.From(r.Context()))
	if q.Verb == "create" {
		return nil
	}
	q.Verb = "create"
	return authz.Check(r.Context(), k.Authz, q)
}

func (k *kubelets) stream(w http.ResponseWriter, r *http.Request, info *request.Info, pods *rest.Objects, path string) error {
	if err := k.mayCreate(r); err != nil {
		return err
	}
	p, err := k.pod(r, info, pods)
	if err != nil {
		return err
	}
	query := r.URL.Query()
	if path == "/exec/" && len(query["command"]) == 0 {
		return apierrors.NewBadRequest("you must specify at least 1 command for the container")
	}
	name, err := container(p, query.Get("container"))
	if err != nil {
		return err
	}
	out := streams(query)
	if path == "/attach/" {
		out.Del("command")
	}
	target, err := k.location(p, path+p.Namespace+"/"+p.Name+"/"+name, out)
	if err != nil {
		return err
	}
	if wsstream.IsWebSocketRequestWithStreamCloseProtocol(r) {
		// The library would log every client that goes without a word.
		r = r.WithContext(klog.NewContext(r.Context(), klog.Logger{}))
		proxy.NewStreamTranslatorHandler(target, k.transport, 0, proxy.Options{
			Stdin: isSet(query, "stdin"), Stdout: isSet(query, "stdout"), Stderr: isSet(query, "stderr"), Tty: isSet(query, "tty"),
		}).ServeHTTP(w, r)
		return nil
	}
	return k.forward(w, r, target, k.transport)
}

func (k *kubelets) portForward(w http.ResponseWriter, r *http.Request, info *request.Info, pods *rest.Objects) error {
	if err := k.mayCreate(r); err != nil {
		return err
	}
	p, err := k.pod(r, info, pods)
	if err != nil {
		return err
	}
	query := url.Values{}
	if ports := r.URL.Query()["ports"]; len(ports) > 0 {
		query["port"] = ports
	}
	target, err := k.location(p, "/portForward/"+p.Namespace+"/"+p.Name, query)
	if err != nil {
		return err
	}
	if wsstream.IsWebSocketRequestWithTunnelingProtocol(r) {
		out := r.Clone(r.Context())
		out.Header.Del("Authorization") // the caller's credentials are ours alone
		proxy.NewTunnelingHandler(upgrade.NewUpgradeAwareHandler(target, k.transport, false, true, k)).ServeHTTP(w, out)
		return nil
	}
	return k.forward(w, r, target, k.transport)
}

// Error implements upgrade.ErrorResponder.
func (k *kubelets) Error(w http.ResponseWriter, r *http.Request, err error) {
	k.Server.Codecs().WriteError(w, r, apierrors.NewInternalError(fmt.Errorf("error dialing backend: %w", err)))
}

// location is a path below the pod's kubelet.
func (k *kubelets) location(p *corev1.Pod, path string, query url.Values) (*url.URL, error) {
	if p.Spec.NodeName == "" {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("pod %s does not have a host assigned", p.Name))
	}
	address, err := k.address(p.Spec.NodeName)
	if err != nil {
		return nil, err
	}
	return &url.URL{Scheme: "https", Host: address, Path: path, RawQuery: query.Encode()}, nil
}
