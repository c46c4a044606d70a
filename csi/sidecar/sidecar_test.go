package sidecar_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/retry"

	"github.com/periplus/periplus/controllers/controllerstest"
	"github.com/periplus/periplus/csi"
	"github.com/periplus/periplus/csi/csitest"
	"github.com/periplus/periplus/csi/sidecar"
)

const (
	driver = "disk.example.com"
	node   = "n1"
	zone   = "topology.example.com/zone"
)

var ctx = context.Background()

type world struct {
	*controllerstest.Cluster
	t      *testing.T
	fake   *csitest.Driver
	staged atomic.Bool
}

func start(t *testing.T, objects ...runtime.Object) *world {
	t.Helper()
	w := &world{t: t, fake: &csitest.Driver{Name: driver}}
	drivers := csi.NewDrivers()
	drivers.Register(driver, csi.InProcess(w.fake))
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, Labels: map[string]string{zone: "z1"}}}
	objects = append(objects,
		&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: driver, Annotations: map[string]string{sidecar.Opt: "true"}}},
		&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
			{Name: driver, NodeID: "id-of-node", TopologyKeys: []string{zone}}}}})
	w.Cluster = controllerstest.Start(t, sidecar.Controllers(sidecar.Config{
		Node: node, Drivers: drivers, NodeObject: func() *corev1.Node { return n },
		Staged: func(string, string) (string, string) {
			if w.staged.Load() {
				return "/staging", "/published"
			}
			return "", ""
		},
	}), nil, objects...)
	return w
}

func class(name string, mode storagev1.VolumeBindingMode) *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: driver, VolumeBindingMode: &mode,
		Parameters: map[string]string{"tier": "gold", csi.ParameterFSType: "xfs"}}
}

func claim(name, class, on string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: "uid-x", Annotations: map[string]string{"volume.kubernetes.io/storage-provisioner": driver}},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
	if on != "" {
		c.Annotations["volume.kubernetes.io/selected-node"] = on
	}
	return c
}

func (w *world) asked(call string) {
	w.t.Helper()
	w.Until("the driver is asked: "+call, func() bool { return slices.Contains(w.fake.Calls(), call) })
}

func (w *world) told(text string) {
	w.t.Helper()
	w.Until("it is told: "+text, func() bool {
		return slices.ContainsFunc(w.Events(), func(e string) bool { return strings.Contains(e, text) })
	})
}

func (w *world) volume(name string) *corev1.PersistentVolume {
	pv, err := w.Client.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return pv
}

// TestProvision makes a volume for the claim of this node, and deletes it with its claim.
func TestProvision(t *testing.T) {
	t.Parallel()
	w := start(t, class("late", storagev1.VolumeBindingWaitForFirstConsumer), claim("a", "late", node))
	w.Until("the volume is there", func() bool { return w.volume("pvc-uid-x") != nil })
	pv := w.volume("pvc-uid-x")
	source := pv.Spec.CSI
	if source.Driver != driver || source.VolumeHandle != "id-pvc-uid-x" || source.FSType != "xfs" || source.VolumeAttributes["tier"] != "gold" || source.VolumeAttributes[csi.ParameterFSType] != "" {
		t.Errorf("source %+v", source)
	}
	if pv.Spec.ClaimRef.Name != "a" || pv.Spec.ClaimRef.UID != "uid-x" || pv.Annotations["pv.kubernetes.io/provisioned-by"] != driver || pv.Spec.Capacity.Storage().String() != "1Gi" {
		t.Errorf("volume %+v", pv)
	}
	if e := pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0]; e.Key != zone || e.Values[0] != "z1" {
		t.Errorf("affinity %+v", e)
	}
	w.told("ProvisioningSucceeded: Successfully provisioned volume pvc-uid-x")
	pv.Status.Phase = corev1.VolumeReleased
	if _, err := w.Client.CoreV1().PersistentVolumes().UpdateStatus(ctx, pv, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.Until("the volume is gone", func() bool { return w.volume("pvc-uid-x") == nil })
	w.asked("DeleteVolume id-pvc-uid-x")
}

