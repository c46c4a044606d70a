package volume

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A Host keeps the volumes of a node's pods. Its methods may be called at the
// same time; calls for one pod wait for each other.
type Host struct {
	config Config
}

// NewHost returns a Host. Nothing runs until Run is called; without Run volumes
// are mounted and unmounted but not refreshed.
func NewHost(c Config) (*Host, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &Host{config: c}, nil
}

// Run refreshes the live volumes of mounted pods when their sources change or
// their tokens near their end, until ctx ends.
func (h *Host) Run(ctx context.Context) error { <-ctx.Done(); return nil }

// Mount makes all volumes of the pod available and returns them by name. It is
// called before the pod's containers start and may be called again at any time.
// The error joins one *MountError per volume that failed, see MountErrors.
func (h *Host) Mount(ctx context.Context, pod *corev1.Pod) (map[string]Mounted, error) {
	return nil, nil
}

// Refresh brings the live volumes of a mounted pod up to date with pod, whose
// labels or annotations may have changed. It does nothing for a pod that is not mounted.
func (h *Host) Refresh(ctx context.Context, pod *corev1.Pod) error { return nil }

// Unmount removes all volumes of the pod, also those that an earlier process
// mounted, and the pod's directory. It succeeds when nothing is there.
func (h *Host) Unmount(ctx context.Context, uid types.UID) error { return nil }

// Pods lists the pods that have a directory on the node, mounted or left over.
func (h *Host) Pods() ([]types.UID, error) { return nil, nil }

// PodDir is the pod's own directory, <root>/pods/<uid>.
func (h *Host) PodDir(uid types.UID) string { return "" }

// SourceChanged tells the Host that an object of kind "ConfigMap" or "Secret"
// was added, changed or deleted. It does not block.
func (h *Host) SourceChanged(kind, namespace, name string) {}

// Dependents returns the pods that refer to the object.
func (h *Host) Dependents(kind, namespace, name string) []types.UID { return nil }

// SubPath returns the node's path for a mount's subPath inside the volume m.
// container and index (of the mount in the container) name the bind mount.
func (h *Host) SubPath(uid types.UID, m Mounted, volume, container string, index int, subPath string) (string, error) {
	return "", nil
}
