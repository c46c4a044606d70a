package sidecar

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/periplus/periplus/controllers"
	"github.com/periplus/periplus/csi"
)

// Opt is the annotation of CSIDriver objects whose duties are done here.
const Opt = "csi.periplus.io/sidecars"

// Config says whom to serve.
type Config struct {
	Node    string // the name of this node
	Drivers *csi.Drivers
	// NodeObject returns this node's own object.
	NodeObject func() *corev1.Node
	// Staged says where a volume is mounted on this node: the staging path and one
	// path of a pod; "" if it is not.
	Staged func(driver, handle string) (staging, published string)
}

// Controllers returns the duties. They run with the identity of the node.
func Controllers(c Config) []controllers.Controller {
	core, storage := corev1.SchemeGroupVersion, storagev1.SchemeGroupVersion
	claims, volumes := core.WithResource("persistentvolumeclaims"), core.WithResource("persistentvolumes")
	return []controllers.Controller{
		{Name: Provisioner, Workers: 2, Reads: []schema.GroupVersionResource{claims, volumes, storage.WithResource("storageclasses")},
			Writes: []schema.GroupVersionResource{claims, volumes}, New: c.provisioner},
		{Name: "csi-attacher", Workers: 1, Reads: []schema.GroupVersionResource{storage.WithResource("volumeattachments"), volumes},
			Writes: []schema.GroupVersionResource{storage.WithResource("volumeattachments"), volumes}, New: c.attacher},
		{Name: "csi-resizer", Workers: 1, Reads: []schema.GroupVersionResource{claims, volumes},
			Writes: []schema.GroupVersionResource{claims, volumes}, New: c.resizer},
	}
}

// duty is what the controllers have in common.
type duty struct {
	*controllers.Setup
	Config
	claims  corelisters.PersistentVolumeClaimLister
	volumes corelisters.PersistentVolumeLister
	drivers storagelisters.CSIDriverLister
}

func (c Config) duty(s *controllers.Setup) duty {
	core := s.Informers.Core().V1()
	drivers := s.Informers.Storage().V1().CSIDrivers()
	s.Need(core.PersistentVolumes().Informer(), core.PersistentVolumeClaims().Informer())
	return duty{Setup: s, Config: c, claims: core.PersistentVolumeClaims().Lister(), volumes: core.PersistentVolumes().Lister(), drivers: drivers.Lister()}
}

// again has everything of a driver looked at when it comes, or when its object
// says that its duties are to be done here.
func (d *duty) again(look func()) {
	d.Drivers.OnRegister(func(string) { look() })
	d.Watch(d.Informers.Storage().V1().CSIDrivers().Informer(), controllers.On(func(old, now *storagev1.CSIDriver) {
		if now != nil && now.Annotations[Opt] == "true" && (old == nil || old.Annotations[Opt] != "true") && d.Drivers.Has(now.Name) {
			look()
		}
	}))
}

// serves reports whether the duties of a driver are done on this node.
func (d *duty) serves(driver string) bool {
	if driver == "" || !d.Drivers.Has(driver) {
		return false
	}
	if d.Drivers.IsBuiltin(driver) {
		return true
	}
	object, err := d.drivers.Get(driver)
	return err == nil && object.Annotations[Opt] == "true"
}

// here reports whether a volume can be reached from this node.
func (d *duty) here(pv *corev1.PersistentVolume) bool {
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
		return true
	}
	node := d.NodeObject()
	if node == nil {
		return false
	}
	selector, err := nodeaffinity.NewNodeSelector(pv.Spec.NodeAffinity.Required)
	return err == nil && selector.Match(node)
}

// secrets reads the secret that a reference names.
func (d *duty) secrets(ctx context.Context, ref *corev1.SecretReference) (map[string]string, error) {
	if ref == nil || ref.Name == "" {
		return nil, nil
	}
	secret, err := d.Client.CoreV1().Secrets(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("error getting secret %s in namespace %s: %w", ref.Name, ref.Namespace, err)
	}
	out := make(map[string]string, len(secret.Data))
	for k, v := range secret.Data {
		out[k] = string(v)
	}
	return out, nil
}
