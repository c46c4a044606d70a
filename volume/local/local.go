package local

import (
	"context"
	"fmt"
	"io/fs"
	"os"

	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/volume"
)

type plugin struct{}

var _ volume.PersistentPlugin = plugin{}

// New returns the plug-in.
func New() volume.Plugin { return plugin{} }

func (plugin) Name() string                 { return "kubernetes.io/local-volume" }
func (plugin) Supports(*corev1.Volume) bool { return false }
func (plugin) Live() bool                   { return false }

// SupportsPersistent implements volume.PersistentPlugin.
func (plugin) SupportsPersistent(spec *corev1.PersistentVolumeSpec) bool { return spec.Local != nil }

// SetUp hands the path on: it is the node's.
func (plugin) SetUp(_ context.Context, r volume.Request) (volume.Mounted, error) {
	path := r.Persistent.Spec.Local.Path
	info, err := os.Stat(path)
	if err != nil {
		return volume.Mounted{}, fmt.Errorf("path %q does not exist", path)
	}
	block := r.Persistent.Spec.VolumeMode != nil && *r.Persistent.Spec.VolumeMode == corev1.PersistentVolumeBlock
	switch {
	case block && info.Mode()&fs.ModeDevice == 0:
		return volume.Mounted{}, fmt.Errorf("path %q is not a block device", path)
	case block:
		return volume.Mounted{HostPath: path, Block: true}, nil
	case !info.IsDir():
		return volume.Mounted{}, fmt.Errorf("path %q is not a directory", path)
	}
	if !r.ReadOnly {
		if err := r.SetOwner(path, false); err != nil {
			return volume.Mounted{}, err
		}
	}
	return volume.Mounted{HostPath: path}, nil
}

// TearDown has nothing to do.
func (plugin) TearDown(context.Context, string) error { return nil }
