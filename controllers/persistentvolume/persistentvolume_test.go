package persistentvolume_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/periplus/periplus/controllers"
	"github.com/periplus/periplus/controllers/controllerstest"
	"github.com/periplus/periplus/controllers/persistentvolume"
)

var ctx = context.Background()

type world struct {
	*controllerstest.Cluster
	t *testing.T
}

func start(t *testing.T, objects ...runtime.Object) world {
	return world{controllerstest.Start(t, []controllers.Controller{persistentvolume.Controller()}, nil, objects...), t}
}

func pv(name, size string, change ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:    corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)},
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: "manual",
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/x"}},
		},
	}
	for _, f := range change {
		f(v)
	}
	return v
}

func claim(name, size string, change ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	class := "manual"
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID("uid-" + name)},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: &class,
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
		},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

func class(name, provisioner string, mode storagev1.VolumeBindingMode) *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner, VolumeBindingMode: &mode}
}

func (w world) claim(name string) *corev1.PersistentVolumeClaim {
	c, err := w.Client.CoreV1().PersistentVolumeClaims("default").Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (w world) volume(name string) *corev1.PersistentVolume {
	v, err := w.Client.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

func (w world) bound(claim, volume string) {
	w.t.Helper()
	w.Until(claim+" is bound to "+volume, func() bool {
		c, v := w.claim(claim), w.volume(volume)
		return c.Status.Phase == corev1.ClaimBound && c.Spec.VolumeName == volume && c.Annotations["pv.kubernetes.io/bind-completed"] == "yes" &&
			v.Status.Phase == corev1.VolumeBound && v.Spec.ClaimRef != nil && v.Spec.ClaimRef.UID == c.UID
	})
}

func (w world) told(text string) {
	w.t.Helper()
	w.Until("it is told: "+text, func() bool {
		return slices.ContainsFunc(w.Events(), func(e string) bool { return strings.Contains(e, text) })
	})
}

// TestMatching binds the smallest volume that fits, and only one that fits.
func TestMatching(t *testing.T) {
	t.Parallel()
	block := corev1.PersistentVolumeBlock
	w := start(t,
		pv("large", "10Gi"), pv("small", "2Gi"), pv("tiny", "1Mi"),
		pv("other-class", "2Gi", func(v *corev1.PersistentVolume) { v.Spec.StorageClassName = "" }),
		pv("device", "2Gi", func(v *corev1.PersistentVolume) { v.Spec.VolumeMode = &block }),
		pv("labelled", "20Gi", func(v *corev1.PersistentVolume) { v.Labels = map[string]string{"disk": "ssd"} }),
	)
	// Only volumes that the controller knows to be available take part.
	w.Until("all are available", func() bool {
		list, err := w.Informers.Core().V1().PersistentVolumes().Lister().List(labels.Everything())
		return err == nil && !slices.ContainsFunc(list, func(v *corev1.PersistentVolume) bool { return v.Status.Phase != corev1.VolumeAvailable })
	})
	for _, c := range []*corev1.PersistentVolumeClaim{
		claim("a", "1Gi"), claim("b", "15Gi", func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"disk": "ssd"}}
		}),
		claim("dev", "1Gi", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = &block }),
	} {
		if _, err := w.Client.CoreV1().PersistentVolumeClaims("default").Create(ctx, c, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	w.bound("a", "small")
	w.bound("b", "labelled")
	w.bound("dev", "device")
	if c := w.claim("a"); c.Annotations["pv.kubernetes.io/bound-by-controller"] != "yes" || c.Status.Capacity.Storage().String() != "2Gi" {
		t.Errorf("claim a: %v %v", c.Annotations, c.Status.Capacity)
	}
	w.Until("the others are available", func() bool {
		return w.volume("tiny").Status.Phase == corev1.VolumeAvailable && w.volume("large").Status.Phase == corev1.VolumeAvailable
	})
}

// TestRelease: what becomes of a volume when its claim goes depends on its policy.
func TestRelease(t *testing.T) {
	t.Parallel()
	w := start(t, pv("kept", "1Gi"), claim("a", "1Gi"))
	w.bound("a", "kept")
	if err := w.Client.CoreV1().PersistentVolumeClaims("default").Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.Until("the volume is released", func() bool { return w.volume("kept").Status.Phase == corev1.VolumeReleased })
	// A claim of the same name does not get the data of the first.
	if _, err := w.Client.CoreV1().PersistentVolumeClaims("default").Create(ctx, claim("again", "1Gi"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Client.CoreV1().PersistentVolumes().Create(ctx, pv("gone", "1Gi", func(v *corev1.PersistentVolume) {
		v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	}), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.bound("again", "gone")
	if err := w.Client.CoreV1().PersistentVolumeClaims("default").Delete(ctx, "again", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.Until("the volume has failed", func() bool { return w.volume("gone").Status.Phase == corev1.VolumeFailed })
	w.told("VolumeFailedDelete: error getting deleter volume plugin for volume \"gone\": no deletable volume plugin matched")
}

// TestLost: a bound claim whose volume is deleted is lost.
func TestLost(t *testing.T) {
	t.Parallel()
	w := start(t, pv("v", "1Gi"), claim("a", "1Gi"))
	w.bound("a", "v")
	if err := w.Client.CoreV1().PersistentVolumes().Delete(ctx, "v", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.Until("the claim is lost", func() bool { return w.claim("a").Status.Phase == corev1.ClaimLost })
	w.told("ClaimLost: Bound claim has lost its PersistentVolume. Data on the volume is lost!")
}

// TestProvisioning: the provisioner is asked once there is a node, or at once.
func TestProvisioning(t *testing.T) {
	t.Parallel()
	named := func(name string) func(*corev1.PersistentVolumeClaim) {
		return func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = &name }
	}
	w := start(t,
		class("now", "example.com", storagev1.VolumeBindingImmediate), class("late", "example.com", storagev1.VolumeBindingWaitForFirstConsumer),
		class("none", "kubernetes.io/no-provisioner", storagev1.VolumeBindingImmediate),
		claim("at-once", "1Gi", named("now")), claim("waits", "1Gi", named("late")), claim("nobody", "1Gi", named("none")), claim("missing", "1Gi", named("missing")),
	)
	asked := func(name string) func() bool {
		return func() bool {
			return w.claim(name).Annotations["volume.kubernetes.io/storage-provisioner"] == "example.com"
		}
	}
	w.Until("the provisioner is asked", asked("at-once"))
	w.told("ExternalProvisioning: Waiting for a volume to be created either by the external provisioner 'example.com'")
	w.told("WaitForFirstConsumer: waiting for first consumer to be created before binding")
	w.told("ProvisioningFailed: no volume plugin matched name: kubernetes.io/no-provisioner")
	w.told(`ProvisioningFailed: storageclass.storage.k8s.io "missing" not found`)
	if asked("waits")() {
		t.Error("a volume was asked for before there was a node")
	}
	c := w.claim("waits").DeepCopy()
	c.Annotations = map[string]string{"volume.kubernetes.io/selected-node": "n1"}
	if _, err := w.Client.CoreV1().PersistentVolumeClaims("default").Update(ctx, c, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.Until("the provisioner is asked for the other too", asked("waits"))
	// The provisioner's volume carries the claim.
	made := pv("pvc-x", "1Gi", func(v *corev1.PersistentVolume) {
		v.Spec.StorageClassName = "late"
		v.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: "default", Name: "waits", UID: "uid-waits"}
	})
	if _, err := w.Client.CoreV1().PersistentVolumes().Create(ctx, made, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.bound("waits", "pvc-x")
	// A default class that comes later is taken by claims that name none.
	bare := claim("bare", "1Gi")
	bare.Spec.StorageClassName = nil
	if _, err := w.Client.CoreV1().PersistentVolumeClaims("default").Create(ctx, bare, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.told("FailedBinding: no persistent volumes available for this claim and no storage class is set")
	def := class("def", "example.com", storagev1.VolumeBindingImmediate)
	def.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
	if _, err := w.Client.StorageV1().StorageClasses().Create(ctx, def, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.Until("the claim has the default class", func() bool { c := w.claim("bare").Spec.StorageClassName; return c != nil && *c == "def" })
}
