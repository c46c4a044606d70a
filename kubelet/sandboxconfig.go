package kubelet

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/cni"
	"github.com/periplus/periplus/kubelet/netcfg"
)

// sandboxConfig describes the pod's sandbox for the runtime and makes its cgroup.
// tell says whether to warn about what the pod asks for.
func (e *execution) sandboxConfig(attempt uint32, tell bool) (*runtimeapi.PodSandboxConfig, error) {
	pod, k := e.pod, e.w.k
	dns, warnings, err := netcfg.DNS(pod, netcfg.DNSConfig{
		Servers: k.cfg.ClusterDNS, Domain: k.cfg.ClusterDomain, ResolvConf: k.cfg.ResolvConf,
	})
	if err != nil {
		return nil, err
	}
	for _, w := range warnings {
		if !tell {
			break
		}
		k.cfg.Events.Event(pod, corev1.EventTypeWarning, w.Reason, w.Message)
	}
	c := &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{
			Name: pod.Name, Namespace: pod.Namespace, Uid: string(pod.UID), Attempt: attempt,
		},
		LogDirectory: k.podLogDir(pod),
		DnsConfig:    dns,
		Labels:       sandboxLabels(pod),
		Annotations:  sandboxAnnotations(pod),
		Linux:        &runtimeapi.LinuxPodSandboxConfig{Sysctls: map[string]string{}},
	}
	delete(c.Annotations, cni.AnnotationWanted) // nobody else's to say
	if old := e.w.status.last(); old != nil && len(old.PodIPs) > 0 && !isHostNetwork(pod) {
		had := make([]string, len(old.PodIPs))
		for i := range had {
			had[i] = old.PodIPs[i].IP
		}
		c.Annotations[cni.AnnotationWanted] = strings.Join(had, ",")
	}
	if !isHostNetwork(pod) {
		host, domain := netcfg.Hostname(pod, k.cfg.ClusterDomain)
		c.Hostname = host
		if pod.Spec.SetHostnameAsFQDN != nil && *pod.Spec.SetHostnameAsFQDN && domain != "" {
			c.Hostname = host + "." + domain
			if len(c.Hostname) > 64 {
				return nil, fmt.Errorf("failed to construct FQDN from pod hostname and cluster domain, FQDN %s is too long (64 characters is the max, %d characters requested)", c.Hostname, len(c.Hostname))
			}
		}
	}
	for i := range pod.Spec.Containers {
		for _, p := range pod.Spec.Containers[i].Ports {
			c.PortMappings = append(c.PortMappings, portMapping(p))
		}
	}
	for i := range pod.Spec.InitContainers {
		if !isSidecar(&pod.Spec.InitContainers[i]) {
			continue
		}
		for _, p := range pod.Spec.InitContainers[i].Ports {
			c.PortMappings = append(c.PortMappings, portMapping(p))
		}
	}
	if k.cfg.Cgroups != nil {
		if c.Linux.CgroupParent, err = k.cfg.Cgroups.Ensure(pod); err != nil {
			return nil, err
		}
	}
	if sc := pod.Spec.SecurityContext; sc != nil {
		for _, s := range sc.Sysctls {
			c.Linux.Sysctls[s.Name] = s.Value
		}
	}
	c.Linux.SecurityContext = sandboxSecurity(pod)
	c.Linux.Resources = k.podResources(pod)
	if len(pod.Spec.Overhead) > 0 {
		c.Linux.Overhead = cpuAndMemory(pod.Spec.Overhead, pod.Spec.Overhead)
	} else {
		c.Linux.Overhead = &runtimeapi.LinuxContainerResources{}
	}
	return c, nil
}

func portMapping(p corev1.ContainerPort) *runtimeapi.PortMapping {
	m := &runtimeapi.PortMapping{ContainerPort: p.ContainerPort, HostPort: p.HostPort, HostIp: p.HostIP}
	switch p.Protocol {
	case corev1.ProtocolUDP:
		m.Protocol = runtimeapi.Protocol_UDP
	case corev1.ProtocolSCTP:
		m.Protocol = runtimeapi.Protocol_SCTP
	}
	return m
}

// podResources is the sum of the pod's requests and limits, without overhead.
func (k *Kubelet) podResources(pod *corev1.Pod) *runtimeapi.LinuxContainerResources {
	opts := resourcehelper.PodResourcesOptions{ExcludeOverhead: true}
	requests, limits := resourcehelper.PodRequests(pod, opts), resourcehelper.PodLimits(pod, opts)
	limits = maps.Clone(limits)
	for i := range pod.Spec.Containers {
		l := pod.Spec.Containers[i].Resources.Limits
		if l.Cpu().IsZero() {
			delete(limits, corev1.ResourceCPU) // one without a limit: the pod has none
		}
		if l.Memory().IsZero() {
			delete(limits, corev1.ResourceMemory)
		}
	}
	return cpuAndMemory(requests, limits)
}

// hostUsersOnly refuses a pod that wants users of its own: it must not run as the node's
// users without knowing. The runtime has user namespaces; this kubelet gives no ranges
// of users out.
func hostUsersOnly(pod *corev1.Pod) error {
	if pod.Spec.HostUsers == nil || *pod.Spec.HostUsers {
		return nil
	}
	return errors.New("this node does not support user namespaces (spec.hostUsers: false)")
}
