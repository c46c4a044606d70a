package downwardapi

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/volume"
)

type plugin struct{}

var _ volume.Plugin = plugin{}

// New returns the plug-in.
func New() volume.Plugin { return plugin{} }

func (plugin) Name() string                   { return "kubernetes.io/downward-api" }
func (plugin) Supports(v *corev1.Volume) bool { return v.DownwardAPI != nil }
func (plugin) Live() bool                     { return true }

func (plugin) SetUp(_ context.Context, r volume.Request) (volume.Mounted, error) {
	v := r.Volume.DownwardAPI
	files, err := r.DownwardFiles(v.Items, v.DefaultMode)
	if err != nil {
		return volume.Mounted{}, err
	}
	if err := r.DiskDir(0o755); err != nil {
		return volume.Mounted{}, err
	}
	owner := func(dir string) error { return r.SetOwner(dir, true) }
	if err := volume.Project(r.Dir, files, owner); err != nil {
		return volume.Mounted{}, err
	}
	return volume.Mounted{HostPath: r.Dir, ReadOnly: true}, nil
}

func (plugin) TearDown(_ context.Context, dir string) error { return volume.Remove(dir) }
