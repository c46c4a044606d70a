package kubelet

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/periplus/periplus/kubelet/shutdown"
)

// admit judges whether a pod can run here, as the scheduler should have done, and
// notes that it has its share of the node. Pods that ran before keep their place.
func (k *Kubelet) admit(w *worker, pod *corev1.Pod) (reason, message string, ok bool) {
	node := k.Node()
	k.admission.Lock()
	defer k.admission.Unlock()
	if node == nil || pod.Status.StartTime != nil {
		w.setAdmitted(pod)
		return "", "", true
	}
	if k.shutdown.Active() {
		return shutdown.NotAdmitted, shutdown.NotAdmittedText, false
	}
	if reason, message, ok := admitSysctls(pod, k.cfg.AllowedSysctls); !ok {
		return reason, message, false
	}
	if reason, message, ok := k.pressures.admits(pod); !ok {
		return reason, message, false
	}
	if reason, message, ok := fits(node, k.admitted(w), pod); !ok {
		return reason, message, false
	}
	if reason, message, ok := k.particular.admit(pod); !ok {
		return reason, message, false
	}
	w.setAdmitted(pod)
	return "", "", true
}

// admitted are the other pods that have their share of the node.
func (k *Kubelet) admitted(but *worker) []*corev1.Pod {
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []*corev1.Pod
	for _, w := range k.workers {
		if w == but {
			continue
		}
		if p := w.admittedPod(); p != nil {
			out = append(out, p)
		}
	}
	return out
}

func (w *worker) setAdmitted(pod *corev1.Pod) {
	w.mu.Lock()
	w.admitted = pod
	w.mu.Unlock()
}

// admittedPod is the pod that holds a share of the node; one that was deleted by
// force has given it up, though it may still be ending.
func (w *worker) admittedPod() *corev1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.removed {
		return nil
	}
	return w.admitted
}

// fits checks resources, node affinity, host ports and NoExecute taints, with
// upstream's reasons and messages.
func fits(node *corev1.Node, others []*corev1.Pod, pod *corev1.Pod) (reason, message string, ok bool) {
	if reason, message, ok = fitsResources(node, others, pod); !ok {
		return reason, message, false
	}
	if match, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); err != nil || !match {
		return predicate("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")
	}
	for _, other := range others {
		if portsCollide(other, pod) {
			return predicate("NodePorts", "node(s) didn't have free ports for the requested pod ports")
		}
	}
	return "", "", true
}

func predicate(name, description string) (reason, message string, ok bool) {
	return name, fmt.Sprintf("Predicate %s failed: %s", name, description), false
}

func fitsResources(node *corev1.Node, others []*corev1.Pod, pod *corev1.Pod) (reason, message string, ok bool) {
	refuse := func(name corev1.ResourceName, requested, used, capacity int64) (string, string, bool) {
		return "OutOf" + string(name), fmt.Sprintf("Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d", name, requested, used, capacity), false
	}
	allocatable := node.Status.Allocatable
	if most := allocatable.Pods().Value(); most > 0 && int64(len(others))+1 > most {
		return refuse(corev1.ResourcePods, 1, int64(len(others)), most)
	}
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	if len(requests) == 0 {
		return "", "", true
	}
	used := corev1.ResourceList{}
	for _, p := range others {
		for name, q := range resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{}) {
			sum := used[name]
			sum.Add(q)
			used[name] = sum
		}
	}
	for name, q := range requests {
		have, offered := allocatable[name]
		if !offered && strings.Contains(string(name), "/") {
			continue // whoever offers it is not there (yet), the scheduler knew it
		}
		u := used[name]
		amount := func(v interface {
			MilliValue() int64
			Value() int64
		}) int64 {
			if name == corev1.ResourceCPU {
				return v.MilliValue()
			}
			return v.Value()
		}
		if r := amount(&q); r > 0 && r > amount(&have)-amount(&u) {
			return refuse(name, r, amount(&u), amount(&have))
		}
	}
	return "", "", true
}

func portsCollide(a, b *corev1.Pod) bool {
	type key struct {
		port     int32
		protocol corev1.Protocol
	}
	used := map[key][]string{}
	each := func(p *corev1.Pod, f func(key, string)) {
		for i := range p.Spec.Containers {
			for _, cp := range p.Spec.Containers[i].Ports {
				if cp.HostPort > 0 {
					ip, protocol := cp.HostIP, cp.Protocol
					if ip == "" {
						ip = "0.0.0.0"
					}
					if protocol == "" {
						protocol = corev1.ProtocolTCP
					}
					f(key{cp.HostPort, protocol}, ip)
				}
			}
		}
	}
	each(a, func(k key, ip string) { used[k] = append(used[k], ip) })
	collide := false
	each(b, func(k key, ip string) {
		for _, other := range used[k] {
			if other == ip || other == "0.0.0.0" || ip == "0.0.0.0" {
				collide = true
			}
		}
	})
	return collide
}
