package kubelet

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/kubelet/probe"
)

// reporter derives a pod's API status. Same input, same status (condition times
// are settled by the writer, which knows the previous ones).
type reporter struct {
	pod         *corev1.Pod
	old         *corev1.PodStatus // the last one reported, or the API's
	rt          *podRuntime       // nil before the first observation
	waiting     map[string]waitReason
	probes      probeResults
	containerID func(string) string
	hostIPs     []string
	startTime   time.Time
	cause       cause
	resize      []*corev1.PodCondition // nil entries do not count
	terminating bool
	terminated  bool
}

func (r *reporter) status() *corev1.PodStatus {
	if r.rt == nil {
		r.rt = &podRuntime{}
	}
	if r.old == nil {
		r.old = &r.pod.Status
	}
	if podFinished(r.old) && len(r.old.ContainerStatuses) == 0 && len(r.rt.containers) == 0 {
		return r.old.DeepCopy() // rejected in an earlier life: there is nothing to add
	}
	st := &corev1.PodStatus{
		ObservedGeneration: r.pod.Generation,
		QOSClass:           r.old.QOSClass,
		Reason:             r.old.Reason,
		Message:            r.old.Message,
		StartTime:          stamp(r.startTime),
	}
	if r.cause.rejected && len(r.rt.containers) == 0 {
		st.Phase, st.Reason, st.Message = r.cause.phase, r.cause.reason, r.cause.message
		return st
	}
	st.InitContainerStatuses = r.containers(r.pod.Spec.InitContainers, r.old.InitContainerStatuses, true)
	st.ContainerStatuses = r.containers(r.pod.Spec.Containers, r.old.ContainerStatuses, false)
	if n := len(r.pod.Spec.EphemeralContainers); n > 0 {
		specs := make([]corev1.Container, n)
		for i := range specs {
			specs[i] = *ephemeral(&r.pod.Spec.EphemeralContainers[i])
		}
		st.EphemeralContainerStatuses = r.containers(specs, r.old.EphemeralContainerStatuses, false)
	}
	r.addresses(st)
	r.phase(st)
	r.conditions(st)
	return st
}

func (r *reporter) addresses(st *corev1.PodStatus) {
	for _, ip := range r.hostIPs {
		st.HostIPs = append(st.HostIPs, corev1.HostIP{IP: ip})
	}
	if len(r.hostIPs) > 0 {
		st.HostIP = r.hostIPs[0]
	}
	ips := r.rt.ips()
	if isHostNetwork(r.pod) {
		ips = nil
		if st.HostIP != "" {
			ips = r.hostIPs
		}
	}
	if len(ips) == 0 && !isHostNetwork(r.pod) {
		// A stopped sandbox has no address any more, but the pod keeps the one it had.
		st.PodIP, st.PodIPs = r.old.PodIP, r.old.PodIPs
		return
	}
	for _, ip := range ips {
		st.PodIPs = append(st.PodIPs, corev1.PodIP{IP: ip})
	}
	if len(ips) > 0 {
		st.PodIP = ips[0]
	}
}

func (r *reporter) containers(specs []corev1.Container, old []corev1.ContainerStatus, init bool) []corev1.ContainerStatus {
	if len(specs) == 0 {
		return nil
	}
	out := make([]corev1.ContainerStatus, 0, len(specs))
	for i := range specs {
		var prev *corev1.ContainerStatus
		if j := slices.IndexFunc(old, func(s corev1.ContainerStatus) bool { return s.Name == specs[i].Name }); j >= 0 {
			prev = &old[j]
		}
		out = append(out, r.container(&specs[i], prev, init))
	}
	return out
}

