package disruption_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/periplus/periplus/controllers"
	"github.com/periplus/periplus/controllers/controllerstest"
	"github.com/periplus/periplus/controllers/disruption"
)

// TestBudgets computes what each form of a budget allows of a Deployment of four,
// of whose pods three are ready.
func TestBudgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		yes, four := true, int32(4)
		labels := map[string]string{"app": "web"}
		objects := []runtime.Object{
			&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "d"}, Spec: appsv1.DeploymentSpec{Replicas: &four}},
			&appsv1.ReplicaSet{
				ObjectMeta: metav1.ObjectMeta{Name: "web-1", Namespace: "default", UID: "rs", OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "d", Controller: &yes}}},
				Spec:       appsv1.ReplicaSetSpec{Replicas: &four},
			},
		}
		for i := range 4 {
			status := corev1.ConditionTrue
			if i == 3 {
				status = corev1.ConditionFalse
			}
			name := fmt.Sprintf("web-1-%d", i)
			objects = append(objects, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name), Labels: labels,
					OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-1", UID: "rs", Controller: &yes}}},
				Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}},
			})
		}
		budget := func(name string, least, most *intstr.IntOrString, of map[string]string) *policyv1.PodDisruptionBudget {
			return &policyv1.PodDisruptionBudget{
				ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Generation: 1},
				Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: least, MaxUnavailable: most, Selector: &metav1.LabelSelector{MatchLabels: of}},
			}
		}
		value := func(s string) *intstr.IntOrString { v := intstr.Parse(s); return &v }
		evicted := budget("evicted", value("1"), nil, labels)
		evicted.Status.DisruptedPods = map[string]metav1.Time{"web-1-0": metav1.Now(), "gone": metav1.Now()}
		objects = append(objects, evicted,
			budget("least", value("2"), nil, labels), budget("most", nil, value("1"), labels), budget("most-two", nil, value("2"), labels),
			budget("share", value("30%"), nil, labels), budget("away", nil, value("50%"), labels), budget("none", value("1"), nil, map[string]string{"app": "other"}))
		c := controllerstest.Start(t, []controllers.Controller{disruption.Controller()}, nil, objects...)
		status := func(name string) string {
			synctest.Wait()
			b, err := c.Client.PolicyV1().PodDisruptionBudgets("default").Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			s := &b.Status
			reason := ""
			if len(s.Conditions) == 1 {
				reason = s.Conditions[0].Reason
			}
			return fmt.Sprintf("allowed %d, healthy %d of %d wanted and %d expected, %d evicted, %s", s.DisruptionsAllowed, s.CurrentHealthy, s.DesiredHealthy, s.ExpectedPods, len(s.DisruptedPods), reason)
		}
		for name, want := range map[string]string{
			"least":    "allowed 1, healthy 3 of 2 wanted and 4 expected, 0 evicted, SufficientPods",
			"most":     "allowed 0, healthy 3 of 3 wanted and 4 expected, 0 evicted, InsufficientPods",
			"most-two": "allowed 1, healthy 3 of 2 wanted and 4 expected, 0 evicted, SufficientPods",
			"share":    "allowed 1, healthy 3 of 2 wanted and 4 expected, 0 evicted, SufficientPods",
			"away":     "allowed 1, healthy 3 of 2 wanted and 4 expected, 0 evicted, SufficientPods",
			"none":     "allowed 0, healthy 0 of 1 wanted and 0 expected, 0 evicted, InsufficientPods",
			"evicted":  "allowed 1, healthy 2 of 1 wanted and 4 expected, 1 evicted, SufficientPods",
		} {
			if got := status(name); got != want {
				t.Errorf("%s: %s\nwant %s", name, got, want)
			}
		}

		p, err := c.Client.CoreV1().Pods("default").Get(ctx, "web-1-3", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		p.Status.Conditions[0].Status = corev1.ConditionTrue
		if _, err := c.Client.CoreV1().Pods("default").UpdateStatus(ctx, p, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if got, want := status("most"), "allowed 1, healthy 4 of 3 wanted and 4 expected, 0 evicted, SufficientPods"; got != want {
			t.Errorf("with all ready: %s\nwant %s", got, want)
		}
		<-time.After(2*time.Minute + time.Second)
		if got, want := status("evicted"), "allowed 3, healthy 4 of 1 wanted and 4 expected, 0 evicted, SufficientPods"; got != want {
			t.Errorf("an eviction that did not happen: %s\nwant %s", got, want)
		}
	})
}
