package subresource

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	upgrade "k8s.io/apimachinery/pkg/util/proxy"

	"github.com/periplus/periplus/apiserver/request"
	"github.com/periplus/periplus/apiserver/rest"
)

// reference splits "scheme:name:port"; scheme and port may be missing.
func reference(s string) (scheme, name, port string, err error) {
	switch parts := strings.Split(s, ":"); len(parts) {
	case 1:
		return "http", parts[0], "", nil
	case 2:
		return "http", parts[0], parts[1], nil
	case 3:
		if parts[0] == "" {
			parts[0] = "http"
		}
		if parts[0] == "http" || parts[0] == "https" {
			return parts[0], parts[1], parts[2], nil
		}
	}
	return "", "", "", apierrors.NewBadRequest(fmt.Sprintf("invalid proxy reference %q: want [http|https:]name[:port]", s))
}

// target is what a proxied request asks for at its destination.
func target(r *http.Request, info *request.Info, scheme, host string) *url.URL {
	return &url.URL{Scheme: scheme, Host: host, Path: "/" + info.Rest, RawQuery: r.URL.RawQuery}
}

// toSlash sends a GET of the proxy's root without a closing slash to the same
// with one: relative links of what is behind it would lead elsewhere.
func toSlash(w http.ResponseWriter, r *http.Request, info *request.Info) bool {
	if info.Rest != "" || strings.HasSuffix(r.URL.Path, "/") || r.Method != http.MethodGet && r.Method != http.MethodHead || r.Header.Get("Upgrade") != "" {
		return false
	}
	location := r.URL.Path + "/"
	if r.URL.RawQuery != "" {
		location += "?" + r.URL.RawQuery
	}
	w.Header().Set("Location", location)
	w.WriteHeader(http.StatusMovedPermanently)
	return true
}

// through passes an HTTP request on. Links and redirections in the answer lead
// back through the proxy.
func (k *kubelets) through(w http.ResponseWriter, r *http.Request, info *request.Info, scheme, host string, t http.RoundTripper) error {
	if toSlash(w, r, info) {
		return nil
	}
	to := target(r, info, scheme, host)
	suffix := to.Path
	if strings.HasSuffix(r.URL.Path, "/") && !strings.HasSuffix(suffix, "/") {
		suffix += "/"
	}
	return k.forward(w, r, to, &upgrade.Transport{
		Scheme: r.URL.Scheme, Host: r.URL.Host, PathPrepend: strings.TrimSuffix(r.URL.Path, suffix), RoundTripper: t,
	})
}

// podProxy passes HTTP requests on to a pod's address.
func (k *kubelets) podProxy(w http.ResponseWriter, r *http.Request, info *request.Info, pods *rest.Objects) error {
	scheme, name, port, err := reference(info.Name)
	if err != nil {
		return err
	}
	obj, err := pods.Get(r.Context(), info.Namespace, name)
	if err != nil {
		return err
	}
	p := obj.Obj.(*corev1.Pod)
	if p.Status.PodIP == "" {
		return apierrors.NewBadRequest("address not allowed: the pod has no address yet")
	}
	if port == "" {
		port = firstPort(p)
	}
	return k.through(w, r, info, scheme, net.JoinHostPort(p.Status.PodIP, port), k.plain)
}

// firstPort is the first container port that the pod names, else 80.
func firstPort(p *corev1.Pod) string {
	for i := range p.Spec.Containers {
		for _, port := range p.Spec.Containers[i].Ports {
			return strconv.Itoa(int(port.ContainerPort))
		}
	}
	return "80"
}

// nodeProxy passes requests on to a node's kubelet.
func (k *kubelets) nodeProxy(w http.ResponseWriter, r *http.Request, info *request.Info, _ *rest.Objects) error {
	_, name, port, err := reference(info.Name)
	if err != nil {
		return err
	}
	address, err := k.address(name)
	if err != nil {
		return err
	}
	if _, kubelet, _ := net.SplitHostPort(address); port != "" && port != kubelet {
		host, _, _ := net.SplitHostPort(address)
		return k.through(w, r, info, "http", net.JoinHostPort(host, port), k.plain)
	}
	return k.through(w, r, info, "https", address, k.transport)
}

// serviceProxy passes HTTP requests on to one of a Service's ready endpoints.
func (k *kubelets) serviceProxy(w http.ResponseWriter, r *http.Request, info *request.Info, services *rest.Objects) error {
	scheme, name, port, err := reference(info.Name)
	if err != nil {
		return err
	}
	obj, err := services.Get(r.Context(), info.Namespace, name)
	if err != nil {
		return err
	}
	service := obj.Obj.(*corev1.Service)
	wanted, err := servicePort(service, port)
	if err != nil {
		return err
	}
	list, err := k.Server.List(discoveryv1.SchemeGroupVersion.WithResource("endpointslices"), info.Namespace)
	if err != nil {
		return err
	}
	var hosts []string
	for _, obj := range list {
		slice := obj.(*discoveryv1.EndpointSlice)
		if slice.Labels[discoveryv1.LabelServiceName] != name {
			continue
		}
		for _, p := range slice.Ports {
			if p.Port == nil || p.Name == nil && wanted != "" || p.Name != nil && *p.Name != wanted {
				continue
			}
			for _, e := range slice.Endpoints {
				if e.Conditions.Ready == nil || *e.Conditions.Ready {
					hosts = append(hosts, net.JoinHostPort(e.Addresses[0], strconv.Itoa(int(*p.Port))))
				}
			}
		}
	}
	if len(hosts) == 0 {
		return apierrors.NewServiceUnavailable(fmt.Sprintf("no endpoints available for service %q", info.Name))
	}
	return k.through(w, r, info, scheme, hosts[rand.IntN(len(hosts))], k.plain)
}

// servicePort returns the name of the wanted port.
func servicePort(s *corev1.Service, port string) (string, error) {
	for _, p := range s.Spec.Ports {
		if port == p.Name || port == strconv.Itoa(int(p.Port)) || port == "" && len(s.Spec.Ports) == 1 {
			return p.Name, nil
		}
	}
	return "", apierrors.NewServiceUnavailable(fmt.Sprintf("no service port %q found for service %q", port, s.Name))
}
