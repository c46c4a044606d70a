package secret

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/volume"
)

type plugin struct{}

var _ volume.Plugin = plugin{}

// New returns the plug-in.
func New() volume.Plugin { return plugin{} }

func (plugin) Name() string                   { return "kubernetes.io/secret" }
func (plugin) Supports(v *corev1.Volume) bool { return v.Secret != nil }
func (plugin) Live() bool                     { return true }

func (plugin) SetUp(_ context.Context, r volume.Request) (volume.Mounted, error) {
	v := r.Volume.Secret
	files, err := r.SecretFiles(v.SecretName, v.Items, v.DefaultMode, v.Optional)
	if err != nil {
		return volume.Mounted{}, err
	}
	if err := r.MemoryDir(0o755, nil); err != nil {
		return volume.Mounted{}, err
	}
	owner := func(dir string) error { return r.SetOwner(dir, true) }
	if err := volume.Project(r.Dir, files, owner); err != nil {
		return volume.Mounted{}, err
	}
	return volume.Mounted{HostPath: r.Dir, ReadOnly: true}, nil
}

func (plugin) TearDown(_ context.Context, dir string) error { return volume.Remove(dir) }
