package validation

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// A placedPort is a port of any container of a pod.
type placedPort struct {
	*corev1.ContainerPort
	at func() *field.Path
}

// ports warns of ports of which one hides another.
func (w *podWarner) ports() {
	var all []placedPort
	w.each(func(c *corev1.Container, at func() *field.Path) {
		for i := range c.Ports {
			all = append(all, placedPort{&c.Ports[i], func() *field.Path { return at().Child("ports").Index(i) }})
		}
	})
	for i, p := range all {
		if p.HostIP != "" && p.HostPort == 0 {
			w.say(p.at(), "hostIP set without hostPort: %s", portText(p.ContainerPort))
		}
		for _, other := range all[:i] {
			if other.ContainerPort.ContainerPort == p.ContainerPort.ContainerPort && other.Protocol == p.Protocol {
				w.samePort(p, other)
			}
		}
	}
	for i, p := range all {
		if p.Name == "" {
			continue
		}
		for _, other := range all[:i] {
			if other.Name == p.Name {
				w.say(p.at(), "duplicate port name %q with %s, services and probes that select ports by name will use %s", p.Name, other.at(), other.at())
				break
			}
		}
	}
}

func (w *podWarner) samePort(p, other placedPort) {
	switch {
	case p.HostIP == other.HostIP && p.HostPort == other.HostPort:
		w.say(p.at(), "duplicate port definition with %s", other.at())
	case p.HostPort == 0 || other.HostPort == 0:
		w.say(p.at(), "overlapping port definition with %s", other.at())
	case p.HostPort == other.HostPort && (p.HostIP == "") != (other.HostIP == ""):
		w.say(p.at(), "dangerously ambiguous port definition with %s", other.at())
	}
}

// portText prints a port as upstream does, which prints the fields of its own type.
func portText(p *corev1.ContainerPort) string {
	return fmt.Sprintf("{Name:%s HostPort:%d ContainerPort:%d Protocol:%s HostIP:%s}", p.Name, p.HostPort, p.ContainerPort, p.Protocol, p.HostIP)
}
