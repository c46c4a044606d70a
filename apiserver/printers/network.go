package printers

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func serviceTables() tables {
	return tables{
		"services": table(columns{
			name(),
			text("Type", doc(corev1.ServiceSpec{}, "type")),
			text("Cluster-IP", doc(corev1.ServiceSpec{}, "clusterIP")),
			text("External-IP", doc(corev1.ServiceSpec{}, "externalIPs")),
			text("Port(s)", doc(corev1.ServiceSpec{}, "ports")),
			age(),
			wide(text("Selector", doc(corev1.ServiceSpec{}, "selector"))),
		}, service),
		"endpoints": table(columns{name(), text("Endpoints", doc(corev1.Endpoints{}, "subsets")), age()}, //nolint:staticcheck // still served
			func(e *corev1.Endpoints) []any { return []any{e.Name, endpoints(e), old(e)} }), //nolint:staticcheck // still served
	}
}

func service(s *corev1.Service) []any {
	ip := ""
	if len(s.Spec.ClusterIPs) > 0 {
		ip = s.Spec.ClusterIPs[0]
	}
	var ports []string
	for i := range s.Spec.Ports {
		p := &s.Spec.Ports[i]
		number := strconv.Itoa(int(p.Port))
		if p.NodePort > 0 {
			number += ":" + strconv.Itoa(int(p.NodePort))
		}
		ports = append(ports, number+"/"+string(p.Protocol))
	}
	return []any{
		s.Name, string(s.Spec.Type), or(ip, none), externalIP(s), or(strings.Join(ports, ","), none),
		old(s), labels.FormatLabels(s.Spec.Selector),
	}
}

func externalIP(s *corev1.Service) string {
	switch s.Spec.Type {
	case corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort:
		return or(strings.Join(s.Spec.ExternalIPs, ","), none)
	case corev1.ServiceTypeLoadBalancer:
		var ips []string
		for _, i := range s.Status.LoadBalancer.Ingress {
			ips = append(ips, or(i.IP, i.Hostname))
		}
		return or(strings.Join(append(distinct(ips), s.Spec.ExternalIPs...), ","), "<pending>")
	case corev1.ServiceTypeExternalName:
		return s.Spec.ExternalName
	}
	return unknown
}

// distinct sorts addresses and drops empty and repeated ones.
func distinct(list []string) []string {
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list), func(s string) bool { return s == "" })
}

func endpoints(e *corev1.Endpoints) string { //nolint:staticcheck // still served
	var list []string
	for i := range e.Subsets {
		s := &e.Subsets[i]
		for j := range max(len(s.Ports), 1) {
			for k := range s.Addresses {
				address := s.Addresses[k].IP
				if len(s.Ports) > 0 { // headless Services may have none
					address = net.JoinHostPort(address, strconv.Itoa(int(s.Ports[j].Port)))
				}
				list = append(list, address)
			}
		}
	}
	return some(list, 3, ",", endpointsNothing(e))
}

// endpointsNothing stands for no address: "<none>" without subsets, else an empty cell.
func endpointsNothing(e *corev1.Endpoints) string { //nolint:staticcheck // still served
	if len(e.Subsets) == 0 {
		return none
	}
	return ""
}

func discoveryTables() tables {
	return tables{
		"endpointslices": table(columns{
			name(),
			text("AddressType", doc(discoveryv1.EndpointSlice{}, "addressType")),
			text("Ports", doc(discoveryv1.EndpointSlice{}, "ports")),
			text("Endpoints", doc(discoveryv1.EndpointSlice{}, "endpoints")),
			age(),
		}, func(s *discoveryv1.EndpointSlice) []any {
			var ports, addresses []string
			for _, p := range s.Ports {
				port := orNil(p.Name, "*")
				if p.Port != nil {
					port = strconv.Itoa(int(*p.Port))
				}
				ports = append(ports, port)
			}
			for i := range s.Endpoints {
				addresses = append(addresses, s.Endpoints[i].Addresses...)
			}
			return []any{s.Name, string(s.AddressType), or(some(ports, 3, ",", ""), unset), or(some(addresses, 3, ",", ""), unset), old(s)}
		}),
	}
}

func networkTables() tables {
	return tables{
		"ingresses": table(columns{
			name(),
			text("Class", doc(networkingv1.IngressSpec{}, "ingressClassName")),
			text("Hosts", "Hosts of the rules."),
			text("Address", "Where the load balancer answers."),
			text("Ports", "Ports on which the load balancer answers."),
			age(),
		}, ingress),
		"ingressclasses": table(columns{
			name(),
			text("Controller", doc(networkingv1.IngressClassSpec{}, "controller")),
			text("Parameters", doc(networkingv1.IngressClassSpec{}, "parameters")),
			age(),
		}, func(c *networkingv1.IngressClass) []any {
			parameters := none
			if p := c.Spec.Parameters; p != nil {
				parameters = p.Kind
				if p.APIGroup != nil {
					parameters += "." + *p.APIGroup
				}
				parameters += "/" + p.Name
			}
			return []any{defaultName(c, networkingv1.AnnotationIsDefaultIngressClass), c.Spec.Controller, parameters, old(c)}
		}),
		"networkpolicies": table(columns{name(), text("Pod-Selector", doc(networkingv1.NetworkPolicySpec{}, "podSelector")), age()},
			func(p *networkingv1.NetworkPolicy) []any {
				return []any{p.Name, metav1.FormatLabelSelector(&p.Spec.PodSelector), old(p)}
			}),
		"servicecidrs": table(columns{name(), text("CIDRs", doc(networkingv1.ServiceCIDRSpec{}, "cidrs")), age()},
			func(c *networkingv1.ServiceCIDR) []any {
				return []any{c.Name, strings.Join(c.Spec.CIDRs, ","), old(c)}
			}),
		"ipaddresses": table(columns{name(), text("ParentRef", doc(networkingv1.IPAddressSpec{}, "parentRef"))},
			func(a *networkingv1.IPAddress) []any { return []any{a.Name, parent(a.Spec.ParentRef)} }),
	}
}

func ingress(i *networkingv1.Ingress) []any {
	var hosts, addresses []string
	for n, r := range i.Spec.Rules {
		if r.Host != "" {
			hosts = append(hosts, r.Host)
		}
		if len(hosts) == 3 && n < len(i.Spec.Rules)-1 {
			hosts = []string{fmt.Sprintf("%s + %d more...", strings.Join(hosts, ","), len(i.Spec.Rules)-3)}
			break
		}
	}
	for _, l := range i.Status.LoadBalancer.Ingress {
		addresses = append(addresses, or(l.IP, l.Hostname))
	}
	ports := "80"
	if len(i.Spec.TLS) > 0 {
		ports = "80, 443"
	}
	return []any{
		i.Name, orNil(i.Spec.IngressClassName, none), or(strings.Join(hosts, ","), "*"),
		strings.Join(distinct(addresses), ","), ports, old(i),
	}
}

func parent(r *networkingv1.ParentReference) string {
	if r == nil {
		return none
	}
	out := strings.ToLower(schema.GroupResource{Group: r.Group, Resource: r.Resource}.String())
	if r.Namespace != "" {
		out += "/" + r.Namespace
	}
	return out + "/" + r.Name
}

// defaultName marks the class that is used when none is named.
func defaultName(obj metav1.Object, annotations ...string) string {
	for _, a := range annotations {
		if obj.GetAnnotations()[a] == "true" {
			return obj.GetName() + " (default)"
		}
	}
	return obj.GetName()
}
