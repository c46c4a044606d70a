package core

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/apiserver/validation"
)

// prepareServiceUpdate lets a client leave out what was allocated, and lets it
// change the type without clearing the fields that go with the old one.
//
//	1  fields of the old type that the client sent back unchanged are dropped
//	2  allocated values that it left out are filled in
//	3  clusterIP and clusterIPs are brought in step
func prepareServiceUpdate(_ context.Context, svc, old *corev1.Service) {
	svc.Status = old.Status
	dropFieldsOfOldType(svc, old)
	keepAllocated(svc, old)
	syncClusterIPs(svc, old)
}

func dropFieldsOfOldType(svc, old *corev1.Service) {
	spec, before := &svc.Spec, &old.Spec
	if hasClusterIP(old) && !hasClusterIP(svc) {
		if sameClusterIPs(svc, old) {
			spec.ClusterIP, spec.ClusterIPs = "", nil
		}
		if slices.Equal(spec.IPFamilies, before.IPFamilies) {
			spec.IPFamilies = nil
		}
		if validation.Equal(spec.IPFamilyPolicy, before.IPFamilyPolicy) {
			spec.IPFamilyPolicy = nil
		}
	}
	if hasNodePorts(old) && !hasNodePorts(svc) && sameNodePorts(svc, old) {
		for i := range spec.Ports {
			spec.Ports[i].NodePort = 0
		}
	}
	if needsHealthCheckPort(old) && !needsHealthCheckPort(svc) && spec.HealthCheckNodePort == before.HealthCheckNodePort {
		spec.HealthCheckNodePort = 0
	}
	wasBalancer, isBalancer := before.Type == corev1.ServiceTypeLoadBalancer, spec.Type == corev1.ServiceTypeLoadBalancer
	if wasBalancer && !isBalancer {
		if validation.Equal(spec.AllocateLoadBalancerNodePorts, before.AllocateLoadBalancerNodePorts) {
			spec.AllocateLoadBalancerNodePorts = nil
		}
		if validation.Equal(spec.LoadBalancerClass, before.LoadBalancerClass) {
			spec.LoadBalancerClass = nil
		}
	}
	if externallyAccessible(old) && !externallyAccessible(svc) && spec.ExternalTrafficPolicy == before.ExternalTrafficPolicy {
		spec.ExternalTrafficPolicy = ""
	}
	if !isBalancer {
		svc.Status.LoadBalancer = corev1.LoadBalancerStatus{}
	}
}

func sameClusterIPs(svc, old *corev1.Service) bool {
	return svc.Spec.ClusterIP == old.Spec.ClusterIP && slices.Equal(svc.Spec.ClusterIPs, old.Spec.ClusterIPs)
}

func sameNodePorts(svc, old *corev1.Service) bool {
	return slices.Equal(sortedNodePorts(svc), sortedNodePorts(old))
}

func sortedNodePorts(svc *corev1.Service) []int32 {
	ports := nodePortsOf(svc)
	slices.Sort(ports)
	return slices.Compact(ports)
}

// nodePortsOf lists the node ports of the service's ports.
func nodePortsOf(svc *corev1.Service) []int32 {
	var ports []int32
	for i := range svc.Spec.Ports {
		if p := svc.Spec.Ports[i].NodePort; p != 0 {
			ports = append(ports, p)
		}
	}
	return ports
}

func keepAllocated(svc, old *corev1.Service) {
	if hasClusterIP(old) && hasClusterIP(svc) {
		if svc.Spec.ClusterIP == "" {
			svc.Spec.ClusterIP = old.Spec.ClusterIP
		}
		if len(svc.Spec.ClusterIPs) == 0 {
			svc.Spec.ClusterIPs = slices.Clone(old.Spec.ClusterIPs)
		}
	}
	if wantsNodePorts(old) && wantsNodePorts(svc) {
		// Ports are matched by name; one that the client moved to another
		// port is not handed out twice.
		used := nodePortsOf(svc)
		for i := range svc.Spec.Ports {
			port := &svc.Spec.Ports[i]
			if port.NodePort != 0 {
				continue
			}
			j := slices.IndexFunc(old.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == port.Name })
			if j >= 0 && !slices.Contains(used, old.Spec.Ports[j].NodePort) {
				port.NodePort = old.Spec.Ports[j].NodePort
			}
		}
	}
	if needsHealthCheckPort(old) && needsHealthCheckPort(svc) && svc.Spec.HealthCheckNodePort == 0 {
		svc.Spec.HealthCheckNodePort = old.Spec.HealthCheckNodePort
	}
}

// wantsNodePorts reports whether ports without a node port get one.
func wantsNodePorts(svc *corev1.Service) bool {
	switch svc.Spec.Type {
	case corev1.ServiceTypeNodePort:
		return true
	case corev1.ServiceTypeLoadBalancer:
		allocate := svc.Spec.AllocateLoadBalancerNodePorts
		return allocate == nil || *allocate
	default:
		return false
	}
}

// syncClusterIPs follows the one of clusterIP and clusterIPs that the client
// changed: clients of before dual stack know only the first.
func syncClusterIPs(svc, old *corev1.Service) {
	spec := &svc.Spec
	if old == nil {
		if spec.ClusterIP != "" && len(spec.ClusterIPs) == 0 {
			spec.ClusterIPs = []string{spec.ClusterIP}
		}
		return
	}
	before := &old.Spec
	if len(before.ClusterIPs) > 0 && len(spec.ClusterIPs) == 0 && spec.ClusterIP == before.ClusterIP {
		spec.ClusterIPs = slices.Clone(before.ClusterIPs)
	}
	if spec.ClusterIP == before.ClusterIP || !slices.Equal(spec.ClusterIPs, before.ClusterIPs) {
		return
	}
	if spec.ClusterIP == "" {
		spec.ClusterIPs = nil
	} else {
		spec.ClusterIPs = []string{spec.ClusterIP}
	}
}
