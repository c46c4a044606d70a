package endpoints

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	slicelib "k8s.io/endpointslice"
	"k8s.io/endpointslice/util"
	utilnet "k8s.io/utils/net"

	"github.com/periplus/periplus/client/conditions"
)

// capacity is how many addresses an Endpoints object holds at most.
const capacity = 1000

// desired returns the object as it should be; what others put on current stays.
func desired(service *corev1.Service, pods []*corev1.Pod, current *corev1.Endpoints) *corev1.Endpoints {
	out := current.DeepCopy()
	out.Subsets = subsets(service, pods)

	// 1. The Service's labels, and those that mark the object.
	out.Labels = maps.Clone(service.Labels)
	if out.Labels == nil {
		out.Labels = map[string]string{}
	}
	out.Labels[managedByLabel] = managedBy
	if service.Spec.ClusterIP == corev1.ClusterIPNone || service.Spec.ClusterIP == "" {
		out.Labels[corev1.IsHeadlessService] = ""
	} else {
		delete(out.Labels, corev1.IsHeadlessService)
	}

	// 2. Beyond the capacity, ready addresses go before others.
	if truncate(out) {
		setAnnotation(out, corev1.EndpointsOverCapacity, "truncated")
	} else {
		delete(out.Annotations, corev1.EndpointsOverCapacity)
	}
	return out
}

func setAnnotation(e *corev1.Endpoints, k, v string) {
	if e.Annotations == nil {
		e.Annotations = map[string]string{}
	}
	e.Annotations[k] = v
}

// subsets groups the pods' addresses by the ports that they serve, everything in
// a fixed order.
func subsets(service *corev1.Service, pods []*corev1.Pod) []corev1.EndpointSubset {
	byPorts := map[string]*corev1.EndpointSubset{}
	tolerate := service.Spec.PublishNotReadyAddresses
	for _, pod := range pods {
		if !util.ShouldPodBeInEndpoints(pod, tolerate) {
			continue
		}
		address, ok := addressOf(service, pod)
		if !ok {
			continue
		}
		ports, ok := portsOf(service, pod)
		if !ok {
			continue
		}
		key := fmt.Sprint(ports)
		set := byPorts[key]
		if set == nil {
			set = &corev1.EndpointSubset{Ports: ports}
			byPorts[key] = set
		}
		if tolerate || conditions.PodReady(pod) {
			set.Addresses = append(set.Addresses, address)
		} else {
			set.NotReadyAddresses = append(set.NotReadyAddresses, address)
		}
	}
	var out []corev1.EndpointSubset
	for _, key := range slices.Sorted(maps.Keys(byPorts)) {
		set := byPorts[key]
		slices.SortFunc(set.Addresses, compareAddress)
		slices.SortFunc(set.NotReadyAddresses, compareAddress)
		out = append(out, *set)
	}
	return out
}

func compareAddress(a, b corev1.EndpointAddress) int {
	return cmp.Or(strings.Compare(a.IP, b.IP), strings.Compare(string(a.TargetRef.UID), string(b.TargetRef.UID)))
}

// portsOf returns the ports at which pod serves service. ok is false when the
// Service has ports and the pod none of them.
func portsOf(service *corev1.Service, pod *corev1.Pod) (ports []corev1.EndpointPort, ok bool) {
	if len(service.Spec.Ports) == 0 {
		return nil, service.Spec.ClusterIP == corev1.ClusterIPNone
	}
	for i := range service.Spec.Ports {
		p := &service.Spec.Ports[i]
		number, err := slicelib.FindPort(pod, p)
		if err != nil {
			continue
		}
		ports = append(ports, corev1.EndpointPort{Name: p.Name, Port: int32(number), Protocol: p.Protocol, AppProtocol: p.AppProtocol})
	}
	slices.SortFunc(ports, func(a, b corev1.EndpointPort) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.Port, b.Port), strings.Compare(string(a.Protocol), string(b.Protocol)))
	})
	return ports, len(ports) > 0
}

// addressOf returns the pod's address in the Service's (first) family.
func addressOf(service *corev1.Service, pod *corev1.Pod) (corev1.EndpointAddress, bool) {
	ip := ""
	for _, candidate := range pod.Status.PodIPs {
		if utilnet.IsIPv6String(candidate.IP) == wantsIPv6(service, pod) {
			ip = candidate.IP
			break
		}
	}
	if ip == "" && len(pod.Status.PodIPs) == 0 {
		ip = pod.Status.PodIP
	}
	if ip == "" {
		return corev1.EndpointAddress{}, false
	}
	address := corev1.EndpointAddress{
		IP:        ip,
		NodeName:  &pod.Spec.NodeName,
		TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
	}
	if util.ShouldSetHostname(pod, service) {
		address.Hostname = pod.Spec.Hostname
	}
	return address, true
}

func wantsIPv6(service *corev1.Service, pod *corev1.Pod) bool {
	switch {
	case len(service.Spec.IPFamilies) > 0:
		return service.Spec.IPFamilies[0] == corev1.IPv6Protocol
	case service.Spec.ClusterIP != "" && service.Spec.ClusterIP != corev1.ClusterIPNone:
		return utilnet.IsIPv6String(service.Spec.ClusterIP)
	}
	return utilnet.IsIPv6String(pod.Status.PodIP)
}

// truncate cuts the object to its capacity and says whether it had to.
func truncate(e *corev1.Endpoints) bool {
	ready, notReady := 0, 0
	for i := range e.Subsets {
		ready += len(e.Subsets[i].Addresses)
		notReady += len(e.Subsets[i].NotReadyAddresses)
	}
	if ready+notReady <= capacity {
		return false
	}
	keepReady := min(ready, capacity)
	keepNotReady := capacity - keepReady
	var kept []corev1.EndpointSubset
	for _, set := range e.Subsets {
		n, m := min(len(set.Addresses), keepReady), min(len(set.NotReadyAddresses), keepNotReady)
		keepReady -= n
		keepNotReady -= m
		set.Addresses, set.NotReadyAddresses = set.Addresses[:n], set.NotReadyAddresses[:m]
		if n+m > 0 {
			kept = append(kept, set)
		}
	}
	e.Subsets = kept
	return true
}
