package subresource

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/apiserver/request"
	"github.com/periplus/periplus/apiserver/rest"
	"github.com/periplus/periplus/base"
)

var nodesResource = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}

// defaultKubeletPort is used when a node does not say where its kubelet listens.
const defaultKubeletPort = 10250

// kubelets passes requests on to kubelets, pods and services.
type kubelets struct {
	Config
	transport *http.Transport // to kubelets: mutual TLS, HTTP/1.1 so that connections can be upgraded
	plain     *http.Transport // to pods and services
}

func newKubelets(c Config) *kubelets {
	dial := (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	none := map[string]func(string, *tls.Conn) http.RoundTripper{}
	return &kubelets{
		Config: c,
		transport: &http.Transport{
			DialContext: dial, TLSClientConfig: c.KubeletTLS, TLSNextProto: none,
			MaxIdleConnsPerHost: 4, IdleConnTimeout: 30 * time.Second, DisableCompression: true,
		},
		plain: &http.Transport{DialContext: dial, TLSNextProto: none, MaxIdleConnsPerHost: 4, IdleConnTimeout: 30 * time.Second, DisableCompression: true},
	}
}

// address returns where a node's kubelet listens.
func (k *kubelets) address(node string) (string, error) {
	obj, err := k.Server.Get(nodesResource, "", node)
	if err != nil {
		return "", err
	}
	return KubeletAddress(obj.(*corev1.Node))
}

// KubeletAddress returns the host and port at which the API server reaches a node's kubelet.
func KubeletAddress(n *corev1.Node) (string, error) {
	if _, hollow := n.Labels[base.HollowLabel]; hollow {
		return "", apierrors.NewServiceUnavailable(fmt.Sprintf("node %q is hollow: it has no kubelet, and its pods have neither logs nor processes", n.Name))
	}
	port := int(n.Status.DaemonEndpoints.KubeletEndpoint.Port)
	if port == 0 {
		port = defaultKubeletPort
	}
	for _, kind := range []corev1.NodeAddressType{corev1.NodeInternalIP, corev1.NodeHostName, corev1.NodeExternalIP} {
		for _, a := range n.Status.Addresses {
			if a.Type == kind {
				return net.JoinHostPort(a.Address, strconv.Itoa(port)), nil
			}
		}
	}
	return "", apierrors.NewServiceUnavailable(fmt.Sprintf("node %q has no address to reach its kubelet at", n.Name))
}

// forward passes the request on; upgrades (SPDY, WebSocket) become a tunnel.
func (k *kubelets) forward(w http.ResponseWriter, r *http.Request, target *url.URL, t http.RoundTripper) error {
	k.proxy(target, t).ServeHTTP(w, r)
	return nil
}

func (k *kubelets) proxy(target *url.URL, t http.RoundTripper) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Transport: t, FlushInterval: -1,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL = target
			p.Out.Host = target.Host
			p.SetXForwarded()
			p.Out.Header.Del("Authorization") // the caller's credentials are ours alone
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			var status apierrors.APIStatus
			if errors.As(err, &status) { // a refusal
				k.Server.Codecs().WriteError(w, r, err)
				return
			}
			k.Error(w, r, err)
		},
	}
}

// refusal turns a kubelet's refusal, which is plain text, into an API error.
func refusal(resp *http.Response) error {
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return nil
	}
	b, _ := io.ReadAll(io.LimitReader(resp.Body, 50<<10)) // what arrived says enough
	resp.Body.Close()
	text := strings.TrimSpace(string(b))
	switch resp.StatusCode {
	case http.StatusBadRequest:
		return apierrors.NewBadRequest(text)
	case http.StatusInternalServerError:
		return apierrors.NewInternalError(errors.New(text))
	}
	return apierrors.NewGenericServerResponse(resp.StatusCode, "get", schema.GroupResource{Resource: "pods/log"}, "", text, 0, false)
}

// pod returns the pod of a request, which must be on a node.
func (k *kubelets) pod(r *http.Request, info *request.Info, pods *rest.Objects) (*corev1.Pod, error) {
	obj, err := pods.Get(r.Context(), info.Namespace, info.Name)
	if err != nil {
		return nil, err
	}
	return obj.Obj.(*corev1.Pod), nil
}

// container picks the container that a request is about, as upstream words it.
func container(p *corev1.Pod, name string) (string, error) {
	if name != "" {
		if slices.Contains(containerNames(p), name) {
			return name, nil
		}
		return "", apierrors.NewBadRequest(fmt.Sprintf("container %s is not valid for pod %s", name, p.Name))
	}
	switch len(p.Spec.Containers) {
	case 1:
		return p.Spec.Containers[0].Name, nil
	case 0:
		return "", apierrors.NewBadRequest(fmt.Sprintf("a container name must be specified for pod %s", p.Name))
	}
	var apps, inits []string
	for i := range p.Spec.Containers {
		apps = append(apps, p.Spec.Containers[i].Name)
	}
	for i := range p.Spec.InitContainers {
		inits = append(inits, p.Spec.InitContainers[i].Name)
	}
	text := fmt.Sprintf("a container name must be specified for pod %s, choose one of: [%s]", p.Name, strings.Join(apps, " "))
	if len(inits) > 0 {
		text += fmt.Sprintf(" or one of the init containers: [%s]", strings.Join(inits, " "))
	}
	return "", apierrors.NewBadRequest(text)
}

func containerNames(p *corev1.Pod) []string {
	var out []string
	for i := range p.Spec.Containers {
		out = append(out, p.Spec.Containers[i].Name)
	}
	for i := range p.Spec.InitContainers {
		out = append(out, p.Spec.InitContainers[i].Name)
	}
	for i := range p.Spec.EphemeralContainers {
		out = append(out, p.Spec.EphemeralContainers[i].Name)
	}
	return out
}

func (k *kubelets) log(w http.ResponseWriter, r *http.Request, info *request.Info, pods *rest.Objects) error {
	if info.Verb != "get" {
		return apierrors.NewMethodNotSupported(pods.Resource.GVR.GroupResource(), info.Verb)
	}
	p, err := k.pod(r, info, pods)
	if err != nil {
		return err
	}
	query := r.URL.Query()
	name, err := container(p, query.Get("container"))
	if err != nil {
		return err
	}
	query.Del("container")
	if p.Spec.NodeName == "" {
		// Nothing has been logged yet.
		w.Header().Set("Content-Type", "text/plain")
		return nil
	}
	target, err := k.location(p, "/containerLogs/"+p.Namespace+"/"+p.Name+"/"+name, query)
	if err != nil {
		return err
	}
	proxy := k.proxy(target, k.transport)
	proxy.ModifyResponse = refusal
	proxy.ServeHTTP(w, r)
	return nil
}
