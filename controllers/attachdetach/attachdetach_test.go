package attachdetach_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/controllers"
	"github.com/periplus/periplus/controllers/attachdetach"
	"github.com/periplus/periplus/controllers/controllerstest"
)

var ctx = context.Background()

func pv(name, driver string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: "handle-" + name}},
	}}
}

func claim(name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: name}}
}

func pod(name, node string, claims ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: corev1.PodSpec{NodeName: node}}
	for _, c := range claims {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: c, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c}}})
	}
	return p
}

// TestAttachments follow the pods: made for drivers that want them, one node at a
// time, deleted after the last pod.
func TestAttachments(t *testing.T) {
	t.Parallel()
	no := false
	w := controllerstest.Start(t, []controllers.Controller{attachdetach.Controller()}, nil,
		&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "local"}, Spec: storagev1.CSIDriverSpec{AttachRequired: &no}},
		pv("disk", "cloud"), pv("dir", "local"), claim("disk"), claim("dir"), pod("a", "n1", "disk", "dir"))
	list := func() (out []string) {
		l, err := w.Client.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Error(err)
			return nil
		}
		for _, va := range l.Items {
			out = append(out, *va.Spec.Source.PersistentVolumeName+" "+va.Spec.NodeName)
		}
		return out
	}
	told := func(text string) func() bool {
		return func() bool {
			return slices.ContainsFunc(w.Events(), func(e string) bool { return strings.Contains(e, text) })
		}
	}
	w.Until("the disk is to be attached", func() bool { return slices.Equal(list(), []string{"disk n1"}) })
	all, err := w.Client.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	va := &all.Items[0]
	va.Status.Attached = true
	if _, err := w.Client.StorageV1().VolumeAttachments().UpdateStatus(ctx, va, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.Until("the pod is told", told(`SuccessfulAttachVolume: AttachVolume.Attach succeeded for volume "disk" `))

	// Another node has to wait.
	if _, err := w.Client.CoreV1().Pods("default").Create(ctx, pod("b", "n2", "disk"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.Until("it is told who has it", told("FailedAttachVolume: Waiting for detach for volume \"disk\" Volume is already used by pod(s) a"))
	if err := w.Client.CoreV1().Pods("default").Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.Until("then it gets the disk", func() bool { return slices.Equal(list(), []string{"disk n2"}) })
	w.SetPod("default", "b", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
	w.Until("nobody has it", func() bool { return len(list()) == 0 })
}

// TestInUse: what a node still has mounted is not detached, and what is attached is shown.
func TestInUse(t *testing.T) {
	t.Parallel()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{VolumesInUse: []corev1.UniqueVolumeName{"kubernetes.io/csi/cloud^handle-disk"}}}
	name := "disk"
	w := controllerstest.Start(t, []controllers.Controller{attachdetach.Controller()}, nil, node, pv("disk", "cloud"), claim("disk"),
		&storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "va", UID: "va"}, Spec: storagev1.VolumeAttachmentSpec{
			Attacher: "cloud", NodeName: "n1", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &name}}, Status: storagev1.VolumeAttachmentStatus{Attached: true}})
	get := func() *corev1.Node {
		n, err := w.Client.CoreV1().Nodes().Get(ctx, "n1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	w.Until("the node shows it", func() bool {
		a := get().Status.VolumesAttached
		return len(a) == 1 && a[0].Name == "kubernetes.io/csi/cloud^handle-disk"
	})
	if _, err := w.Client.StorageV1().VolumeAttachments().Get(ctx, "va", metav1.GetOptions{}); err != nil {
		t.Fatalf("detached while it is in use: %v", err)
	}
	n := get()
	n.Status.VolumesInUse = nil
	if _, err := w.Client.CoreV1().Nodes().UpdateStatus(ctx, n, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.Until("it is detached once the node has let go", func() bool {
		_, err := w.Client.StorageV1().VolumeAttachments().Get(ctx, "va", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}
