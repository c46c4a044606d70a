package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A stage records when a container was probed and what came of it, in seconds
// since the start of the bubble, and answers probes from scripts.
type stage struct {
	t       *testing.T
	p       *Prober
	begin   time.Time
	mu      sync.Mutex // guards what follows
	asked   map[Kind][]int
	updates []string
	events  []string
	answers map[Kind]func(n int) (Result, time.Duration, error) // n-th probe, from 1
}

func newStage(t *testing.T) *stage {
	s := &stage{t: t, begin: time.Now(), asked: map[Kind][]int{}, answers: map[Kind]func(int) (Result, time.Duration, error){}}
	s.p = New(Config{
		Changed: func(u Update) {
			s.note(&s.updates, "%s %s %s", u.Kind, u.ContainerID, u.Result)
		},
		Event: func(_ *corev1.Pod, _, kind, reason, message string) {
			s.note(&s.events, "%s %s %s", kind, reason, message)
		},
	})
	s.p.check = func(_ context.Context, c *container, spec *corev1.Probe) (Result, string, error) {
		kind := Liveness
		switch spec {
		case c.spec.StartupProbe:
			kind = Startup
		case c.spec.ReadinessProbe:
			kind = Readiness
		}
		s.mu.Lock()
		s.asked[kind] = append(s.asked[kind], s.now())
		n, answer := len(s.asked[kind]), s.answers[kind]
		s.mu.Unlock()
		if answer == nil {
			return Success, "", nil
		}
		r, takes, err := answer(n)
		<-time.After(takes)
		return r, "it said no", err
	}
	t.Cleanup(s.p.Close)
	return s
}

func (s *stage) now() int { return int(time.Since(s.begin) / time.Second) }

func (s *stage) note(list *[]string, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*list = append(*list, fmt.Sprintf("%d ", s.now())+fmt.Sprintf(format, args...))
}

// until moves the clock to a moment after the start.
func (s *stage) until(second int) {
	<-time.After(time.Until(s.begin.Add(time.Duration(second)*time.Second + time.Millisecond)))
	synctest.Wait()
}

func (s *stage) expect(what string, got, want any) {
	s.t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		s.t.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}

func (s *stage) sync(c corev1.Container, id string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u"}, Spec: corev1.PodSpec{Containers: []corev1.Container{c}}}
	s.p.Sync(pod, running(c.Name, id, time.Now()))
	return pod
}

func running(name, id string, since time.Time) *corev1.PodStatus {
	return &corev1.PodStatus{PodIP: "10.0.0.1", ContainerStatuses: []corev1.ContainerStatus{{
		Name: name, ContainerID: "test://" + id,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(since)}},
	}}}
}

func failFrom(from, to int) func(int) (Result, time.Duration, error) {
	return func(n int) (Result, time.Duration, error) {
		if n >= from && n < to {
			return Failure, 0, nil
		}
		return Success, 0, nil
	}
}

func TestReadiness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.answers[Readiness] = failFrom(3, 6)
		pod := s.sync(corev1.Container{Name: "c", ReadinessProbe: &corev1.Probe{PeriodSeconds: 5, FailureThreshold: 2, SuccessThreshold: 1}}, "1")
		if ok, known := s.p.Result("test://1", Readiness); ok || known {
			t.Errorf("before the first probe: %v %v", ok, known)
		}
		s.until(27)
		s.expect("probed", s.asked[Readiness], []int{0, 5, 10, 15, 20, 25})
		s.expect("updates", s.updates, []string{"0 Readiness 1 Success", "15 Readiness 1 Failure", "25 Readiness 1 Success"})
		s.expect("events", s.events, []string{
			"10 Warning Unhealthy Readiness probe failed: it said no",
			"15 Warning Unhealthy Readiness probe failed: it said no",
			"20 Warning Unhealthy Readiness probe failed: it said no",
		})
		if ok, known := s.p.Result("1", Readiness); !ok || !known {
			t.Errorf("result %v %v", ok, known)
		}
		// The same again changes nothing; the end of the container ends it.
		s.p.Sync(pod, running("c", "1", s.begin))
		s.p.Sync(pod, &corev1.PodStatus{})
		s.until(60)
		s.expect("probed after the end", len(s.asked[Readiness]), 6)
	})
}

func TestInitialDelayAndSlowProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.answers[Liveness] = func(n int) (Result, time.Duration, error) {
			if n == 2 {
				return Success, 7 * time.Second, nil
			}
			return Success, 0, nil
		}
		s.sync(corev1.Container{Name: "c", LivenessProbe: &corev1.Probe{InitialDelaySeconds: 3, PeriodSeconds: 5}}, "1")
		s.until(26)
		s.expect("probed", s.asked[Liveness], []int{3, 8, 15, 20, 25})
	})
}

func TestStartupHoldsTheOthersBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.answers[Startup] = failFrom(1, 4)
		s.sync(corev1.Container{
			Name:           "c",
			StartupProbe:   &corev1.Probe{PeriodSeconds: 2, FailureThreshold: 10},
			LivenessProbe:  &corev1.Probe{PeriodSeconds: 10},
			ReadinessProbe: &corev1.Probe{PeriodSeconds: 10, InitialDelaySeconds: 9},
		}, "1")
		s.until(20)
		s.expect("startup", s.asked[Startup], []int{0, 2, 4, 6})
		s.expect("liveness", s.asked[Liveness], []int{6, 16})
		s.expect("readiness", s.asked[Readiness], []int{9, 19})
		slices.Sort(s.updates)
		s.expect("updates", s.updates, []string{"6 Liveness 1 Success", "6 Startup 1 Success", "9 Readiness 1 Success"})
	})
}

func TestFailedLivenessRestsUntilTheNextContainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.answers[Liveness] = failFrom(1, 4)
		c := corev1.Container{Name: "c", LivenessProbe: &corev1.Probe{PeriodSeconds: 1, FailureThreshold: 3, TerminationGracePeriodSeconds: new(int64(7))}}
		s.sync(c, "1")
		s.until(10)
		s.expect("probed", s.asked[Liveness], []int{0, 1, 2})
		s.expect("updates", s.updates, []string{"2 Liveness 1 Failure"})
		if ok, known := s.p.Result("1", Liveness); ok || !known {
			t.Errorf("result %v %v", ok, known)
		}
		pod := s.sync(c, "2")
		s.until(12)
		s.expect("probed", s.asked[Liveness], []int{0, 1, 2, 10, 11, 12})
		if _, known := s.p.Result("1", Liveness); known {
			t.Error("the old container's result is still there")
		}
		s.p.Terminating(pod)
		s.until(20)
		s.expect("probed while terminating", len(s.asked[Liveness]), 6)
		s.p.Remove(pod.UID)
	})
}

func TestProbeThatCannotBeCarriedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.answers[Liveness] = func(int) (Result, time.Duration, error) { return Unknown, 0, errors.New("runtime is away") }
		s.sync(corev1.Container{Name: "c", LivenessProbe: &corev1.Probe{PeriodSeconds: 10, FailureThreshold: 1}}, "1")
		s.until(5)
		s.expect("probed", s.asked[Liveness], []int{0, 0, 0}) // three attempts
		s.expect("updates", s.updates, []string{})
		if len(s.events) != 1 || !strings.Contains(s.events[0], "Liveness probe errored and resulted in unknown state: runtime is away") {
			t.Errorf("events %v", s.events)
		}
	})
}

func TestAdoptedContainers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := time.Now()
		<-time.After(time.Hour)
		s := newStage(t)
		c := corev1.Container{
			Name: "c", StartupProbe: &corev1.Probe{PeriodSeconds: 10},
			ReadinessProbe: &corev1.Probe{PeriodSeconds: 10, FailureThreshold: 1},
		}
		status := running("c", "1", old)
		told := *status.DeepCopy()
		told.ContainerStatuses[0].Started, told.ContainerStatuses[0].Ready = new(true), true
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u"}, Spec: corev1.PodSpec{Containers: []corev1.Container{c}}, Status: told}
		s.p.Sync(pod, status)
		for _, kind := range []Kind{Startup, Readiness} {
			if ok, known := s.p.Result("1", kind); !ok || !known {
				t.Errorf("%s: %v %v, want what was reported before", kind, ok, known)
			}
		}
		s.until(10)
		s.expect("startup probes", len(s.asked[Startup]), 0)
		s.expect("readiness probes in one period", len(s.asked[Readiness]), 1)
		s.expect("updates", s.updates, []string{})
	})
}
