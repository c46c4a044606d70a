package pvcprotection_test

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/controllers"
	"github.com/periplus/periplus/controllers/controllerstest"
	"github.com/periplus/periplus/controllers/pvcprotection"
)

const finalizer = "kubernetes.io/pvc-protection"

// TestInUse: a claim that is being deleted is kept until the last pod has ended.
func TestInUse(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	now := metav1.Now()
	claim := func(name string, deleting bool) *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
		if deleting {
			c.Finalizers, c.DeletionTimestamp = []string{finalizer, "other/keeps-the-object"}, &now
		}
		return c
	}
	pod := func(name, claim, node string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
			Spec: corev1.PodSpec{NodeName: node, Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}},
		}
	}
	w := controllerstest.Start(t, []controllers.Controller{pvcprotection.Controller()}, nil,
		claim("fresh", false), claim("used", true), claim("wanted", true), claim("idle", true),
		pod("runs", "used", "n1"), pod("waits", "wanted", ""))
	kept := func(name string) bool {
		c, err := w.Client.CoreV1().PersistentVolumeClaims("default").Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false
		}
		if err != nil {
			t.Error(err)
			return false
		}
		return slices.Contains(c.Finalizers, finalizer)
	}
	w.Until("a new claim is protected", func() bool { return kept("fresh") })
	w.Until("one that nobody uses goes", func() bool { return !kept("idle") })
	w.Until("one of a pod without a node goes", func() bool { return !kept("wanted") })
	if !kept("used") {
		t.Fatal("a claim went from under a running pod")
	}
	w.SetPod("default", "runs", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
	w.Until("it goes when the pod has ended", func() bool { return !kept("used") })
}
