package csi_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/periplus/periplus/csi"
	"github.com/periplus/periplus/csi/csitest"
	"github.com/periplus/periplus/volume"
	"github.com/periplus/periplus/volume/all"
	volumecsi "github.com/periplus/periplus/volume/csi"
	"github.com/periplus/periplus/volume/volumetest"
)

const driver = "disk.example.com"

var ctx = context.Background()

type rig struct {
	root   string
	fake   *csitest.Driver
	client *fake.Clientset
	host   *volume.Host
	plugin *volumecsi.Plugin
}

// newRig is a kubelet's volumes over a driver in memory; a second one over the
// same root is the kubelet after a restart.
func newRig(t *testing.T, root string, d *csitest.Driver, client *fake.Clientset) *rig {
	t.Helper()
	drivers := csi.NewDrivers()
	drivers.Register(driver, csi.InProcess(d))
	p := volumecsi.New(volumecsi.Config{Root: root, Node: "n1", Drivers: drivers, Client: client})
	h, err := volume.NewHost(volume.Config{Root: root, Plugins: all.Plugins(p), Sources: volumetest.NewSources(), Claims: volume.LiveClaims{Client: client}})
	if err != nil {
		t.Fatal(err)
	}
	return &rig{root, d, client, h, p}
}

func cluster(attach bool) *fake.Clientset {
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	return fake.NewClientset(
		&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: driver}, Spec: storagev1.CSIDriverSpec{AttachRequired: &attach}},
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: "ns", UID: "claim"}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv"},
			Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: size}},
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "unbound", Namespace: "ns"}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}},
		&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{
			Capacity: size, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, ClaimRef: &corev1.ObjectReference{Namespace: "ns", Name: "data", UID: "claim"},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: "h"}}}},
	)
}

func pod(uid, claim string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: uid, Namespace: "ns", UID: types.UID(uid)}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c", VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}}},
		Volumes:    []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}},
	}}
}

// TestReferences: staged once, unstaged after the last pod, also by a kubelet that has
// forgotten everything.
func TestReferences(t *testing.T) {
	t.Parallel()
	d, client, root := &csitest.Driver{Name: driver}, cluster(false), t.TempDir()
	r := newRig(t, root, d, client)
	for _, uid := range []string{"a", "b"} {
		m, err := r.host.Mount(ctx, pod(uid, "data"))
		if err != nil {
			t.Fatal(err)
		}
		if want := filepath.Join(root, "pods", uid, "volumes/kubernetes.io~csi/pv/mount"); m["v"].HostPath != want {
			t.Errorf("at %s, want %s", m["v"].HostPath, want)
		}
	}
	if staging, published := r.plugin.Staged(driver, "h"); !strings.HasSuffix(staging, "/globalmount") || published == "" {
		t.Errorf("staged %q, published %q", staging, published)
	}
	r = newRig(t, root, d, client)
	if err := r.host.Unmount(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(d.Calls(), "NodeUnstageVolume h") {
		t.Fatal("unstaged while another pod has it")
	}
	if err := r.host.Unmount(ctx, "b"); err != nil {
		t.Fatal(err)
	}
	want := []string{"NodeUnpublishVolume h", "NodeUnpublishVolume h", "NodeUnstageVolume h"}
	if calls := d.Calls(); !slices.Equal(calls[len(calls)-3:], want) {
		t.Errorf("calls %v", calls)
	}
	if left, err := filepath.Glob(filepath.Join(root, "plugins/kubernetes.io/csi", driver, "*")); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	if err := r.host.Unmount(ctx, "b"); err != nil {
		t.Errorf("again: %v", err)
	}
}

// TestCleanStaged takes off what was staged for a pod that never got it.
func TestCleanStaged(t *testing.T) {
	t.Parallel()
	d, root := &csitest.Driver{Name: driver}, t.TempDir()
	r := newRig(t, root, d, cluster(false))
	d.Fail = func(call string) error {
		if call == "NodePublishVolume h" {
			return status.Error(codes.Internal, "the process ends here")
		}
		return nil
	}
	if _, err := r.host.Mount(ctx, pod("a", "data")); err == nil {
		t.Fatal("it was mounted")
	}
	// Its directory is still there: the pod may be tried again.
	if err := r.plugin.CleanStaged(ctx); err != nil || slices.Contains(d.Calls(), "NodeUnstageVolume h") {
		t.Fatalf("%v, %v", err, d.Calls())
	}
	if err := os.RemoveAll(filepath.Join(root, "pods")); err != nil {
		t.Fatal(err)
	}
	if err := r.plugin.CleanStaged(ctx); err != nil || !slices.Contains(d.Calls(), "NodeUnstageVolume h") {
		t.Errorf("%v, %v", err, d.Calls())
	}
}

// TestAttachment waits for the attachment and hands on what the driver said about it.
func TestAttachment(t *testing.T) {
	t.Parallel()
	d, client := &csitest.Driver{Name: driver}, cluster(true)
	r := newRig(t, t.TempDir(), d, client)
	name := csi.AttachmentName("h", driver, "n1")
	va := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := client.StorageV1().VolumeAttachments().Create(ctx, va, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := r.host.Mount(ctx, pod("a", "data"))
		done <- err
	}()
	va.Status = storagev1.VolumeAttachmentStatus{Attached: true, AttachmentMetadata: map[string]string{"device": "/dev/x"}}
	if _, err := client.StorageV1().VolumeAttachments().UpdateStatus(ctx, va, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(d.Calls(), "NodeStageVolume h /dev/x") {
		t.Errorf("calls %v", d.Calls())
	}
}

// TestWords: failures read as upstream's.
func TestWords(t *testing.T) {
	t.Parallel()
	d := &csitest.Driver{Name: driver}
	r := newRig(t, t.TempDir(), d, cluster(false))
	d.Fail = func(call string) error {
		if strings.HasPrefix(call, "NodeStage") {
			return status.Error(codes.Internal, "no disk")
		}
		return nil
	}
	for claim, want := range map[string]string{
		"data":    `MountVolume.MountDevice failed for volume "pv" : rpc error: code = Internal desc = no disk`,
		"unbound": `Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], failed to process volumes=[v]: error processing PVC ns/unbound: PVC is not bound`,
		"missing": `Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], failed to process volumes=[v]: error processing PVC ns/missing: failed to fetch PVC from API server: persistentvolumeclaims "missing" not found`,
	} {
		_, err := r.host.Mount(ctx, pod(claim, claim))
		if all := volume.MountErrors(err); len(all) != 1 || all[0].Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}
