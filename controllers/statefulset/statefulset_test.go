package statefulset_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/periplus/periplus/controllers"
	"github.com/periplus/periplus/controllers/controllerstest"
	"github.com/periplus/periplus/controllers/statefulset"
)

var ctx = context.Background()

type world struct {
	*controllerstest.Cluster
	t *testing.T
}

func start(t *testing.T) world {
	return world{controllerstest.Start(t, []controllers.Controller{statefulset.Controller()}, nil), t}
}

func set(replicas int32, change ...func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
	labels := map[string]string{"app": "db"}
	partition, limit, most := int32(0), int32(1), intstr.FromInt32(1)
	s := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "default", Generation: 1},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, ServiceName: "db", Selector: &metav1.LabelSelector{MatchLabels: labels}, RevisionHistoryLimit: &limit,
			PodManagementPolicy: appsv1.OrderedReadyPodManagement,
			UpdateStrategy:      appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType, RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: &partition, MaxUnavailable: &most}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "db", Image: "db:1"}}},
			},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}},
		},
	}
	for _, f := range change {
		f(s)
	}
	return s
}

func (w world) create(s *appsv1.StatefulSet) {
	w.t.Helper()
	if _, err := w.Client.AppsV1().StatefulSets("default").Create(ctx, s, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func (w world) get() *appsv1.StatefulSet {
	s, err := w.Client.AppsV1().StatefulSets("default").Get(ctx, "db", metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// update changes the set's spec; the status may be written at the same time.
func (w world) update(change func(*appsv1.StatefulSet)) {
	w.t.Helper()
	for {
		s := w.get()
		change(s)
		s.Generation++
		_, err := w.Client.AppsV1().StatefulSets("default").Update(ctx, s, metav1.UpdateOptions{})
		if err == nil {
			return
		}
	}
}

// images are the pods' images by name, as "db-0=db:1".
func (w world) images() (out []string) {
	for _, p := range w.Pods("default") {
		out = append(out, p.Name+"="+p.Spec.Containers[0].Image)
	}
	slices.Sort(out)
	return out
}

func (w world) until(images ...string) {
	w.t.Helper()
	w.Until(fmt.Sprintf("the pods are %v and counted", images), func() bool {
		s := w.get()
		return slices.Equal(w.images(), images) && int(s.Status.ReadyReplicas) == len(images) && int(s.Status.Replicas) == len(images) && s.Status.ObservedGeneration == s.Generation
	})
}

// TestOrder: each pod waits for its predecessor, and has its identity.
func TestOrder(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.create(set(3))
	w.Until("the first pod is there", func() bool { return len(w.Pods("default")) == 1 })
	p := w.Pods("default")[0]
	if p.Name != "db-0" || p.Spec.Hostname != "db-0" || p.Spec.Subdomain != "db" || p.Labels["apps.kubernetes.io/pod-index"] != "0" ||
		p.Labels["statefulset.kubernetes.io/pod-name"] != "db-0" || p.Spec.Volumes[0].PersistentVolumeClaim.ClaimName != "data-db-0" {
		t.Errorf("pod %s: %v, %+v", p.Name, p.Labels, p.Spec)
	}
	w.Until("its claim is there", func() bool {
		_, err := w.Client.CoreV1().PersistentVolumeClaims("default").Get(ctx, "data-db-0", metav1.GetOptions{})
		return err == nil
	})
	if n := len(w.Pods("default")); n != 1 {
		t.Errorf("%d pods before the first is ready", n)
	}
	w.SetPod("default", "db-0", controllerstest.Ready)
	w.Until("the second comes", func() bool { return slices.Equal(w.images(), []string{"db-0=db:1", "db-1=db:1"}) })
	w.Kubelet()
	w.SetPod("default", "db-1", controllerstest.Ready)
	w.until("db-0=db:1", "db-1=db:1", "db-2=db:1")
	w.update(func(s *appsv1.StatefulSet) { n := int32(1); s.Spec.Replicas = &n })
	w.until("db-0=db:1")
	list, err := w.Client.CoreV1().PersistentVolumeClaims("default").List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 3 {
		t.Errorf("%d claims after scaling down (%v), want 3", len(list.Items), err)
	}
}

// TestUpdate goes from the highest number to the partition; history is kept and pruned.
func TestUpdate(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.Kubelet()
	w.create(set(3, func(s *appsv1.StatefulSet) { s.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: 5} }))
	w.until("db-5=db:1", "db-6=db:1", "db-7=db:1")
	first := w.get().Status.UpdateRevision
	image := func(name string, partition int32) {
		w.update(func(s *appsv1.StatefulSet) {
			s.Spec.Template.Spec.Containers[0].Image = name
			s.Spec.UpdateStrategy.RollingUpdate.Partition = &partition
		})
	}
	image("db:2", 7)
	w.until("db-5=db:1", "db-6=db:1", "db-7=db:2")
	w.Until("the status during the update is reported", func() bool {
		s := w.get().Status
		return s.CurrentRevision == first && s.UpdateRevision != first && s.UpdatedReplicas == 1
	})
	image("db:2", 0)
	w.until("db-5=db:2", "db-6=db:2", "db-7=db:2")
	w.Until("the update is complete", func() bool { s := w.get().Status; return s.CurrentRevision == s.UpdateRevision })
	for _, name := range []string{"db:3", "db:4"} {
		image(name, 0)
		w.until("db-5="+name, "db-6="+name, "db-7="+name)
	}
	w.Until("old revisions are pruned", func() bool {
		l, err := w.Client.AppsV1().ControllerRevisions("default").List(ctx, metav1.ListOptions{})
		return err == nil && len(l.Items) == 2
	})
	// The template of before is the revision of before, as the newest.
	image("db:3", 0)
	w.until("db-5=db:3", "db-6=db:3", "db-7=db:3")
}

// TestParallel starts all at once and replaces two at a time.
func TestParallel(t *testing.T) {
	t.Parallel()
	w := start(t)
	two := intstr.FromInt32(2)
	w.create(set(4, func(s *appsv1.StatefulSet) {
		s.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
		s.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = &two
	}))
	w.Until("all four exist, none is ready", func() bool { return len(w.Pods("default")) == 4 })
	for i := range 4 {
		w.SetPod("default", fmt.Sprintf("db-%d", i), controllerstest.Ready)
	}
	w.until("db-0=db:1", "db-1=db:1", "db-2=db:1", "db-3=db:1")
	w.update(func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Image = "db:2" })
	w.Until("two are new, and wait", func() bool {
		return slices.Equal(w.images(), []string{"db-0=db:1", "db-1=db:1", "db-2=db:2", "db-3=db:2"})
	})
	w.Kubelet()
	w.until("db-0=db:2", "db-1=db:2", "db-2=db:2", "db-3=db:2")
}

// TestRetention: claims are owned as the policy says.
func TestRetention(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.Kubelet()
	w.create(set(2, func(s *appsv1.StatefulSet) {
		s.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
			WhenDeleted: appsv1.DeletePersistentVolumeClaimRetentionPolicyType, WhenScaled: appsv1.DeletePersistentVolumeClaimRetentionPolicyType,
		}
	}))
	w.until("db-0=db:1", "db-1=db:1")
	owner := func(claim string) string {
		c, err := w.Client.CoreV1().PersistentVolumeClaims("default").Get(ctx, claim, metav1.GetOptions{})
		if err != nil || len(c.OwnerReferences) != 1 {
			return ""
		}
		return c.OwnerReferences[0].Kind + "/" + c.OwnerReferences[0].Name
	}
	w.Until("the set owns the claims", func() bool { return owner("data-db-0") == "StatefulSet/db" && owner("data-db-1") == "StatefulSet/db" })
	w.update(func(s *appsv1.StatefulSet) { n := int32(1); s.Spec.Replicas = &n })
	w.Until("the pod that goes owns its claim", func() bool { return owner("data-db-1") == "Pod/db-1" })
	w.until("db-0=db:1")
}
