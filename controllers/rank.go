package controllers

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/client/conditions"
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
	// What is compared is worked out once a pod: there may be ten thousand of them.
	ranks := make([]rank, len(pods))
	for i, p := range pods {
		r := &ranks[i]
		*r = rank{
			pod: p, bound: p.Spec.NodeName != "", phase: phaseOrder(p.Status.Phase), ready: conditions.PodReady(p), cost: costOf(p),
			crowd: onNode[p.Spec.NodeName], readyAge: ageOf(readySince(p), now), age: ageOf(p.CreationTimestamp.Time, now),
		}
		r.restarts, r.sidecarRestarts = maxRestarts(p)
	}
	slices.SortFunc(ranks, func(a, b rank) int { return a.compare(&b) })
	for i := range ranks {
		pods[i] = ranks[i].pod
	}
}

// A rank is what a pod's place in the order of deletion depends on.
type rank struct {
	pod                       *corev1.Pod
	bound, ready              bool
	phase                     int
	cost                      int64
	crowd                     int
	readyAge, age             age
	restarts, sidecarRestarts int32
}

func (r *rank) compare(o *rank) int {
	if c := cmp.Or(
		boolOrder(r.bound, o.bound), cmp.Compare(r.phase, o.phase), boolOrder(r.ready, o.ready),
		cmp.Compare(r.cost, o.cost), cmp.Compare(o.crowd, r.crowd),
	); c != 0 {
		return c
	}
	if r.ready && o.ready {
		if c := r.readyAge.compare(o.readyAge, r.pod, o.pod); c != 0 {
			return c
		}
	}
	// The pod with more restarts of one container first.
	if c := cmp.Or(cmp.Compare(o.restarts, r.restarts), cmp.Compare(o.sidecarRestarts, r.sidecarRestarts)); c != 0 {
		return c
	}
	return r.age.compare(o.age, r.pod, o.pod)
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
	text, ok := p.Annotations[deletionCost]
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0
	}
	return n
}

func readySince(p *corev1.Pod) time.Time {
	if c := conditions.Pod(&p.Status, corev1.PodReady); c != nil && c.Status == corev1.ConditionTrue {
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}

func maxRestarts(p *corev1.Pod) (regular, sidecar int32) {
	for i := range p.Status.ContainerStatuses {
		regular = max(regular, p.Status.ContainerStatuses[i].RestartCount)
	}
	if len(p.Status.InitContainerStatuses) == 0 {
		return regular, 0
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

// An age is since when something is so, and for how long, as a power of two.
type age struct {
	at        time.Time
	magnitude int
}

func ageOf(at, now time.Time) age { return age{at, magnitude(now.Sub(at))} }

// compare puts the younger first, where ages of the same power of two count as equal
// and the UID decides. A zero time counts as younger than any other.
func (x age) compare(y age, a, b *corev1.Pod) int {
	if x.at.Equal(y.at) {
		return 0
	}
	if x.at.IsZero() || y.at.IsZero() {
		return boolOrder(!x.at.IsZero(), !y.at.IsZero())
	}
	return cmp.Or(cmp.Compare(x.magnitude, y.magnitude), cmp.Compare(a.UID, b.UID))
}

func magnitude(d time.Duration) int {
	if d <= 0 {
		return -1
	}
	return int(math.Log2(float64(d)))
}
