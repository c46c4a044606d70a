package deployment_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/controllers"
	"github.com/periplus/periplus/controllers/controllerstest"
	"github.com/periplus/periplus/controllers/deployment"
	"github.com/periplus/periplus/controllers/replicaset"
	"github.com/periplus/periplus/journey"
)

var list = []controllers.Controller{deployment.Controller(), replicaset.Controller()}

func web(replicas int32, image string) *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	limit, deadline := int32(2), int32(600)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", Generation: 1},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			RevisionHistoryLimit: &limit, ProgressDeadlineSeconds: &deadline,
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: image}}},
			},
		},
	}
}

type world struct {
	*controllerstest.Cluster
	t *testing.T
}

func start(t *testing.T) world { return world{controllerstest.Start(t, list, nil), t} }

func (w world) create(d *appsv1.Deployment) {
	w.t.Helper()
	if _, err := w.Client.AppsV1().Deployments("default").Create(context.Background(), d, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func (w world) get() *appsv1.Deployment {
	d, err := w.Client.AppsV1().Deployments("default").Get(context.Background(), "web", metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

func (w world) update(change func(*appsv1.Deployment)) {
	d := w.get()
	change(d)
	d.Generation++
	if _, err := w.Client.AppsV1().Deployments("default").Update(context.Background(), d, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func (w world) sets() []appsv1.ReplicaSet {
	l, err := w.Client.AppsV1().ReplicaSets("default").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return l.Items
}

func reason(d *appsv1.Deployment, t appsv1.DeploymentConditionType) string {
	for _, c := range d.Status.Conditions {
		if c.Type == t {
			return c.Reason
		}
	}
	return ""
}

func (w world) untilComplete(replicas int32) {
	w.t.Helper()
	w.Until(fmt.Sprintf("%d replicas are up to date and available", replicas), func() bool {
		d := w.get()
		return d.Status.AvailableReplicas == replicas && d.Status.UpdatedReplicas == replicas && d.Status.Replicas == replicas &&
			d.Status.ObservedGeneration == d.Generation && reason(d, appsv1.DeploymentProgressing) == "NewReplicaSetAvailable"
	})
}

// TestRollout creates, updates and rolls a Deployment back, and scales it.
func TestRollout(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.Kubelet()
	w.create(web(3, "nginx:1"))
	w.untilComplete(3)

	sets := w.sets()
	if len(sets) != 1 {
		t.Fatalf("%d replica sets, want 1", len(sets))
	}
	first := sets[0]
	hash := deployment.TemplateHash(&w.get().Spec.Template, nil)
	if first.Name != "web-"+hash || first.Labels["pod-template-hash"] != hash || first.Spec.Selector.MatchLabels["pod-template-hash"] != hash {
		t.Errorf("replica set %s with labels %v and selector %v, want hash %s", first.Name, first.Labels, first.Spec.Selector, hash)
	}
	for _, p := range w.Pods("default") {
		if !strings.HasPrefix(p.Name, first.Name+"-") || journey.TraceOf(&p) != journey.TraceOf(w.get()) {
			t.Errorf("pod %s with annotations %v", p.Name, p.Annotations)
		}
	}
	w.Until("the scaling is told", func() bool {
		return slices.Contains(w.Events(), fmt.Sprintf("ScalingReplicaSet: Scaled up replica set %s from 0 to 3", first.Name))
	})

	// A new version; no more than 3 pods are ever away.
	w.update(func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "nginx:2" })
	w.Until("the new version runs", func() bool {
		d := w.get()
		return d.Annotations["deployment.kubernetes.io/revision"] == "2" && len(w.Pods("default")) == 3 && d.Status.UpdatedReplicas == 3
	})
	w.untilComplete(3)

	// Back again: the first set serves once more, as revision 3.
	w.update(func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "nginx:1" })
	w.Until("the old version runs", func() bool { return w.get().Annotations["deployment.kubernetes.io/revision"] == "3" })
	w.untilComplete(3)
	for _, rs := range w.sets() {
		if rs.Name == first.Name && (*rs.Spec.Replicas != 3 || rs.Annotations["deployment.kubernetes.io/revision-history"] != "1") {
			t.Errorf("replica set after rollback: %d replicas, annotations %v", *rs.Spec.Replicas, rs.Annotations)
		}
	}

	w.update(func(d *appsv1.Deployment) { n := int32(50); d.Spec.Replicas = &n })
	w.untilComplete(50)
	w.update(func(d *appsv1.Deployment) { n := int32(0); d.Spec.Replicas = &n })
	w.untilComplete(0)
	if n := len(w.Pods("default")); n != 0 {
		t.Errorf("%d pods after scaling to zero", n)
	}
}

// TestHistory keeps two old revisions of five.
func TestHistory(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.Kubelet()
	w.create(web(1, "nginx:0"))
	w.untilComplete(1)
	for i := 1; i <= 4; i++ {
		w.update(func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = fmt.Sprintf("nginx:%d", i) })
		w.Until("revised", func() bool { return w.get().Annotations["deployment.kubernetes.io/revision"] == fmt.Sprint(i+1) })
		w.untilComplete(1)
	}
	w.Until("old sets are pruned", func() bool { return len(w.sets()) == 3 })
}

// TestRecreate never has pods of two versions.
func TestRecreate(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.Kubelet()
	d := web(2, "nginx:1")
	d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	w.create(d)
	w.untilComplete(2)
	w.update(func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "nginx:2" })
	w.Until("new pods", func() bool {
		images := map[string]bool{}
		for _, p := range w.Pods("default") {
			images[p.Spec.Containers[0].Image] = true
		}
		if len(images) > 1 {
			t.Errorf("two versions at once: %v", images)
		}
		return images["nginx:2"] && len(w.Pods("default")) == 2
	})
	w.untilComplete(2)
}

// TestPaused changes nothing while paused, but scales.
func TestPaused(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.Kubelet()
	w.create(web(2, "nginx:1"))
	w.untilComplete(2)
	w.update(func(d *appsv1.Deployment) {
		n := int32(4)
		d.Spec.Paused, d.Spec.Replicas = true, &n
		d.Spec.Template.Spec.Containers[0].Image = "nginx:2"
	})
	w.Until("scaled and marked", func() bool {
		return len(w.Pods("default")) == 4 && reason(w.get(), appsv1.DeploymentProgressing) == "DeploymentPaused"
	})
	if len(w.sets()) != 1 {
		t.Errorf("a paused Deployment has %d replica sets", len(w.sets()))
	}
	w.update(func(d *appsv1.Deployment) { d.Spec.Paused = false })
	w.untilComplete(4)
}

// TestFewWrites bounds what a rollout of 50 pods costs: one write for each pod, and
// few more, for each is a synced write to the disk.
func TestFewWrites(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.create(web(50, "nginx:1"))
	w.Until("50 pods exist and are counted", func() bool {
		return len(w.Pods("default")) == 50 && w.get().Status.Replicas == 50
	})
	counts := map[string]int{}
	for _, a := range w.Client.Actions() {
		if v := a.GetVerb(); v == "create" || v == "update" || v == "patch" {
			counts[v+" "+a.GetResource().Resource+"/"+a.GetSubresource()]++
		}
	}
	if counts["create pods/"] != 50 || counts["create replicasets/"] != 1 {
		t.Errorf("creations: %v", counts)
	}
	// A set's and a Deployment's status each: first seen, and all pods counted.
	if counts["update replicasets/status"] > 3 || counts["update deployments/status"] > 4 || counts["update replicasets/"] > 0 {
		t.Errorf("too many writes: %v", counts)
	}
	t.Log(counts)
}

// TestLongName: the name of a replica set fits although its Deployment's fills all there is.
func TestLongName(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.Kubelet()
	d := web(1, "nginx:1")
	d.Name = strings.Repeat("a", 253)
	if _, err := w.Client.AppsV1().Deployments("default").Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.Until("its replica set is there", func() bool {
		sets := w.sets()
		return len(sets) == 1 && len(sets[0].Name) == 253 && strings.HasPrefix(sets[0].Name, "aaa")
	})
}
