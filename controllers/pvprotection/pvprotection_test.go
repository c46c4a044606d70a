package pvprotection_test

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/controllers"
	"github.com/periplus/periplus/controllers/controllerstest"
	"github.com/periplus/periplus/controllers/pvprotection"
)

const finalizer = "kubernetes.io/pv-protection"

// TestBound: a volume that is being deleted is kept while it is bound.
func TestBound(t *testing.T) {
	t.Parallel()
	ctx, now := context.Background(), metav1.Now()
	deleting := func(name string, phase corev1.PersistentVolumePhase) *corev1.PersistentVolume {
		return &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: name, DeletionTimestamp: &now, Finalizers: []string{finalizer, "other/keeps-the-object"}},
			Status:     corev1.PersistentVolumeStatus{Phase: phase},
		}
	}
	w := controllerstest.Start(t, []controllers.Controller{pvprotection.Controller()}, nil,
		&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "fresh"}}, deleting("bound", corev1.VolumeBound), deleting("free", corev1.VolumeAvailable))
	kept := func(name string) bool {
		v, err := w.Client.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Error(err)
			return false
		}
		return slices.Contains(v.Finalizers, finalizer)
	}
	w.Until("a new volume is protected", func() bool { return kept("fresh") })
	w.Until("a free one goes", func() bool { return !kept("free") })
	if !kept("bound") {
		t.Fatal("a bound volume went")
	}
	v, err := w.Client.CoreV1().PersistentVolumes().Get(ctx, "bound", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	v.Status.Phase = corev1.VolumeReleased
	if _, err := w.Client.CoreV1().PersistentVolumes().UpdateStatus(ctx, v, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.Until("it goes when it is released", func() bool { return !kept("bound") })
}
