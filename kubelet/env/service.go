package env

import (
	"cmp"
	"net"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// serviceVars returns the Docker-style variables of the Services with a cluster
// IP that a pod of the namespace sees: those of its namespace if links is set,
// and always the API server's, default/kubernetes.
func serviceVars(services []*corev1.Service, namespace string, links bool) []Var {
	seen := map[string]*corev1.Service{}
	for _, s := range services {
		if s.Spec.ClusterIP == "" || s.Spec.ClusterIP == corev1.ClusterIPNone || len(s.Spec.Ports) == 0 {
			continue
		}
		master := s.Namespace == metav1Default && s.Name == "kubernetes"
		switch {
		case master:
			if _, own := seen[s.Name]; !own {
				seen[s.Name] = s
			}
		case s.Namespace == namespace && links:
			seen[s.Name] = s
		}
	}
	list := make([]*corev1.Service, 0, len(seen))
	for _, s := range seen {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b *corev1.Service) int { return cmp.Compare(a.Name, b.Name) })
	var out []Var
	for _, s := range list {
		out = append(out, varsOf(s)...)
	}
	return out
}

const metav1Default = "default"

func varsOf(s *corev1.Service) []Var {
	prefix := varName(s.Name)
	first := strconv.Itoa(int(s.Spec.Ports[0].Port))
	out := []Var{
		{prefix + "_SERVICE_HOST", s.Spec.ClusterIP},
		{prefix + "_SERVICE_PORT", first},
	}
	for _, p := range s.Spec.Ports {
		if p.Name != "" {
			out = append(out, Var{prefix + "_SERVICE_PORT_" + varName(p.Name), strconv.Itoa(int(p.Port))})
		}
	}
	for i, p := range s.Spec.Ports {
		protocol := "TCP"
		if p.Protocol != "" {
			protocol = string(p.Protocol)
		}
		port := strconv.Itoa(int(p.Port))
		url := strings.ToLower(protocol) + "://" + net.JoinHostPort(s.Spec.ClusterIP, port)
		if i == 0 {
			out = append(out, Var{prefix + "_PORT", url})
		}
		base := prefix + "_PORT_" + port + "_" + strings.ToUpper(protocol)
		out = append(out,
			Var{base, url},
			Var{base + "_PROTO", strings.ToLower(protocol)},
			Var{base + "_PORT", port},
			Var{base + "_ADDR", s.Spec.ClusterIP})
	}
	return out
}

func varName(s string) string { return strings.ToUpper(strings.ReplaceAll(s, "-", "_")) }
