package projected

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/periplus/periplus/volume"
)

type plugin struct{}

var _ volume.Plugin = plugin{}

// New returns the plug-in.
func New() volume.Plugin { return plugin{} }

func (plugin) Name() string                   { return "kubernetes.io/projected" }
func (plugin) Supports(v *corev1.Volume) bool { return v.Projected != nil }
func (plugin) Live() bool                     { return true }

func (plugin) SetUp(ctx context.Context, r volume.Request) (volume.Mounted, error) {
	m := volume.Mounted{HostPath: r.Dir, ReadOnly: true}
	files := volume.Payload{}
	var errs []error
	for i := range r.Volume.Projected.Sources {
		// A later source wins over an earlier one with the same path.
		if err := collect(ctx, &r, &r.Volume.Projected.Sources[i], files, &m); err != nil {
			errs = append(errs, err)
		}
	}
	if err := utilerrors.NewAggregate(errs); err != nil {
		return volume.Mounted{}, err
	}
	if err := r.MemoryDir(0o755, nil); err != nil {
		return volume.Mounted{}, err
	}
	owner := func(dir string) error { return r.SetOwner(dir, true) }
	if err := volume.Project(r.Dir, files, owner); err != nil {
		return volume.Mounted{}, err
	}
	return m, nil
}

func (plugin) TearDown(_ context.Context, dir string) error { return volume.Remove(dir) }

func collect(ctx context.Context, r *volume.Request, s *corev1.VolumeProjection, files volume.Payload, m *volume.Mounted) error {
	mode := r.Volume.Projected.DefaultMode
	var more volume.Payload
	var err error
	switch {
	case s.Secret != nil:
		more, err = r.SecretFiles(s.Secret.Name, s.Secret.Items, mode, s.Secret.Optional)
	case s.ConfigMap != nil:
		more, err = r.ConfigMapFiles(s.ConfigMap.Name, s.ConfigMap.Items, mode, s.ConfigMap.Optional)
	case s.DownwardAPI != nil:
		more, err = r.DownwardFiles(s.DownwardAPI.Items, mode)
	case s.ServiceAccountToken != nil:
		f, next, err := r.TokenFile(ctx, s.ServiceAccountToken, mode)
		if err != nil {
			return err
		}
		files[filepath.Clean(s.ServiceAccountToken.Path)] = f
		if m.RefreshAt.IsZero() || next.Before(m.RefreshAt) {
			m.RefreshAt = next
		}
		return nil
	case s.ClusterTrustBundle != nil:
		err = errors.New("projected source clusterTrustBundle is not supported by this node")
	case s.PodCertificate != nil:
		err = errors.New("projected source podCertificate is not supported by this node")
	default:
		err = fmt.Errorf("projected volume %q has a source of a kind that this node does not know", r.Volume.Name)
	}
	if err != nil {
		return err
	}
	maps.Copy(files, more)
	return nil
}
