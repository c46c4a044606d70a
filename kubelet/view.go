package kubelet

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubelettypes "k8s.io/kubelet/pkg/types"

	"github.com/periplus/periplus/kubelet/server"
)

// What the kubelet's server and other rooms ask about pods.
var _ server.Kubelet = (*Kubelet)(nil)

// share makes what other goroutines may ask about the pod's containers known,
// and tells those who wait for the end of one.
func (w *worker) share(rt *podRuntime) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.boxID, w.ips = "", rt.ips()
	if s := rt.current(); s != nil && s.ready {
		w.boxID = s.id
	}
	w.live, w.liveByName = map[string]bool{}, map[string]string{}
	for _, c := range rt.containers {
		if c.running() {
			w.live[c.id], w.liveByName[c.name] = true, c.id
		}
	}
	for id, ch := range w.exits {
		if !w.live[id] {
			close(ch)
			delete(w.exits, id)
		}
	}
}

// addresses are the pod's own.
func (w *worker) addresses() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ips
}

// Pods returns the node's pods with their newest status. They are not modified.
func (k *Kubelet) Pods() []*corev1.Pod {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := make([]*corev1.Pod, 0, len(k.workers))
	for _, w := range k.workers {
		if p := w.view(); p != nil {
			out = append(out, p)
		}
	}
	return out
}

// Pod returns one pod of the node with its newest status.
func (k *Kubelet) Pod(namespace, name string) (*corev1.Pod, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var found *corev1.Pod
	for _, w := range k.workers {
		p := w.view()
		if p == nil || p.Namespace != namespace || p.Name != name {
			continue
		}
		if found == nil || found.DeletionTimestamp != nil {
			found = p
		}
	}
	return found, found != nil
}

// view is the pod with its newest status.
func (w *worker) view() *corev1.Pod {
	w.mu.Lock()
	pod := w.pod
	w.mu.Unlock()
	if pod == nil {
		return nil
	}
	if st := w.status.last(); st != nil && st != &pod.Status {
		out := *pod
		out.Status = *st
		return &out
	}
	return pod
}

// PodStatus is the newest known status of a pod, its own if the node does not have it.
func (k *Kubelet) PodStatus(pod *corev1.Pod) corev1.PodStatus {
	st := pod.Status
	k.mu.Lock()
	w := k.workers[pod.UID]
	k.mu.Unlock()
	if w != nil {
		if last := w.status.last(); last != nil {
			st = *last
		}
		if ips := w.addresses(); len(ips) > 0 && !isHostNetwork(pod) {
			st.PodIP, st.PodIPs = ips[0], nil
			for _, ip := range ips {
				st.PodIPs = append(st.PodIPs, corev1.PodIP{IP: ip})
			}
		}
	}
	if host := k.node.IPs(); len(host) > 0 {
		st.HostIP = host[0]
	}
	return st
}

// RunningPods returns the pods as the runtime sees them: metadata and container names.
func (k *Kubelet) RunningPods(ctx context.Context) ([]*corev1.Pod, error) {
	list, err := k.cfg.Runtime.ListContainers(ctx, &runtimeapi.ListContainersRequest{
		Filter: &runtimeapi.ContainerFilter{State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING}}})
	if err != nil {
		return nil, err
	}
	pods := map[string]*corev1.Pod{}
	var out []*corev1.Pod
	for _, c := range list.Containers {
		uid := c.Labels[kubelettypes.KubernetesPodUIDLabel]
		if uid == "" {
			continue
		}
		p := pods[uid]
		if p == nil {
			p = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Name: c.Labels[kubelettypes.KubernetesPodNameLabel], Namespace: c.Labels[kubelettypes.KubernetesPodNamespaceLabel], UID: types.UID(uid)}}
			pods[uid] = p
			out = append(out, p)
		}
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{
			Name: c.Labels[kubelettypes.KubernetesContainerNameLabel], Image: c.GetImage().GetImage()})
	}
	return out, nil
}

// SandboxID returns the runtime's ID of the pod's ready sandbox.
func (k *Kubelet) SandboxID(uid types.UID) (string, bool) {
	k.mu.Lock()
	w := k.workers[uid]
	k.mu.Unlock()
	if w == nil {
		return "", false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.boxID, w.boxID != ""
}

// Exited returns a channel that is closed when the container has ended; for one
// that is unknown or has ended it is closed already.
func (k *Kubelet) Exited(containerID string) <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, w := range k.workers {
		if ch := w.exit(containerID); ch != nil {
			return ch
		}
	}
	closed := make(chan struct{})
	close(closed)
	return closed
}

func (w *worker) exit(id string) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.live[id] {
		return nil
	}
	if w.exits == nil {
		w.exits = map[string]chan struct{}{}
	}
	if w.exits[id] == nil {
		w.exits[id] = make(chan struct{})
	}
	return w.exits[id]
}

// errNoNode is returned by Healthy before the node is registered.
var errNoNode = errors.New("the node is not registered yet")

// Healthy returns nil or what is wrong.
func (k *Kubelet) Healthy() error {
	if k.Node() == nil {
		return errNoNode
	}
	return nil
}
