package kubelet_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/kubelet"
	"github.com/periplus/periplus/kubelet/shutdown"
)

// loginManager tells of shutdowns when a test does.
type loginManager struct{ signal chan bool }

func (loginManager) Delay() (time.Duration, error)              { return time.Minute, nil }
func (loginManager) Raise(context.Context, time.Duration) error { return nil }
func (loginManager) Inhibit(context.Context) (io.Closer, error) { return io.NopCloser(nil), nil }
func (loginManager) Close() error                               { return nil }
func (l loginManager) Shutdowns(ctx context.Context, f func(bool)) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case active := <-l.signal:
			f(active)
		}
	}
}

func TestPodsEndBeforeTheMachine(t *testing.T) {
	bubble(t, func(r *rig) {
		login := loginManager{make(chan bool)}
		r.more = func(c *kubelet.Config) {
			c.ShutdownPeriods, _ = shutdown.Periods(30*time.Second, 10*time.Second)
			c.Login = func() (shutdown.Login, error) { return login, nil }
		}
		r.start()
		critical := int32(2_000_000_000)
		r.create(pod("web", app("web")))
		p := pod("critical", app("critical"))
		p.Spec.Priority = &critical
		r.create(p)
		login.signal <- true
		r.advance(5 * time.Second)
		for _, name := range []string{"web", "critical"} {
			got := r.get(name)
			if st := got.Status; st.Phase != corev1.PodFailed || st.Reason != "Terminated" || st.Message != "Pod was terminated in response to imminent node shutdown." ||
				condition(got, corev1.DisruptionTarget) != corev1.ConditionTrue {
				t.Errorf("%s: %+v", name, st)
			}
		}
		calls := r.calls()
		if a, b := strings.Index(calls, "stop web"), strings.Index(calls, "stop critical"); a < 0 || b < a {
			t.Errorf("order of the ends: %s", calls)
		}
		if c := r.nodeCondition(corev1.NodeReady); c.Status != corev1.ConditionFalse || c.Reason != "KubeletNotReady" || c.Message != "node is shutting down" {
			t.Errorf("%+v", c)
		}
		r.create(pod("late", app("web")))
		if st := r.get("late").Status; st.Phase != corev1.PodFailed || st.Reason != "NodeShutdown" || st.Message != "Pod was rejected: Pod was rejected as the node is shutting down." {
			t.Errorf("late: %+v", st)
		}
	})
}
