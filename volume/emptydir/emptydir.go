package emptydir

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/volume"
)

// mode lets every user of the pod's containers write.
const mode = 0o777

type plugin struct{}

var _ volume.Plugin = plugin{}

// New returns the plug-in.
func New() volume.Plugin { return plugin{} }

func (plugin) Name() string                   { return "kubernetes.io/empty-dir" }
func (plugin) Supports(v *corev1.Volume) bool { return v.EmptyDir != nil }
func (plugin) Live() bool                     { return false }

func (plugin) SetUp(_ context.Context, r volume.Request) (volume.Mounted, error) {
	e := r.Volume.EmptyDir
	var err error
	switch medium := e.Medium; {
	case medium == corev1.StorageMediumDefault:
		// The kubelet's eviction watches sizeLimit here.
		err = r.DiskDir(mode)
	case medium == corev1.StorageMediumMemory:
		err = r.MemoryDir(mode, e.SizeLimit)
	case medium == corev1.StorageMediumHugePages || strings.HasPrefix(string(medium), string(corev1.StorageMediumHugePagesPrefix)):
		err = fmt.Errorf("emptyDir medium %q is not supported by this node", medium)
	default:
		err = fmt.Errorf("unknown storage medium %q", medium)
	}
	if err == nil {
		err = r.SetOwner(r.Dir, false)
	}
	return volume.Mounted{HostPath: r.Dir}, err
}

func (plugin) TearDown(_ context.Context, dir string) error { return volume.Remove(dir) }
