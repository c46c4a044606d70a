package apitest_test

import (
	"context"
	"runtime"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/periplus/periplus/apitest"
)

func roleBinding(name, role string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "viewers"}},
	}
}

func podReader(name string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}}}}
}

// until reads a watch until an event is as it should be.
func until(t *testing.T, w watch.Interface, err error, done func(watch.Event) bool) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if done(e) {
			return
		}
	}
	t.Fatal("the watch ended before what it was to show")
}

// TestAPIControllers: what belongs to the API alone is looked after.
func TestAPIControllers(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	c := clientOf(t, started(t, &apitest.Environment{Controllers: apitest.API(), ServiceAccounts: true}))
	const ns = "doomed"
	if _, err := c.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w, err := c.CoreV1().ServiceAccounts(ns).Watch(ctx, metav1.ListOptions{})
	until(t, w, err, func(e watch.Event) bool { return e.Type == watch.Added })
	owner, err := c.CoreV1().ConfigMaps(ns).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	child := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "child", OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}}}}
	if child, err = c.CoreV1().Secrets(ns).Create(ctx, child, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.CoreV1().ConfigMaps(ns).Delete(ctx, owner.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w, err = c.CoreV1().Secrets(ns).Watch(ctx, metav1.ListOptions{ResourceVersion: child.ResourceVersion})
	until(t, w, err, func(e watch.Event) bool { return e.Type == watch.Deleted })
	if err := c.CoreV1().Namespaces().Delete(ctx, ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w, err = c.CoreV1().Namespaces().Watch(ctx, metav1.ListOptions{ResourceVersion: child.ResourceVersion})
	until(t, w, err, func(e watch.Event) bool { return e.Type == watch.Deleted })
	if _, err := c.CoreV1().Namespaces().Get(ctx, ns, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the namespace: %v", err)
	}
}

// TestControlPlane: with all controllers and the scheduler, a Deployment's pods get
// to a node that exists only in the API.
func TestControlPlane(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	c := clientOf(t, started(t, &apitest.Environment{Controllers: []string{"*"}, Scheduler: true, ServiceAccounts: true}))
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{
		Capacity:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("10")},
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}},
	}}
	if _, err := c.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"app": "web"}
	replicas := int32(2)
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}},
	}}
	if _, err := c.AppsV1().Deployments("default").Create(ctx, d, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	bound := map[string]bool{}
	w, err := c.CoreV1().Pods("default").Watch(ctx, metav1.ListOptions{LabelSelector: "app=web"})
	until(t, w, err, func(e watch.Event) bool {
		if p, ok := e.Object.(*corev1.Pod); ok && p.Spec.NodeName == "n" {
			bound[p.Name] = true
		}
		return len(bound) == 2
	})
}

// BenchmarkStart starts and stops an environment.
func BenchmarkStart(b *testing.B) {
	for name, e := range map[string]apitest.Environment{
		"memory": {}, "etcd": {Etcd: true}, "api controllers": {Controllers: apitest.API()}, "control plane": {Controllers: []string{"*"}, Scheduler: true},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				one := e
				if _, err := one.Start(); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if err := one.Stop(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

// BenchmarkMemory measures what environments hold while they are there.
func BenchmarkMemory(b *testing.B) {
	const many = 20
	for name, e := range map[string]apitest.Environment{"memory": {}, "api controllers": {Controllers: apitest.API()}} {
		b.Run(name, func(b *testing.B) {
			heap := func() uint64 {
				runtime.GC()
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				return m.HeapAlloc + m.StackInuse
			}
			for b.Loop() {
				before, goroutines := heap(), runtime.NumGoroutine()
				all := make([]apitest.Environment, many)
				for i := range all {
					all[i] = e
					if _, err := all[i].Start(); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(heap()-before)/many/(1<<20), "MiB/instance")
				b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)/many, "goroutines/instance")
				for i := range all {
					if err := all[i].Stop(); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
