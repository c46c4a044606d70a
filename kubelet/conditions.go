package kubelet

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/client/conditions"
)

// ownedConditions are the pod conditions that the kubelet writes.
var ownedConditions = map[corev1.PodConditionType]bool{
	corev1.PodReadyToStartContainers: true,
	corev1.PodInitialized:            true,
	corev1.PodReady:                  true,
	corev1.ContainersReady:           true,
	corev1.PodScheduled:              true,
	corev1.PodResizePending:          true,
	corev1.PodResizeInProgress:       true,
}

// conditions appends the kubelet's conditions, without times.
func (r *reporter) conditions(st *corev1.PodStatus) {
	containersReady := r.containersReady(st)
	add := func(kind corev1.PodConditionType, c corev1.PodCondition) {
		c.Type, c.ObservedGeneration = kind, r.pod.Generation
		st.Conditions = append(st.Conditions, c)
	}
	add(corev1.PodReadyToStartContainers, r.readyToStart())
	add(corev1.PodInitialized, r.initialized(st))
	add(corev1.PodReady, r.ready(containersReady))
	add(corev1.ContainersReady, containersReady)
	add(corev1.PodScheduled, corev1.PodCondition{Status: corev1.ConditionTrue})
	if r.cause.condition != nil {
		st.Conditions = append(st.Conditions, *r.cause.condition)
	}
	for _, c := range r.resize {
		if c != nil {
			st.Conditions = append(st.Conditions, *c)
		}
	}
}

func (r *reporter) readyToStart() corev1.PodCondition {
	s := r.rt.current()
	if s != nil && s.ready && (isHostNetwork(r.pod) || len(s.ips) > 0) {
		return corev1.PodCondition{Status: corev1.ConditionTrue}
	}
	return corev1.PodCondition{Status: corev1.ConditionFalse}
}

func (r *reporter) initialized(st *corev1.PodStatus) corev1.PodCondition {
	if st.Phase == corev1.PodSucceeded {
		return corev1.PodCondition{Status: corev1.ConditionTrue, Reason: "PodCompleted"}
	}
	var incomplete []string
	for i := range r.pod.Spec.InitContainers {
		c, s := &r.pod.Spec.InitContainers[i], &st.InitContainerStatuses[i]
		if isSidecar(c) && s.Started != nil && *s.Started || !isSidecar(c) && s.Ready {
			continue
		}
		incomplete = append(incomplete, s.Name)
	}
	// Once app containers have run, sidecars coming and going change nothing.
	for i := range st.ContainerStatuses {
		if s := &st.ContainerStatuses[i]; s.State.Running != nil || s.State.Terminated != nil || s.LastTerminationState.Terminated != nil {
			incomplete = nil
		}
	}
	if len(incomplete) > 0 {
		return corev1.PodCondition{Status: corev1.ConditionFalse, Reason: "ContainersNotInitialized",
			Message: fmt.Sprintf("containers with incomplete status: [%s]", strings.Join(incomplete, " "))}
	}
	return corev1.PodCondition{Status: corev1.ConditionTrue}
}

func (r *reporter) containersReady(st *corev1.PodStatus) corev1.PodCondition {
	switch st.Phase {
	case corev1.PodSucceeded:
		return corev1.PodCondition{Status: corev1.ConditionFalse, Reason: "PodCompleted"}
	case corev1.PodFailed:
		return corev1.PodCondition{Status: corev1.ConditionFalse, Reason: "PodFailed"}
	}
	var unready []string
	for i := range r.pod.Spec.InitContainers {
		if s := &st.InitContainerStatuses[i]; isSidecar(&r.pod.Spec.InitContainers[i]) && !s.Ready {
			unready = append(unready, s.Name)
		}
	}
	for i := range st.ContainerStatuses {
		if s := &st.ContainerStatuses[i]; !s.Ready {
			unready = append(unready, s.Name)
		}
	}
	if len(unready) > 0 {
		return corev1.PodCondition{Status: corev1.ConditionFalse, Reason: "ContainersNotReady",
			Message: fmt.Sprintf("containers with unready status: [%s]", strings.Join(unready, " "))}
	}
	return corev1.PodCondition{Status: corev1.ConditionTrue}
}

// ready adds the readiness gates to containersReady.
func (r *reporter) ready(containersReady corev1.PodCondition) corev1.PodCondition {
	if containersReady.Status != corev1.ConditionTrue {
		return containersReady
	}
	return conditions.PodGates(r.pod)
}

func conditionTrue(st *corev1.PodStatus, kind corev1.PodConditionType) bool {
	c := conditions.Pod(st, kind)
	return c != nil && c.Status == corev1.ConditionTrue
}
