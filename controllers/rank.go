package controllers

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// deletionCost is the annotation by which a pod says how much its loss costs.
const deletionCost = "controller.kubernetes.io/pod-deletion-cost"

// RankForDeletion sorts active pods so that the first are the best to delete when
// scaling down. related are the active pods of the same workload, over all its
// replica sets: pods on crowded nodes go before others. In order of weight:
//
//  1. without a node before with one
//  2. Pending before Unknown before Running
//  3. not ready before ready
//  4. lower deletion cost
//  5. more related pods on the same node
//  6. ready for a shorter time (on a logarithmic scale)
//  7. more container restarts
//  8. younger (on a logarithmic scale, then by UID, so that the choice is not always the youngest)
func RankForDeletion(pods, related []*corev1.Pod, now time.Time) {
	onNode := map[string]int{}
	for _, p := range related {
		if PodActive(p) {
			onNode[p.Spec.NodeName]++
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		if c := cmp.Or(
			boolOrder(a.Spec.NodeName != "", b.Spec.NodeName != ""),
			cmp.Compare(phaseOrder(a.Status.Phase), phaseOrder(b.Status.Phase)),
			boolOrder(PodReady(a), PodReady(b)),
			cmp.Compare(costOf(a), costOf(b)),
			cmp.Compare(onNode[b.Spec.NodeName], onNode[a.Spec.NodeName]),
		); c != 0 {
			return c
		}
		if PodReady(a) && PodReady(b) {
			if c := ageOrder(readySince(a), readySince(b), a, b, now); c != 0 {
				return c
			}
		}
		if c := compareRestarts(a, b); c != 0 {
			return c
		}
		return ageOrder(a.CreationTimestamp.Time, b.CreationTimestamp.Time, a, b, now)
	})
}

func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func phaseOrder(p corev1.PodPhase) int {
	switch p {
	case corev1.PodPending:
		return 0
	case corev1.PodUnknown:
		return 1
	}
	return 2
}

func costOf(p *corev1.Pod) int64 {
	n, err := strconv.ParseInt(p.Annotations[deletionCost], 10, 32)
	if err != nil {
		return 0
	}
	return n
}

func readySince(p *corev1.Pod) time.Time {
	if c := PodCondition(p, corev1.PodReady); c != nil && c.Status == corev1.ConditionTrue {
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}

// compareRestarts puts the pod with more restarts of one container first.
func compareRestarts(a, b *corev1.Pod) int {
	ra, sa := maxRestarts(a)
	rb, sb := maxRestarts(b)
	return cmp.Or(cmp.Compare(rb, ra), cmp.Compare(sb, sa))
}

func maxRestarts(p *corev1.Pod) (regular, sidecar int32) {
	for i := range p.Status.ContainerStatuses {
		regular = max(regular, p.Status.ContainerStatuses[i].RestartCount)
	}
	sidecars := map[string]bool{}
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		sidecars[c.Name] = c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	}
	for i := range p.Status.InitContainerStatuses {
		if s := &p.Status.InitContainerStatuses[i]; sidecars[s.Name] {
			sidecar = max(sidecar, s.RestartCount)
		}
	}
	return regular, sidecar
}

// ageOrder puts the younger first, where ages of the same power of two count as
// equal and the UID decides. A zero time counts as younger than any other.
func ageOrder(ta, tb time.Time, a, b *corev1.Pod, now time.Time) int {
	if ta.Equal(tb) {
		return 0
	}
	if ta.IsZero() || tb.IsZero() {
		return boolOrder(!ta.IsZero(), !tb.IsZero())
	}
	return cmp.Or(cmp.Compare(magnitude(now.Sub(ta)), magnitude(now.Sub(tb))), cmp.Compare(a.UID, b.UID))
}

func magnitude(d time.Duration) int {
	if d <= 0 {
		return -1
	}
	return int(math.Log2(float64(d)))
}
