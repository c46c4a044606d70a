package hollow

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/client/conditions"
)

// scheme begins the IDs of containers and images.
const scheme = "hollow://"

// digest is a made-up identifier: the same for the same text.
func digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])
}

// asReported says whether the API shows what running would report.
func (p *pod) asReported() bool {
	st := &p.object.Status
	if st.Phase != corev1.PodRunning || st.ObservedGeneration < p.object.Generation {
		return false
	}
	want := conditions.PodGates(p.object).Status
	c := conditions.Pod(st, corev1.PodReady)
	return c != nil && c.Status == want
}

// running is the status of a pod all of whose containers run and are ready.
func (p *pod) running(now time.Time) *corev1.PodStatus {
	st := p.common()
	st.Phase = corev1.PodRunning
	for i := range st.ContainerStatuses {
		c := &st.ContainerStatuses[i]
		c.Ready = true
		c.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(p.started)}
		if p.restarts > 0 {
			c.LastTerminationState.Terminated = p.terminated(c.Name, p.exitCode, p.restarts-1, p.started)
		}
	}
	ready := conditions.PodGates(p.object)
	yes := corev1.PodCondition{Status: corev1.ConditionTrue}
	p.setConditions(st, now, yes, yes, ready, yes)
	return st
}

// ended is the status of a pod whose containers have ended by themselves.
func (p *pod) ended(now time.Time) *corev1.PodStatus {
	st := p.finished(now, p.exitCode)
	st.Phase = corev1.PodSucceeded
	initialized, ready := corev1.PodCondition{Status: corev1.ConditionTrue, Reason: "PodCompleted"}, corev1.PodCondition{Status: corev1.ConditionFalse, Reason: "PodCompleted"}
	if p.exitCode != 0 {
		st.Phase = corev1.PodFailed
		initialized.Reason, ready.Reason = "", "PodFailed"
	}
	p.setConditions(st, now, corev1.PodCondition{Status: corev1.ConditionFalse}, initialized, ready, ready)
	return st
}

// stopped is the status of a pod whose containers have obeyed the signal to stop.
func (p *pod) stopped(now time.Time) *corev1.PodStatus {
	st := p.finished(now, 0)
	st.Phase = corev1.PodSucceeded
	ready := corev1.PodCondition{Status: corev1.ConditionFalse, Reason: "PodCompleted"}
	p.setConditions(st, now, corev1.PodCondition{Status: corev1.ConditionFalse}, corev1.PodCondition{Status: corev1.ConditionTrue, Reason: "PodCompleted"}, ready, ready)
	return st
}

func (p *pod) finished(now time.Time, exitCode int32) *corev1.PodStatus {
	st := p.common()
	for i := range st.ContainerStatuses {
		c := &st.ContainerStatuses[i]
		*c.Started = false
		c.State.Terminated = p.terminated(c.Name, exitCode, p.restarts, now)
	}
	for i := range st.InitContainerStatuses {
		c := &st.InitContainerStatuses[i]
		if c.State.Running != nil { // a sidecar
			*c.Started, c.Ready = false, false
			c.State = corev1.ContainerState{Terminated: p.terminated(c.Name, 0, 0, now)}
		}
	}
	return st
}

// common is what a status has in each phase.
func (p *pod) common() *corev1.PodStatus {
	obj := p.object
	old := &obj.Status
	st := &corev1.PodStatus{
		ObservedGeneration: obj.Generation, QOSClass: old.QOSClass, StartTime: old.StartTime,
		NominatedNodeName: old.NominatedNodeName, ResourceClaimStatuses: old.ResourceClaimStatuses,
		HostIP: p.node.ip.String(), HostIPs: []corev1.HostIP{{IP: p.node.ip.String()}},
	}
	if st.StartTime == nil {
		at := metav1.NewTime(p.started)
		st.StartTime = &at
	}
	ip := p.ip
	if obj.Spec.HostNetwork {
		ip = p.node.ip
	}
	if ip != (netip.Addr{}) {
		st.PodIP, st.PodIPs = ip.String(), []corev1.PodIP{{IP: ip.String()}}
	}
	for i := range obj.Spec.InitContainers {
		c := p.container(&obj.Spec.InitContainers[i])
		if c.Ready = true; isSidecar(&obj.Spec.InitContainers[i]) {
			c.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(p.started)}
		} else {
			*c.Started = false
			c.State.Terminated = p.terminated(c.Name, 0, 0, p.started)
		}
		st.InitContainerStatuses = append(st.InitContainerStatuses, c)
	}
	for i := range obj.Spec.Containers {
		c := p.container(&obj.Spec.Containers[i])
		c.RestartCount = p.restarts
		st.ContainerStatuses = append(st.ContainerStatuses, c)
	}
	return st
}

func isSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

func (p *pod) container(c *corev1.Container) corev1.ContainerStatus {
	started := true
	st := corev1.ContainerStatus{
		Name: c.Name, Image: c.Image, ImageID: "sha256:" + digest(c.Image), Started: &started,
		ContainerID: p.containerID(c.Name, p.restarts), AllocatedResources: c.Resources.Requests,
	}
	if len(c.Resources.Requests)+len(c.Resources.Limits) > 0 {
		st.Resources = &corev1.ResourceRequirements{Requests: c.Resources.Requests, Limits: c.Resources.Limits}
	}
	return st
}

func (p *pod) containerID(name string, restarts int32) string {
	return scheme + digest(string(p.uid), name, strconv.Itoa(int(restarts)))
}

func (p *pod) terminated(name string, exitCode, restarts int32, at time.Time) *corev1.ContainerStateTerminated {
	reason := "Completed"
	if exitCode != 0 {
		reason = "Error"
	}
	finished := metav1.NewTime(at).Rfc3339Copy()
	started := metav1.NewTime(p.started)
	if finished.Before(&started) {
		started = finished
	}
	return &corev1.ContainerStateTerminated{
		ExitCode: exitCode, Reason: reason, StartedAt: started, FinishedAt: finished, ContainerID: p.containerID(name, restarts),
	}
}

// setConditions appends the kubelet's conditions, and those of others. One whose
// status does not change keeps its time.
func (p *pod) setConditions(st *corev1.PodStatus, now time.Time, sandbox, initialized, ready, containers corev1.PodCondition) {
	old := &p.object.Status
	own := []corev1.PodConditionType{corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled}
	for i, c := range []corev1.PodCondition{sandbox, initialized, ready, containers, {Status: corev1.ConditionTrue}} {
		c.Type, c.ObservedGeneration, c.LastTransitionTime = own[i], p.object.Generation, metav1.NewTime(now).Rfc3339Copy()
		if prev := conditions.Pod(old, c.Type); prev != nil && prev.Status == c.Status {
			c.LastTransitionTime = prev.LastTransitionTime
		}
		st.Conditions = append(st.Conditions, c)
	}
	for _, c := range old.Conditions {
		if !slices.Contains(own, c.Type) {
			st.Conditions = append(st.Conditions, c)
		}
	}
}