func (r *reporter) container(c *corev1.Container, old *corev1.ContainerStatus, init bool) corev1.ContainerStatus {
	st := corev1.ContainerStatus{Name: c.Name, Image: c.Image, Started: new(bool)}
	var runs []*container
	for _, run := range r.rt.containers {
		if run.name == c.Name {
			runs = append(runs, run)
		}
	}
	if len(runs) == 0 {
		r.neverSeen(&st, old, init)
		return st
	}
	cur := runs[0]
	st.Image, st.ImageID, st.ContainerID = orElse(cur.image, c.Image), orElse(cur.imageRef, cur.imageID), r.containerID(cur.id)
	st.RestartCount = cur.restarts
	for _, run := range runs[1:] {
		if run.exited() {
			st.LastTerminationState.Terminated = r.terminatedState(run)
			break
		}
	}
	r.fill(&st, c, cur)
	switch {
	case cur.running():
		st.State.Running = &corev1.ContainerStateRunning{StartedAt: *stamp(cur.started)}
		*st.Started = hasStarted(c, cur, r.probes)
		st.Ready = *st.Started && (!init || isSidecar(c)) && r.isReady(c, cur)
		st.User = userOf(cur)
	case cur.exited():
		st.State.Terminated = r.terminatedState(cur)
		// Only what is to run again waits.
		if wait, ok := r.waiting[c.Name]; ok && !r.terminating && shouldRestart(r.pod, c, cur.exitCode) {
			st.LastTerminationState.Terminated = st.State.Terminated
			st.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: wait.reason, Message: wait.message}}
		} else if init && !isSidecar(c) && cur.exitCode == 0 {
			st.Ready = true
		}
	case r.terminated:
		st.State.Terminated = lostState("The container could not be located when the pod was terminated")
	default:
		st.State.Waiting = r.waitingState(c.Name, init)
	}
	if st.LastTerminationState.Terminated == nil && old != nil && old.RestartCount == st.RestartCount {
		st.LastTerminationState = old.LastTerminationState
	}
	return st
}

// neverSeen is the status of a container of which the runtime has no trace.
func (r *reporter) neverSeen(st, old *corev1.ContainerStatus, init bool) {
	if old != nil {
		st.RestartCount, st.LastTerminationState = old.RestartCount, old.LastTerminationState
		if old.State.Terminated != nil {
			*st = *old.DeepCopy()
			st.Ready = old.Ready && init
			return
		}
		if old.State.Running != nil {
			lost := lostState("The container could not be located when the pod was deleted.  The container used to be Running")
			lost.ContainerID, lost.StartedAt = old.ContainerID, old.State.Running.StartedAt
			if r.terminating {
				lost.Message = "The container could not be located when the pod was terminated"
				st.State.Terminated, st.ContainerID, st.ImageID = lost, old.ContainerID, old.ImageID
				return
			}
			st.LastTerminationState.Terminated = lost
			st.RestartCount++
		}
	}
	st.State.Waiting = r.waitingState(st.Name, init)
}

func (r *reporter) waitingState(name string, init bool) *corev1.ContainerStateWaiting {
	if wait, ok := r.waiting[name]; ok {
		return &corev1.ContainerStateWaiting{Reason: wait.reason, Message: wait.message}
	}
	if init || len(r.pod.Spec.InitContainers) > 0 {
		return &corev1.ContainerStateWaiting{Reason: "PodInitializing"}
	}
	return &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
}

// isReady: a started container without a readiness probe is.
func (r *reporter) isReady(c *corev1.Container, cur *container) bool {
	if c.ReadinessProbe == nil {
		return true
	}
	ok, known := r.probes.Result(cur.id, probe.Readiness)
	return ok && known
}

func (r *reporter) terminatedState(c *container) *corev1.ContainerStateTerminated {
	reason := c.reason
	if reason == "" {
		reason = "Error"
		if c.exitCode == 0 {
			reason = "Completed"
		}
	}
	return &corev1.ContainerStateTerminated{
		ExitCode: c.exitCode, Reason: reason, Message: c.message,
		StartedAt: *stamp(c.started), FinishedAt: *stamp(c.finished),
		ContainerID: r.containerID(c.id),
	}
}

func lostState(message string) *corev1.ContainerStateTerminated {
	return &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "ContainerStatusUnknown", Message: message}
}

// fill adds what a container status repeats of the spec.
func (r *reporter) fill(st *corev1.ContainerStatus, c *corev1.Container, cur *container) {
	if len(c.Resources.Requests) > 0 {
		st.AllocatedResources = c.Resources.Requests
	}
	st.Resources = actualResources(c, cur)
	for i := range c.VolumeMounts {
		m := &c.VolumeMounts[i]
		vm := corev1.VolumeMountStatus{Name: m.Name, MountPath: m.MountPath, ReadOnly: m.ReadOnly}
		if m.ReadOnly {
			disabled := corev1.RecursiveReadOnlyDisabled
			vm.RecursiveReadOnly = &disabled
		}
		st.VolumeMounts = append(st.VolumeMounts, vm)
	}
}

func userOf(c *container) *corev1.ContainerUser {
	l := c.user.GetLinux()
	if l == nil {
		return nil
	}
	return &corev1.ContainerUser{Linux: &corev1.LinuxContainerUser{UID: l.Uid, GID: l.Gid, SupplementalGroups: l.SupplementalGroups}}
}

// stamp is a time with the API's precision of a second.
func stamp(t time.Time) *metav1.Time {
	if t.IsZero() {
		return &metav1.Time{}
	}
	m := metav1.NewTime(t).Rfc3339Copy()
	return &m
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
