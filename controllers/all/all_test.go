package all_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/periplus/periplus/client/conditions"
	"github.com/periplus/periplus/controllers"
	"github.com/periplus/periplus/controllers/all"
	"github.com/periplus/periplus/controllers/controllerstest"
)

// TestDeclarations checks that every controller says what it is.
func TestDeclarations(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, c := range all.Controllers() {
		if seen[c.Name] || !strings.HasSuffix(c.Name, "-controller") || len(c.Reads) == 0 || len(c.Writes) == 0 || c.New == nil {
			t.Errorf("%s: declared twice, or incompletely", c.Name)
		}
		seen[c.Name] = true
	}
}

type world struct {
	*controllerstest.Cluster
	t *testing.T
}

func ctx() context.Context { return context.Background() }

func (w world) node(name string) *corev1.Node {
	n, err := w.Client.CoreV1().Nodes().Get(ctx(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

func (w world) renew(name string) {
	now := metav1.NowMicro()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: corev1.NamespaceNodeLease}, Spec: coordinationv1.LeaseSpec{RenewTime: &now}}
	if _, err := w.Client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Update(ctx(), lease, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func (w world) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func taints(n *corev1.Node) []string {
	var out []string
	for _, t := range n.Spec.Taints {
		out = append(out, t.Key+":"+string(t.Effect))
	}
	slices.Sort(out)
	return out
}

func node(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
		}}},
	}
}

func lease(name string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: corev1.NamespaceNodeLease}}
}

// TestNodeDies takes one of two nodes away. Its pods leave their Services at once
// when it is found silent, are evicted after the time for which they tolerate that,
// and come back elsewhere.
func TestNodeDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seconds := int64(300)
		replicas := int32(2)
		labels := map[string]string{"app": "web"}
		rs := &appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "uid-rs"},
			Spec: appsv1.ReplicaSetSpec{
				Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Tolerations: []corev1.Toleration{
					{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds},
				}}},
			},
		}
		w := world{controllerstest.Start(t, all.Controllers(), func(e *controllers.Env) { e.Options.ClusterCIDRs = []string{"10.42.0.0/16"} },
			node("n1"), node("n2"), lease("n1"), lease("n2"), rs), t}
		synctest.Wait()

		// 1. The nodes have ranges, and no taint any more.
		a, b := w.node("n1"), w.node("n2")
		if a.Spec.PodCIDR == b.Spec.PodCIDR || !strings.HasSuffix(a.Spec.PodCIDR, ".0/24") || len(a.Spec.PodCIDRs) != 1 {
			t.Errorf("ranges %q and %q", a.Spec.PodCIDR, b.Spec.PodCIDR)
		}
		if len(taints(a)) != 0 {
			t.Errorf("taints %v of a ready node", taints(a))
		}

		// 2. One pod each.
		pods := w.Pods("default")
		if len(pods) != 2 {
			t.Fatalf("%d pods", len(pods))
		}
		for i, p := range pods {
			p.Spec.NodeName = []string{"n1", "n2"}[i]
			controllerstest.Ready(&p)
			if _, err := w.Client.CoreV1().Pods("default").Update(ctx(), &p, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()

		// 3. n1 lives, n2 is silent from now on.
		start := time.Now()
		beat := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); {
				w.renew("n1")
				w.pass(10 * time.Second)
			}
		}
		beat(40 * time.Second)
		if got := taints(w.node("n2")); len(got) != 0 {
			t.Errorf("taints %v after %v", got, time.Since(start))
		}
		beat(20 * time.Second)
		want := []string{"node.kubernetes.io/unreachable:NoExecute", "node.kubernetes.io/unreachable:NoSchedule"}
		if got := taints(w.node("n2")); !slices.Equal(got, want) {
			t.Errorf("taints %v, want %v", got, want)
		}
		for _, c := range w.node("n2").Status.Conditions {
			if c.Status != corev1.ConditionUnknown || c.Type == corev1.NodeReady && (c.Reason != "NodeStatusUnknown" || c.Message != "Kubelet stopped posting node status.") {
				t.Errorf("condition %+v", c)
			}
		}
		on := func(node string) (ready, all int) {
			for _, p := range w.Pods("default") {
				if p.Spec.NodeName == node {
					all++
					if conditions.PodReady(&p) {
						ready++
					}
				}
			}
			return ready, all
		}
		if ready, all := on("n2"); ready != 0 || all != 1 {
			t.Errorf("%d pods of %d on the dead node are ready", ready, all)
		}
		if ready, _ := on("n1"); ready != 1 {
			t.Error("the pod on the living node is not ready any more")
		}

		// 4. Five minutes later its pod is gone and there is a new one.
		beat(4 * time.Minute)
		if _, all := on("n2"); all != 1 {
			t.Error("evicted too early")
		}
		beat(70 * time.Second)
		if _, all := on("n2"); all != 0 {
			t.Error("not evicted")
		}
		if _, all := on(""); all != 1 || len(w.Pods("default")) != 2 {
			t.Errorf("%d new pods", all)
		}
	})
}

// TestIdle lets an hour pass over a settled cluster: nothing is written.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		replicas := int32(3)
		labels := map[string]string{"app": "web"}
		objects := []runtime.Object{
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "uid-ns"}},
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "part", Labels: map[string]string{"to": "all"}}, Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, Resources: []string{"x"}}}},
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "whole"}, AggregationRule: &rbacv1.AggregationRule{
				ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"to": "all"}}},
			}},
			&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "uid-svc"}, Spec: corev1.ServiceSpec{
				Selector: labels, ClusterIP: "10.43.0.9", IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, Ports: []corev1.ServicePort{{Port: 80}},
			}},
		}
		w := world{controllerstest.Start(t, all.Controllers(), func(e *controllers.Env) { e.Options.RootCA = []byte("CA") }, objects...), t}
		w.Kubelet()
		d := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"},
			Spec: appsv1.DeploymentSpec{
				Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}},
			},
		}
		if _, err := w.Client.AppsV1().Deployments("default").Create(ctx(), d, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Minute)
		if got, err := w.Client.AppsV1().Deployments("default").Get(ctx(), "web", metav1.GetOptions{}); err != nil || got.Status.AvailableReplicas != 3 {
			t.Fatalf("deployment %+v, %v", got.Status, err)
		}
		if _, err := w.Client.CoreV1().ServiceAccounts("default").Get(ctx(), "default", metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
		if m, err := w.Client.CoreV1().ConfigMaps("default").Get(ctx(), "kube-root-ca.crt", metav1.GetOptions{}); err != nil || m.Data["ca.crt"] != "CA" {
			t.Error(m, err)
		}
		if r, err := w.Client.RbacV1().ClusterRoles().Get(ctx(), "whole", metav1.GetOptions{}); err != nil || len(r.Rules) != 1 {
			t.Error(r, err)
		}
		if e, err := w.Client.CoreV1().Endpoints("default").Get(ctx(), "web", metav1.GetOptions{}); err != nil || e.Labels["endpoints.kubernetes.io/managed-by"] != "endpoint-controller" {
			t.Error(e, err)
		}
		before := writes(w.Client)
		w.pass(time.Hour)
		if after := writes(w.Client); after != before {
			t.Errorf("%d writes in an idle hour: %v", after-before, w.Client.Actions()[before:])
		}
	})
}

func writes(c *fake.Clientset) int {
	n := 0
	for _, a := range c.Actions() {
		switch a.GetVerb() {
		case "create", "update", "patch", "delete":
			n++
		}
	}
	return n
}
