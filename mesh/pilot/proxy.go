package pilot

import (
	"fmt"
	"strconv"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	corev1 "k8s.io/api/core/v1"
)

// A proxy is who is on the other end of a stream.
type proxy struct {
	id        string
	namespace string
	pod       string // its name; empty for what is no pod
	labels    map[string]string
	ports     map[string]int // named ports of its containers
	// proxyless is a gRPC client that reads xDS itself.
	proxyless bool
}

// newProxy reads a node: sidecar~10.42.0.7~web-1.shop~shop.svc.cluster.local for
// proxies, anything for gRPC clients, whose namespace is in their metadata.
func newProxy(n *core.Node) (*proxy, error) {
	meta := n.GetMetadata().GetFields()
	p := &proxy{
		id: n.GetId(), namespace: meta["NAMESPACE"].GetStringValue(), labels: map[string]string{},
		proxyless: meta["GENERATOR"].GetStringValue() == "grpc" || strings.HasPrefix(n.GetUserAgentName(), "gRPC"),
	}
	for k, v := range meta["LABELS"].GetStructValue().GetFields() {
		p.labels[k] = v.GetStringValue()
	}
	if parts := strings.Split(p.id, "~"); len(parts) == 4 {
		name, namespace, ok := strings.Cut(parts[2], ".")
		if !ok || name == "" || namespace == "" {
			return nil, fmt.Errorf("node ID %q: %q must be <pod>.<namespace>", p.id, parts[2])
		}
		p.pod, p.namespace = name, namespace
	} else if !p.proxyless {
		return nil, fmt.Errorf("node ID %q must be <type>~<address>~<pod>.<namespace>~<domain>", p.id)
	}
	if p.namespace == "" {
		p.namespace = "default"
	}
	return p, nil
}

// learn takes labels and ports from the proxy's pod.
func (p *proxy) learn(pod *corev1.Pod) {
	p.labels = pod.Labels
	p.ports = map[string]int{}
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			for _, port := range list[i].Ports {
				if port.Name != "" {
					p.ports[port.Name] = int(port.ContainerPort)
				}
			}
		}
	}
}

// target is a Service's target port as a number of this pod; 0: it has none of that name.
func (p *proxy) target(t string) int {
	if n, err := strconv.Atoi(t); err == nil {
		return n
	}
	return p.ports[t]
}
