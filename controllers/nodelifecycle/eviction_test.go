package nodelifecycle_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/periplus/periplus/controllers"
	"github.com/periplus/periplus/controllers/controllerstest"
	"github.com/periplus/periplus/controllers/nodelifecycle"
)

// TestEvictionSettings: rates and thresholds say how many of three failed nodes, beside one
// that is ready, are emptied within eleven seconds.
func TestEvictionSettings(t *testing.T) {
	for name, c := range map[string]struct {
		controllers.Eviction
		want int
	}{
		"unhealthy and small": {controllers.DefaultEviction(), 0},
		"not unhealthy":       {controllers.Eviction{Rate: 0.1, UnhealthyZone: 0.9, LargeCluster: 50}, 2},
		"faster":              {controllers.Eviction{Rate: 1, UnhealthyZone: 0.9, LargeCluster: 50}, 3},
		"large":               {controllers.Eviction{Rate: 1, SecondaryRate: 0.1, UnhealthyZone: 0.55, LargeCluster: 3}, 2},
		"never":               {controllers.Eviction{UnhealthyZone: 0.9, LargeCluster: 50}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				objects := []runtime.Object{node("ready", corev1.ConditionTrue)}
				for i := range 3 {
					objects = append(objects, node(fmt.Sprint("failed-", i), corev1.ConditionFalse))
				}
				w := controllerstest.Start(t, []controllers.Controller{nodelifecycle.Controller()}, func(e *controllers.Env) { e.Options.Eviction = c.Eviction }, objects...)
				<-time.After(11 * time.Second)
				synctest.Wait()
				nodes, err := w.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
				if err != nil {
					t.Fatal(err)
				}
				emptied := 0
				for _, n := range nodes.Items {
					for _, x := range n.Spec.Taints {
						if x.Effect == corev1.TaintEffectNoExecute {
							emptied++
						}
					}
				}
				if emptied != c.want {
					t.Errorf("%d nodes are emptied, want %d", emptied, c.want)
				}
			})
		})
	}
}
