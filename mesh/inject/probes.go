package inject

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/periplus/periplus/mesh"
)

// A prober is a probe as the sidecar makes it in place of the kubelet.
type prober struct {
	HTTPGet        *corev1.HTTPGetAction   `json:"httpGet,omitempty"`
	TCPSocket      *corev1.TCPSocketAction `json:"tcpSocket,omitempty"`
	GRPC           *corev1.GRPCAction      `json:"grpc,omitempty"`
	TimeoutSeconds int32                   `json:"timeoutSeconds,omitempty"`
}

// rewriteProbes points probes of HTTP and TCP at the sidecar's status port, for the
// kubelet has no certificate of the mesh, and returns what the sidecar has to do
// for each path, as JSON; empty: nothing.
func rewriteProbes(spec *corev1.PodSpec) (string, error) {
	probers := map[string]prober{}
	containers := func(list []corev1.Container) {
		for i := range list {
			c := &list[i]
			if c.Name == proxyName {
				continue
			}
			for _, p := range []struct {
				probe *corev1.Probe
				name  string
			}{{c.ReadinessProbe, "readyz"}, {c.LivenessProbe, "livez"}, {c.StartupProbe, "startupz"}} {
				rewriteProbe(c, p.probe, "/app-health/"+c.Name+"/"+p.name, probers)
			}
		}
	}
	containers(spec.Containers)
	containers(spec.InitContainers)
	if len(probers) == 0 {
		return "", nil
	}
	// The order is for people who compare pods.
	ordered := make([]byte, 0, 256)
	ordered = append(ordered, '{')
	for i, path := range slices.Sorted(maps.Keys(probers)) {
		if i > 0 {
			ordered = append(ordered, ',')
		}
		key, err := json.Marshal(path)
		if err != nil {
			return "", err
		}
		value, err := json.Marshal(probers[path])
		if err != nil {
			return "", err
		}
		ordered = append(append(append(ordered, key...), ':'), value...)
	}
	return string(append(ordered, '}')), nil
}

func rewriteProbe(c *corev1.Container, p *corev1.Probe, path string, probers map[string]prober) {
	if p == nil {
		return
	}
	own := prober{TimeoutSeconds: p.TimeoutSeconds}
	switch {
	case p.HTTPGet != nil:
		if p.HTTPGet.Host != "" || p.HTTPGet.Port.Type == intstr.Int && p.HTTPGet.Port.IntVal == mesh.StatusPort {
			return
		}
		get := *p.HTTPGet
		if get.Port = number(c, get.Port); get.Port.Type == intstr.String {
			return
		}
		own.HTTPGet = &get
	case p.TCPSocket != nil:
		socket := *p.TCPSocket
		if socket.Port = number(c, socket.Port); socket.Host != "" || socket.Port.Type == intstr.String {
			return
		}
		own.TCPSocket = &socket
	default:
		return
	}
	probers[path] = own
	p.TCPSocket = nil
	p.HTTPGet = &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt32(mesh.StatusPort), Scheme: corev1.URISchemeHTTP}
}

// number replaces the name of a container's port by its number.
func number(c *corev1.Container, port intstr.IntOrString) intstr.IntOrString {
	if port.Type == intstr.String {
		for _, p := range c.Ports {
			if p.Name == port.StrVal {
				return intstr.FromInt32(p.ContainerPort)
			}
		}
	}
	return port
}
