package projected

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

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
		if err := collect(ctx, &r, i, files, &m); err != nil {
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

// collect adds the files of the source with this index to files.
func collect(ctx context.Context, r *volume.Request, index int, files volume.Payload, m *volume.Mounted) error {
	s := &r.Volume.Projected.Sources[index]
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
		refreshAt(m, next)
		return nil
	case s.ClusterTrustBundle != nil:
		var anchors []byte
		anchors, err = r.Sources.TrustAnchors(s.ClusterTrustBundle)
		more = volume.Payload{filepath.Clean(s.ClusterTrustBundle.Path): r.PodFile(anchors, mode)}
	case s.PodCertificate != nil:
		var c volume.Credential
		c, err = r.Sources.Credential(ctx, r.Pod, volume.Projection{Volume: r.Volume.Name, Index: index}, s.PodCertificate)
		more = credentialFiles(r, s.PodCertificate, c)
		refreshAt(m, c.LookAt)
	default:
		err = fmt.Errorf("projected volume %q has a source of a kind that this node does not know", r.Volume.Name)
	}
	if err != nil {
		return err
	}
	maps.Copy(files, more)
	return nil
}

// refreshAt brings the next refresh of a volume forward to at; a zero time says nothing.
func refreshAt(m *volume.Mounted, at time.Time) {
	if !at.IsZero() && (m.RefreshAt.IsZero() || at.Before(m.RefreshAt)) {
		m.RefreshAt = at
	}
}

func credentialFiles(r *volume.Request, p *corev1.PodCertificateProjection, c volume.Credential) volume.Payload {
	files := volume.Payload{}
	add := func(path string, data []byte) {
		if path != "" {
			files[filepath.Clean(path)] = r.PodFile(data, r.Volume.Projected.DefaultMode)
		}
	}
	add(p.CredentialBundlePath, slices.Concat(c.Key, c.Chain))
	add(p.KeyPath, c.Key)
	add(p.CertificateChainPath, c.Chain)
	return files
}
