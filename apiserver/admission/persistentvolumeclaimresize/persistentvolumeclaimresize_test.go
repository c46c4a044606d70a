package persistentvolumeclaimresize_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/admission/persistentvolumeclaimresize"
)

// classes are the storage classes of the server.
type classes map[string]*storagev1.StorageClass

func (c classes) Get(gvr schema.GroupVersionResource, _, name string) (runtime.Object, error) {
	if class := c[name]; class != nil {
		return class, nil
	}
	return nil, apierrors.NewNotFound(gvr.GroupResource(), name)
}

func (c classes) List(schema.GroupVersionResource, string) ([]runtime.Object, error) { return nil, nil }

func claim(size, class string, phase corev1.PersistentVolumeClaimPhase) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "default"},
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class, Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}}},
		Status: corev1.PersistentVolumeClaimStatus{Phase: phase},
	}
}

func TestResize(t *testing.T) {
	t.Parallel()
	yes := true
	p, ok := persistentvolumeclaimresize.New(classes{
		"grows": {AllowVolumeExpansion: &yes}, "fixed": {},
	}).(admission.Validator)
	if !ok {
		t.Fatal("no validator")
	}
	const notAllowed = `persistentvolumeclaims "c" is forbidden: only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize`
	for name, c := range map[string]struct {
		from, to, class string
		phase           corev1.PersistentVolumeClaimPhase
		want            string
	}{
		"grows":       {"1Gi", "2Gi", "grows", corev1.ClaimBound, ""},
		"same":        {"1Gi", "1Gi", "fixed", corev1.ClaimPending, ""},
		"not bound":   {"1Gi", "2Gi", "grows", corev1.ClaimPending, `persistentvolumeclaims "c" is forbidden: Only bound persistent volume claims can be expanded`},
		"not allowed": {"1Gi", "2Gi", "fixed", corev1.ClaimBound, notAllowed},
		"no class":    {"1Gi", "2Gi", "", corev1.ClaimBound, notAllowed},
	} {
		err := p.Validate(context.Background(), &admission.Attributes{
			Operation: admission.Update, Resource: corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), Name: "c",
			Object: claim(c.to, c.class, c.phase), Old: claim(c.from, c.class, c.phase),
		})
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
