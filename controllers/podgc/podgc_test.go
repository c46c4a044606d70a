package podgc_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/periplus/periplus/controllers"
	"github.com/periplus/periplus/controllers/controllerstest"
	"github.com/periplus/periplus/controllers/podgc"
)

// TestNodeGone deletes the pods of a missing node after 40 seconds, and the oldest
// finished pods beyond the limit at once.
func TestNodeGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod := func(name, node string, phase corev1.PodPhase, age time.Duration) *corev1.Pod {
			return &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name), CreationTimestamp: metav1.NewTime(time.Now().Add(-age))},
				Spec:       corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase},
			}
		}
		objects := []runtime.Object{
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "here"}},
			pod("lost", "gone", corev1.PodRunning, time.Hour), pod("fine", "here", corev1.PodRunning, time.Hour),
		}
		for i := range 5 {
			objects = append(objects, pod(fmt.Sprintf("done-%d", i), "here", corev1.PodSucceeded, time.Duration(i)*time.Hour))
		}
		c := controllerstest.Start(t, []controllers.Controller{podgc.Controller()}, func(e *controllers.Env) { e.Options.TerminatedPods = 3 }, objects...)
		names := func() string {
			synctest.Wait()
			out := ""
			for _, p := range c.Pods("default") {
				out += p.Name + " "
			}
			return out
		}
		if got := names(); got != "done-0 done-1 done-2 fine lost " {
			t.Errorf("at first: %s", got)
		}
		<-time.After(39 * time.Second)
		if got := names(); got != "done-0 done-1 done-2 fine lost " {
			t.Errorf("too early: %s", got)
		}
		<-time.After(2 * time.Second)
		if got := names(); got != "done-0 done-1 done-2 fine " {
			t.Errorf("at last: %s", got)
		}
	})
}
