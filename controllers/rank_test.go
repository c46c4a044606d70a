package controllers_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/controllers"
)

// TestRankForDeletion compares two pods at a time: the first of each pair goes first.
func TestRankForDeletion(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	pod := func(name string, change ...func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))}}
		p.Spec.NodeName = "n1"
		p.Status.Phase = corev1.PodRunning
		for _, c := range change {
			c(p)
		}
		return p
	}
	ready := func(ago time.Duration) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-ago))}}
		}
	}
	cost := func(c string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Annotations = map[string]string{"controller.kubernetes.io/pod-deletion-cost": c}
		}
	}
	restarts := func(n int32) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: n}} }
	}
	node := func(n string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = n } }
	age := func(d time.Duration) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(now.Add(-d)) }
	}
	crowd := []*corev1.Pod{pod("x", node("n2")), pod("y", node("n2")), pod("z", node("n1"))}
	for _, test := range []struct {
		name          string
		first, second *corev1.Pod
		related       []*corev1.Pod
	}{
		{"unassigned", pod("a", node("")), pod("b"), nil},
		{"pending", pod("a", func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }), pod("b"), nil},
		{"not ready", pod("a"), pod("b", ready(time.Hour)), nil},
		{"readiness before cost", pod("a", cost("100")), pod("b", ready(time.Hour)), nil},
		{"cheap", pod("a", cost("-5")), pod("b"), nil},
		{"crowded node", pod("a", node("n2")), pod("b", node("n1")), crowd},
		{"ready for less", pod("a", ready(time.Second)), pod("b", ready(time.Hour)), nil},
		{"more restarts", pod("a", restarts(3)), pod("b", restarts(1)), nil},
		{"younger", pod("a", age(time.Minute)), pod("b", age(time.Hour)), nil},
	} {
		for _, order := range [][]*corev1.Pod{{test.first, test.second}, {test.second, test.first}} {
			pods := slices.Clone(order)
			controllers.RankForDeletion(pods, test.related, now)
			if pods[0] != test.first {
				t.Errorf("%s: the other pod goes first", test.name)
			}
		}
	}
}
