package kubelet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/linux/podcgroup"
)

// resizing is how far a pod has come with changed requests and limits (KEP-1287):
//
//	spec ──fits the node?──► allocated ──cgroups changed──► actual
//	          │no: PodResizePending            │error: PodResizeInProgress
type resizing struct {
	allocated map[string]corev1.ResourceRequirements // by container; nil before the first look
	pending   *corev1.PodCondition                   // why the spec is not allocated yet
	failed    *corev1.PodCondition                   // why the allocated is not actual yet
	started   bool                                   // an allocation changed and is not actual yet
}

// resizable lists the containers whose resources may change while they run.
func resizable(pod *corev1.Pod) []*corev1.Container {
	var out []*corev1.Container
	for i := range pod.Spec.InitContainers {
		if isSidecar(&pod.Spec.InitContainers[i]) {
			out = append(out, &pod.Spec.InitContainers[i])
		}
	}
	for i := range pod.Spec.Containers {
		out = append(out, &pod.Spec.Containers[i])
	}
	return out
}

// allocate returns the pod with the resources that the node has granted it: its
// own, or those from before a change for which there is no room (yet).
func (w *worker) allocate(pod *corev1.Pod) *corev1.Pod {
	s := &w.state.resize
	list := resizable(pod)
	if s.allocated == nil {
		s.allocated = make(map[string]corev1.ResourceRequirements, len(list))
		for _, c := range list {
			s.allocated[c.Name] = reportedResources(pod, c)
		}
	}
	same := true
	for _, c := range list {
		a := s.allocated[c.Name]
		same = same && apiequality.Semantic.DeepEqual(a.Requests, c.Resources.Requests) && apiequality.Semantic.DeepEqual(a.Limits, c.Resources.Limits)
	}
	if same {
		s.pending = nil
		return pod
	}
	reason, message := w.k.grant(w, pod)
	if reason == "" {
		for _, c := range list {
			s.allocated[c.Name] = c.Resources
		}
		s.pending, s.failed, s.started = nil, nil, true
		w.setWaitsForRoom(false)
		w.k.cfg.Events.Event(pod, corev1.EventTypeNormal, "ResizeStarted", resizeMessage(pod, "Pod resize started", ""))
		return pod
	}
	if s.pending == nil || s.pending.Reason != reason || s.pending.ObservedGeneration != pod.Generation {
		s.pending = &corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue,
			Reason: reason, Message: message, ObservedGeneration: pod.Generation}
		w.k.cfg.Events.Event(pod, corev1.EventTypeWarning, "Resize"+reason, resizeMessage(pod, "Pod resize "+reason, message))
	}
	w.setWaitsForRoom(reason == corev1.PodReasonDeferred)
	pod = pod.DeepCopy()
	for _, c := range resizable(pod) {
		a := s.allocated[c.Name]
		c.Resources.Requests, c.Resources.Limits = a.Requests, a.Limits
	}
	return pod
}

// reportedResources are what an earlier kubelet had granted a container, its spec
// if there was none.
func reportedResources(pod *corev1.Pod, c *corev1.Container) corev1.ResourceRequirements {
	if pod.Status.StartTime != nil {
		for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
			for i := range list {
				if st := &list[i]; st.Name == c.Name && st.Resources != nil {
					return *st.Resources
				}
			}
		}
	}
	return c.Resources
}

// grant gives the pod its new share of the node, or says why it cannot have it.
func (k *Kubelet) grant(w *worker, pod *corev1.Pod) (reason, message string) {
	node := k.Node()
	if node == nil {
		return "", ""
	}
	k.admission.Lock()
	defer k.admission.Unlock()
	for name, q := range resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}) {
		have := node.Status.Allocatable[name]
		if q.Cmp(have) > 0 {
			requested, capacity := q.Value(), have.Value()
			if name == corev1.ResourceCPU {
				requested, capacity = q.MilliValue(), have.MilliValue()
			}
			return corev1.PodReasonInfeasible, fmt.Sprintf("Node didn't have enough capacity: %s, requested: %d, capacity: %d", name, requested, capacity)
		}
	}
	if _, message, ok := fitsResources(node, k.admitted(w), pod); !ok {
		return corev1.PodReasonDeferred, message
	}
	w.setAdmitted(pod)
	return "", ""
}

// resizeMessage is the text of the events about a resize.
func resizeMessage(pod *corev1.Pod, prefix, problem string) string {
	type allocation struct {
		Name      string                      `json:"name"`
		Resources corev1.ResourceRequirements `json:"resources"`
	}
	var summary struct {
		InitContainers []allocation `json:"initContainers,omitempty"`
		Containers     []allocation `json:"containers,omitempty"`
		Generation     int64        `json:"generation"`
		Error          string       `json:"error,omitempty"`
	}
	summary.Generation, summary.Error = pod.Generation, problem
	for _, c := range pod.Spec.InitContainers {
		summary.InitContainers = append(summary.InitContainers, allocation{c.Name, c.Resources})
	}
	for _, c := range pod.Spec.Containers {
		summary.Containers = append(summary.Containers, allocation{c.Name, c.Resources})
	}
	b, err := json.Marshal(summary)
	if err != nil {
		return prefix
	}
	return prefix + ": " + string(b)
}

// resizeOrder is a running container whose limits are to change.
type resizeOrder struct {
	container *container
	spec      *corev1.Container
}