// TestWhose: a claim of another node is left alone, one without a node is taken.
func TestWhose(t *testing.T) {
	t.Parallel()
	w := start(t, class("late", storagev1.VolumeBindingWaitForFirstConsumer), class("now", storagev1.VolumeBindingImmediate),
		claim("other", "late", "n2"), claim("undecided", "late", ""), claim("at-once", "now", ""))
	w.Until("the claim without a node is ours", func() bool {
		c, err := w.Client.CoreV1().PersistentVolumeClaims("default").Get(ctx, "at-once", metav1.GetOptions{})
		return err == nil && c.Annotations["volume.kubernetes.io/selected-node"] == node
	})
	w.asked("CreateVolume pvc-uid-x")
	for _, e := range w.Events() {
		if strings.Contains(e, "other") || strings.Contains(e, "undecided") {
			t.Errorf("unexpected: %s", e)
		}
	}
}

// TestNoRoom gives the claim back to the scheduler.
func TestNoRoom(t *testing.T) {
	t.Parallel()
	w := start(t, class("late", storagev1.VolumeBindingWaitForFirstConsumer))
	w.fake.Fail = func(call string) error {
		if strings.HasPrefix(call, "CreateVolume") {
			return status.Error(codes.ResourceExhausted, "full")
		}
		return nil
	}
	if _, err := w.Client.CoreV1().PersistentVolumeClaims("default").Create(ctx, claim("a", "late", node), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.told(`ProvisioningFailed: failed to provision volume with StorageClass "late": rpc error: code = ResourceExhausted desc = full`)
	w.Until("the node is taken off", func() bool {
		c, err := w.Client.CoreV1().PersistentVolumeClaims("default").Get(ctx, "a", metav1.GetOptions{})
		return err == nil && c.Annotations["volume.kubernetes.io/selected-node"] == ""
	})
}

func bound() (*corev1.PersistentVolume, *corev1.PersistentVolumeClaim) {
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	c := claim("a", "late", node)
	c.Spec.VolumeName, c.Status = "v", corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: size}
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}, Spec: corev1.PersistentVolumeSpec{
		Capacity: size.DeepCopy(), PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: "h"}},
	}, Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound}}, c
}

// TestAttach: an attachment of this node is made, and taken back.
func TestAttach(t *testing.T) {
	t.Parallel()
	pv, c := bound()
	w := start(t, pv, c)
	va := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "va"}, Spec: storagev1.VolumeAttachmentSpec{
		Attacher: driver, NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv.Name}}}
	if _, err := w.Client.StorageV1().VolumeAttachments().Create(ctx, va, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	get := func() *storagev1.VolumeAttachment {
		va, err := w.Client.StorageV1().VolumeAttachments().Get(ctx, "va", metav1.GetOptions{})
		if err != nil {
			return nil
		}
		return va
	}
	w.Until("it is attached", func() bool {
		va := get()
		return va.Status.Attached && va.Status.AttachmentMetadata["device"] == "/dev/of/h" && slices.Contains(va.Finalizers, "external-attacher/"+driver)
	})
	w.asked("ControllerPublishVolume h id-of-node")
	gone := get()
	now := metav1.Now()
	gone.DeletionTimestamp = &now
	if _, err := w.Client.StorageV1().VolumeAttachments().Update(ctx, gone, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.asked("ControllerUnpublishVolume h id-of-node")
	w.Until("the finalizer is off", func() bool { va := get(); return va == nil || len(va.Finalizers) == 0 })
}

// TestGrow: first the volume, then the file system, once it is mounted.
func TestGrow(t *testing.T) {
	t.Parallel()
	pv, c := bound()
	w := start(t, pv, c)
	get := func() *corev1.PersistentVolumeClaim {
		c, err := w.Client.CoreV1().PersistentVolumeClaims("default").Get(ctx, "a", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	ask := func(size string) {
		err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			c := get()
			c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(size)
			_, err := w.Client.CoreV1().PersistentVolumeClaims("default").Update(ctx, c, metav1.UpdateOptions{})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	ask("2Gi")
	w.Until("the volume has grown, the file system waits", func() bool {
		c := get()
		return w.volume("v").Spec.Capacity.Storage().String() == "2Gi" && c.Status.Capacity.Storage().String() == "1Gi" &&
			len(c.Status.Conditions) == 1 && c.Status.Conditions[0].Type == corev1.PersistentVolumeClaimFileSystemResizePending
	})
	w.told("FileSystemResizeRequired: Require file system resize of volume on node")
	w.staged.Store(true)
	ask("3Gi")
	w.asked("NodeExpandVolume h")
	w.Until("the claim has its size", func() bool {
		c := get()
		return c.Status.Capacity.Storage().String() == "3Gi" && len(c.Status.Conditions) == 0 && len(c.Status.AllocatedResourceStatuses) == 0
	})
}
