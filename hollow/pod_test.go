package hollow

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/client/conditions"
)

// life follows a pod through what is written of it: each step and when.
func life(obj *corev1.Pod, c *Config, until time.Duration, at map[time.Duration]func(*corev1.Pod)) (steps []step, times []time.Duration) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f := &Fleet{cfg: *c}
	p := newPod(obj, newNode(f, 0), c, begin)
	p.object = obj
	for now := begin; !now.After(begin.Add(until)); now = now.Add(100 * time.Millisecond) {
		if change := at[now.Sub(begin)]; change != nil {
			change(p.object)
		}
		for {
			s, due := p.next(c, now)
			if s == nothing || due.After(now) {
				break
			}
			steps, times = append(steps, s), append(times, now.Sub(begin))
			if st := p.status(s, now); st != nil {
				p.object.Status = *st
			}
			if s == stop || s == remove {
				return steps, times
			}
		}
	}
	return steps, times
}

func bound(change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default", UID: "u", Generation: 1, Annotations: map[string]string{}},
		Spec: corev1.PodSpec{
			NodeName: "hollow-0", RestartPolicy: corev1.RestartPolicyAlways,
			InitContainers: []corev1.Container{{Name: "init"}}, Containers: []corev1.Container{{Name: "c", Image: "nginx"}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: "gate", Status: corev1.ConditionFalse},
		}},
	}
	if change != nil {
		change(p)
	}
	return p
}

func TestLives(t *testing.T) {
	t.Parallel()
	c := Defaults()
	c.Start, c.Stop, c.JobTime = Fixed(500*time.Millisecond), Fixed(2*time.Second), Fixed(3*time.Second)
	yes := true
	job := func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Controller: &yes}}
		p.Spec.RestartPolicy = corev1.RestartPolicyNever
	}
	deleted := func(grace int64) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: time.Date(2026, 1, 1, 0, 0, 9, 0, time.UTC)}, &grace
		}
	}
	for name, tt := range map[string]struct {
		pod   *corev1.Pod
		at    map[time.Duration]func(*corev1.Pod)
		steps []step
		times []time.Duration // in 100 ms
		check func(*corev1.Pod) bool
	}{
		"a server runs": {
			pod: bound(nil), steps: []step{start}, times: []time.Duration{5},
			check: func(p *corev1.Pod) bool {
				return p.Status.Phase == corev1.PodRunning && isTrue(p, corev1.PodReady) && isTrue(p, corev1.ContainersReady) && conditions.Pod(&p.Status, "gate") != nil &&
					p.Status.ContainerStatuses[0].Ready && p.Status.InitContainerStatuses[0].State.Terminated.Reason == "Completed"
			},
		},
		"a Job's pod succeeds": {
			pod: bound(job), steps: []step{start, end}, times: []time.Duration{5, 30},
			check: func(p *corev1.Pod) bool {
				return p.Status.Phase == corev1.PodSucceeded && p.Status.ContainerStatuses[0].State.Terminated.ExitCode == 0 && !isTrue(p, corev1.PodReady)
			},
		},
		"or fails as it is told": {
			pod:   bound(func(p *corev1.Pod) { job(p); p.Annotations[RunFor], p.Annotations[ExitCode] = "1s", "3" }),
			steps: []step{start, end}, times: []time.Duration{5, 10},
			check: func(p *corev1.Pod) bool {
				return p.Status.Phase == corev1.PodFailed && p.Status.ContainerStatuses[0].State.Terminated.ExitCode == 3
			},
		},
		"a server that ends starts again": {
			pod: bound(func(p *corev1.Pod) { p.Annotations[RunFor] = "2s" }), steps: []step{start, restart, restart}, times: []time.Duration{5, 20, 120},
			check: func(p *corev1.Pod) bool {
				s := p.Status.ContainerStatuses[0]
				return s.RestartCount == 2 && s.LastTerminationState.Terminated != nil && s.State.Running != nil
			},
		},
		"a deleted one has its grace": {
			pod: bound(nil), at: map[time.Duration]func(*corev1.Pod){5 * time.Second: deleted(30)}, steps: []step{start, stop}, times: []time.Duration{5, 70},
			check: func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodSucceeded },
		},
		"and not more": {
			pod: bound(nil), at: map[time.Duration]func(*corev1.Pod){5 * time.Second: deleted(1)}, steps: []step{start, stop}, times: []time.Duration{5, 60},
		},
		"one that never ran goes at once": {
			pod: bound(nil), at: map[time.Duration]func(*corev1.Pod){200 * time.Millisecond: deleted(30)}, steps: []step{remove}, times: []time.Duration{2},
		},
		"gates are waited for": {
			pod: bound(func(p *corev1.Pod) { p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "gate"}} }),
			at: map[time.Duration]func(*corev1.Pod){time.Second: func(p *corev1.Pod) {
				conditions.Pod(&p.Status, "gate").Status = corev1.ConditionTrue
			}},
			steps: []step{start, update}, times: []time.Duration{5, 10},
			check: func(p *corev1.Pod) bool { return isTrue(p, corev1.PodReady) },
		},
		"what others say is put right": {
			pod: bound(nil),
			at: map[time.Duration]func(*corev1.Pod){time.Second: func(p *corev1.Pod) {
				conditions.Pod(&p.Status, corev1.PodReady).Status = corev1.ConditionFalse
			}},
			steps: []step{start, update}, times: []time.Duration{5, 10},
			check: func(p *corev1.Pod) bool { return isTrue(p, corev1.PodReady) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			steps, times := life(tt.pod, &c, 15*time.Second, tt.at)
			if len(steps) != len(tt.steps) {
				t.Fatalf("steps %v at %v, want %v", steps, times, tt.steps)
			}
			for i := range steps {
				if steps[i] != tt.steps[i] || times[i] != tt.times[i]*100*time.Millisecond {
					t.Errorf("step %d: %v at %v, want %v at %v", i, steps[i], times[i], tt.steps[i], tt.times[i]*100*time.Millisecond)
				}
			}
			if tt.check != nil && !tt.check(tt.pod) {
				t.Errorf("status: %+v", tt.pod.Status)
			}
		})
	}
}

func isTrue(p *corev1.Pod, kind corev1.PodConditionType) bool {
	c := conditions.Pod(&p.Status, kind)
	return c != nil && c.Status == corev1.ConditionTrue
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	c := Defaults()
	n := newNode(&Fleet{cfg: c}, 300)
	if n.ip.String() != "198.18.1.45" || n.pods.String() != "100.65.44.0/24" {
		t.Errorf("node 300 has %s and %s", n.ip, n.pods)
	}
	first, second := n.takeLocked(), n.takeLocked()
	if first.String() != "100.65.44.2" || second.String() != "100.65.44.3" {
		t.Errorf("pods get %s, %s", first, second)
	}
	n.claimLocked(plus(second, 1))
	n.releaseLocked(first)
	if a, b := n.takeLocked(), n.takeLocked(); a != first || b != plus(second, 2) {
		t.Errorf("pods get %s, %s", a, b)
	}
	taken := 4
	for n.takeLocked().IsValid() {
		taken++
	}
	if taken != 253 {
		t.Errorf("a /24 has room for %d pods", taken)
	}
}
