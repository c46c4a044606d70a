package ephemeralvolume_test

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/controllers"
	"github.com/periplus/periplus/controllers/controllerstest"
	"github.com/periplus/periplus/controllers/ephemeralvolume"
)

// TestClaims: each ephemeral volume gets a claim that its pod owns; a foreign claim
// of that name is left alone.
func TestClaims(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	foreign := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "p-taken", Namespace: "default"}}
	w := controllerstest.Start(t, []controllers.Controller{ephemeralvolume.Controller()}, nil, foreign)
	class := "fast"
	volume := func(name string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}, Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class},
		}}}}
	}
	pod, err := w.Client.CoreV1().Pods("default").Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default"}, Spec: corev1.PodSpec{Volumes: []corev1.Volume{volume("tmp"), volume("taken")}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var claim *corev1.PersistentVolumeClaim
	w.Until("the claim is there", func() bool {
		claim, err = w.Client.CoreV1().PersistentVolumeClaims("default").Get(ctx, "p-tmp", metav1.GetOptions{})
		return err == nil
	})
	if !metav1.IsControlledBy(claim, pod) || claim.Labels["a"] != "b" || *claim.Spec.StorageClassName != "fast" {
		t.Errorf("claim %+v", claim)
	}
	w.Until("the conflict is told", func() bool {
		return slices.Contains(w.Events(), `FailedBinding: ephemeral volume taken: PVC default/p-taken was not created for pod default/p (pod is not owner)`)
	})
}
