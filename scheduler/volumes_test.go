package scheduler_test

import (
	"context"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	st "github.com/periplus/periplus/scheduler/schedulertest"
)

var storage = v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}

func lateClass(name, provisioner string) *storagev1.StorageClass {
	late := storagev1.VolumeBindingWaitForFirstConsumer
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner, VolumeBindingMode: &late}
}

func volumeClaim(name, class, volume string) *v1.PersistentVolumeClaim {
	c := &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name), ResourceVersion: "1"},
		Spec: v1.PersistentVolumeClaimSpec{
			StorageClassName: &class, VolumeName: volume, AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			Resources: v1.VolumeResourceRequirements{Requests: storage},
		},
	}
	if volume != "" {
		c.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	}
	return c
}

// volumeOn is a volume that only one node can reach.
func volumeOn(name, class, node string) *v1.PersistentVolume {
	return &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1.PersistentVolumeSpec{
			Capacity: storage, AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}, StorageClassName: class,
			NodeAffinity: &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{
				{Key: v1.LabelHostname, Operator: v1.NodeSelectorOpIn, Values: []string{node}}}}}}},
		},
		Status: v1.PersistentVolumeStatus{Phase: v1.VolumeAvailable},
	}
}

func withClaim(name, claim string) *v1.Pod {
	return st.With(st.Pod(name), func(p *v1.Pod) {
		p.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
	})
}

func (c *cluster) until(t *testing.T, events <-chan string, text string) {
	t.Helper()
	for e := range events {
		if strings.Contains(e, text) {
			return
		}
	}
}

// complete binds a claim as the binder does.
func (c *cluster) complete(claim, volume string) {
	ctx := context.Background()
	have, err := c.client.CoreV1().PersistentVolumeClaims("default").Get(ctx, claim, metav1.GetOptions{})
	if err != nil {
		c.Fatal(err)
	}
	have.Spec.VolumeName, have.ResourceVersion = volume, "9"
	metav1.SetMetaDataAnnotation(&have.ObjectMeta, "pv.kubernetes.io/bind-completed", "yes")
	if _, err := c.client.CoreV1().PersistentVolumeClaims("default").Update(ctx, have, metav1.UpdateOptions{}); err != nil {
		c.Fatal(err)
	}
}

// TestVolumes: pods go where their volumes are, and volumes come where pods go.
func TestVolumes(t *testing.T) {
	t.Parallel()
	c := start(t, st.Node("a"), st.Node("b"),
		lateClass("late", "example.com"), lateClass("manual", "kubernetes.io/no-provisioner"),
		volumeClaim("there", "late", "on-b"), volumeOn("on-b", "late", "b"),
		volumeClaim("made", "late", ""), volumeClaim("found", "manual", ""), volumeOn("free-on-a", "manual", "a"),
		volumeClaim("nowhere", "manual", ""), volumeClaim("later", "immediate", ""))
	ctx := t.Context()
	create := func(p *v1.Pod) {
		t.Helper()
		if _, err := c.client.CoreV1().Pods("default").Create(ctx, p, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	claims, err := c.client.CoreV1().PersistentVolumeClaims("default").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	volumes, err := c.client.CoreV1().PersistentVolumes().Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}

	// A bound volume decides.
	create(withClaim("p1", "there"))
	if got := <-c.bound; got != "p1 b" {
		t.Errorf("bound %q, want p1 b", got)
	}

	// A volume that is to be made: the claim is told the node, the pod waits for it.
	create(withClaim("p2", "made"))
	var node string
	for node == "" {
		node = (<-claims.ResultChan()).Object.(*v1.PersistentVolumeClaim).Annotations["volume.kubernetes.io/selected-node"]
	}
	if _, err := c.client.CoreV1().PersistentVolumes().Create(ctx, volumeOn("pvc-made", "late", node), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.complete("made", "pvc-made")
	if got := <-c.bound; got != "p2 "+node {
		t.Errorf("bound %q, want p2 %s", got, node)
	}

	// A volume that is there: it is taken for the claim.
	create(withClaim("p3", "found"))
	for taken := false; !taken; {
		pv := (<-volumes.ResultChan()).Object.(*v1.PersistentVolume)
		taken = pv.Name == "free-on-a" && pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.UID == "found"
	}
	c.complete("found", "free-on-a")
	if got := <-c.bound; got != "p3 a" {
		t.Errorf("bound %q, want p3 a", got)
	}

	// What keeps a pod is told; its end lets it go.
	create(withClaim("p4", "nowhere"))
	c.until(t, c.events, "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind.")
	create(withClaim("p5", "missing"))
	c.until(t, c.events, `persistentvolumeclaim "missing" not found`)
	create(withClaim("p6", "later"))
	c.until(t, c.events, "pod has unbound immediate PersistentVolumeClaims")
	c.complete("later", "on-b")
	if got := <-c.bound; got != "p6 b" {
		t.Errorf("bound %q, want p6 b", got)
	}
}

// TestOnePod: a claim for one pod keeps the second away until the first has gone.
func TestOnePod(t *testing.T) {
	t.Parallel()
	claim := volumeClaim("alone", "late", "on-b")
	claim.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteOncePod}
	c := start(t, st.Node("a"), st.Node("b"), lateClass("late", "example.com"), claim, volumeOn("on-b", "late", "b"), st.On("b", withClaim("first", "alone")))
	if _, err := c.client.CoreV1().Pods("default").Create(t.Context(), withClaim("second", "alone"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.until(t, c.events, "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod")
	if err := c.client.CoreV1().Pods("default").Delete(t.Context(), "first", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := <-c.bound; got != "second b" {
		t.Errorf("bound %q, want second b", got)
	}
}
