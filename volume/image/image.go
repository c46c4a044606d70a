package image

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/volume"
)

type plugin struct{}

var _ volume.Plugin = plugin{}

// New returns the plug-in.
func New() volume.Plugin { return plugin{} }

func (plugin) Name() string                   { return "kubernetes.io/image" }
func (plugin) Supports(v *corev1.Volume) bool { return v.Image != nil }
func (plugin) Live() bool                     { return false }

// SetUp answers that the volume is there: the runtime has its content.
func (plugin) SetUp(context.Context, volume.Request) (volume.Mounted, error) {
	return volume.Mounted{ReadOnly: true}, nil
}

// TearDown has nothing to do.
func (plugin) TearDown(context.Context, string) error { return nil }