// resize orders a change of a running container's limits. It reports whether the
// container's policy wants a restart instead.
func (a *actions) resizeOrRestart(c *corev1.Container, st *container) (restart bool) {
	cpu, memory := limitsDiffer(c, st)
	if !cpu && !memory {
		return false
	}
	for _, p := range c.ResizePolicy {
		if p.RestartPolicy == corev1.RestartContainer && (p.ResourceName == corev1.ResourceCPU && cpu || p.ResourceName == corev1.ResourceMemory && memory) {
			return true
		}
	}
	a.resize = append(a.resize, resizeOrder{st, c})
	return false
}

// limitsDiffer compares a running container's limits with its spec's. A runtime
// that does not tell them has nothing to change.
func limitsDiffer(c *corev1.Container, st *container) (cpu, memory bool) {
	have := st.resources
	if have == nil || !st.running() {
		return false, false
	}
	want := cpuAndMemory(c.Resources.Requests, c.Resources.Limits)
	return want.CpuShares != have.CpuShares || max(want.CpuQuota, 0) != max(have.CpuQuota, 0),
		max(want.MemoryLimitInBytes, 0) != max(have.MemoryLimitInBytes, 0)
}

// resizeAll changes the limits of running containers. The pod's own are raised
// before and lowered after its containers': the kernel lets no child have more.
func (e *execution) resizeAll(ctx context.Context, orders []resizeOrder) error {
	k := e.w.k
	ensure := func() error {
		if k.cfg.Cgroups == nil {
			return nil
		}
		_, err := k.cfg.Cgroups.Ensure(e.pod)
		return err
	}
	first := ensure() // fails where it has to wait for the containers
	var errs []error
	for _, o := range orders {
		_, err := k.cfg.Runtime.UpdateContainerResources(ctx, &runtimeapi.UpdateContainerResourcesRequest{
			ContainerId: o.container.id, Linux: k.containerResources(e.pod, o.spec),
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("resize container %s: %w", o.spec.Name, err))
		}
	}
	if first != nil && len(errs) == 0 {
		errs = append(errs, ensure())
	}
	err := errors.Join(errs...)
	if s := &e.w.state.resize; err != nil && ctx.Err() == nil {
		if s.failed == nil {
			k.cfg.Events.Event(e.pod, corev1.EventTypeWarning, "ResizeError", resizeMessage(e.pod, "Pod resize error", rpcMessage(err)))
		}
		s.failed = &corev1.PodCondition{Type: corev1.PodResizeInProgress, Status: corev1.ConditionTrue,
			Reason: corev1.PodReasonError, Message: rpcMessage(err), ObservedGeneration: e.pod.Generation}
	}
	return err
}

// resized notes that everything allocated is actual.
func (w *worker) resized(pod *corev1.Pod, rt *podRuntime) {
	s := &w.state.resize
	if !s.started {
		return
	}
	for _, c := range resizable(pod) {
		if st := rt.newest(c.Name); st != nil {
			if cpu, memory := limitsDiffer(c, st); cpu || memory {
				return
			}
		}
	}
	s.started, s.failed = false, nil
	w.k.cfg.Events.Event(pod, corev1.EventTypeNormal, "ResizeCompleted", resizeMessage(pod, "Pod resize completed", ""))
}

// actualResources are those of the spec, with what a running container really has.
func actualResources(c *corev1.Container, st *container) *corev1.ResourceRequirements {
	r := &corev1.ResourceRequirements{Requests: c.Resources.Requests, Limits: c.Resources.Limits}
	cpu, memory := limitsDiffer(c, st)
	if !cpu && !memory {
		return r
	}
	r = r.DeepCopy()
	have, want := st.resources, cpuAndMemory(c.Resources.Requests, c.Resources.Limits)
	if _, ok := r.Requests[corev1.ResourceCPU]; ok && have.CpuShares != want.CpuShares {
		r.Requests[corev1.ResourceCPU] = *resource.NewMilliQuantity((have.CpuShares*1000+1023)/1024, resource.DecimalSI)
	}
	if max(have.CpuQuota, 0) != max(want.CpuQuota, 0) {
		setLimit(r, corev1.ResourceCPU, resource.NewMilliQuantity(have.CpuQuota*1000/podcgroup.Period, resource.DecimalSI))
	}
	if memory {
		setLimit(r, corev1.ResourceMemory, resource.NewQuantity(have.MemoryLimitInBytes, resource.BinarySI))
	}
	return r
}

func setLimit(r *corev1.ResourceRequirements, name corev1.ResourceName, q *resource.Quantity) {
	if q.Sign() <= 0 {
		delete(r.Limits, name)
		return
	}
	if r.Limits == nil {
		r.Limits = corev1.ResourceList{}
	}
	r.Limits[name] = *q
}

// setWaitsForRoom says whether the pod wants to know when another one leaves.
func (w *worker) setWaitsForRoom(waits bool) {
	w.mu.Lock()
	w.waitsForRoom = waits
	w.mu.Unlock()
}

// roomFreed lets pods look again that wait for the room of one that has gone.
func (k *Kubelet) roomFreed() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, w := range k.workers {
		w.mu.Lock()
		if w.waitsForRoom {
			w.wakeLocked()
		}
		w.mu.Unlock()
	}
}
