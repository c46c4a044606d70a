package csi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/periplus/periplus/csi"
	"github.com/periplus/periplus/linux/mount"
	"github.com/periplus/periplus/volume"
)

// Config of a Plugin.
type Config struct {
	Root    string // the kubelet's directory
	Node    string // this node's name
	Drivers *csi.Drivers
	// Client reads CSIDrivers, secrets and attachments. Nil: volumes can be
	// unmounted only.
	Client kubernetes.Interface
	// Changed, if not nil, is called when InUse may have changed. It must not block.
	Changed func()
	// Step, if not nil, is told of each step of mounting for a pod, which began at start.
	Step func(r volume.Request, driver, step string, start time.Time)
}

// A Plugin mounts volumes of CSI drivers.
type Plugin struct {
	config Config

	mu   sync.Mutex // guards busy
	busy map[string]*hold
}

type hold struct {
	sync.Mutex
	users int
}

var _ volume.PersistentPlugin = (*Plugin)(nil)

// New returns a plug-in.
func New(c Config) *Plugin { return &Plugin{config: c, busy: map[string]*hold{}} }

// Name implements volume.Plugin.
func (p *Plugin) Name() string { return "kubernetes.io/csi" }

// Supports implements volume.Plugin: inline volumes.
func (p *Plugin) Supports(v *corev1.Volume) bool { return v.CSI != nil }

// SupportsPersistent implements volume.PersistentPlugin.
func (p *Plugin) SupportsPersistent(spec *corev1.PersistentVolumeSpec) bool { return spec.CSI != nil }

// Live implements volume.Plugin.
func (p *Plugin) Live() bool { return false }

// lock serialises what is done with one volume: staging is once, however many
// pods come and go.
func (p *Plugin) lock(driver, handle string) (unlock func()) {
	key := driver + "^" + handle
	p.mu.Lock()
	h := p.busy[key]
	if h == nil {
		h = &hold{}
		p.busy[key] = h
	}
	h.users++
	p.mu.Unlock()
	h.Lock()
	return func() {
		h.Unlock()
		p.mu.Lock()
		defer p.mu.Unlock()
		if h.users--; h.users == 0 {
			delete(p.busy, key)
		}
	}
}

// SetUp implements volume.Plugin.
func (p *Plugin) SetUp(ctx context.Context, r volume.Request) (volume.Mounted, error) {
	s, err := p.source(r)
	if err != nil {
		return volume.Mounted{}, err
	}
	defer p.lock(s.data.Driver, s.data.Handle)()
	target := s.data.target(r.Dir)
	done := volume.Mounted{HostPath: target, Block: s.data.Block, ReadOnly: s.readOnly}
	// What is mounted stays mounted, also over a restart of this process.
	if have, err := readData(r.Dir); err != nil {
		return volume.Mounted{}, err
	} else if have != nil && have.Handle == s.data.Handle && have.Ready {
		if mounted, err := mount.IsPoint(target); err != nil || mounted {
			return done, err
		}
	}
	if err := p.mount(ctx, r, s, target); err != nil {
		return volume.Mounted{}, err
	}
	s.data.Ready = true
	return done, writeData(r.Dir, &s.data)
}

// mount goes through all steps for a volume that this pod does not have yet.
func (p *Plugin) mount(ctx context.Context, r volume.Request, s *source, target string) error {
	phase := func(name string, err error) error {
		return &volume.PhaseError{Phase: name, Volume: s.data.Volume, Err: err}
	}
	d, err := p.config.Drivers.Get(s.data.Driver)
	if err != nil {
		return phase("MountVolume.MountDevice", fmt.Errorf("kubernetes.io/csi: attacher.MountDevice failed to create newCsiDriverClient: %w", err))
	}
	if s.can, err = d.Capabilities(ctx); err != nil {
		return phase("MountVolume.MountDevice", errors.New(csi.Message(err)))
	}
	if s.object, err = p.driverObject(ctx, s.data.Driver); err != nil {
		return phase("MountVolume.MountDevice", err)
	}
	start := time.Now()
	publish, err := p.attached(ctx, s)
	if err != nil {
		return phase("MountVolume.WaitForAttach", err)
	}
	if s.data.Attachment != "" {
		defer p.changed()
	}
	if s.data.Attachment != "" {
		p.step(r, s, "attachment seen", start)
	}
	staging := ""
	fresh := true
	start = time.Now()
	if s.can.Stage && s.data.Lifecycle == persistent {
		if staging, fresh, err = p.stage(ctx, r, s, d, publish); err != nil {
			return phase("MountVolume.MountDevice", err)
		}
		p.step(r, s, "volume staged", start)
	}
	start = time.Now()
	if err := p.publish(ctx, r, s, d, staging, target, publish); err != nil {
		return phase("MountVolume.SetUp", err)
	}
	p.step(r, s, "volume published", start)
	if r.Persistent != nil && r.Claim != nil && csi.PendingOnNode(r.Persistent, r.Claim) && (fresh || s.can.NodeExpand) {
		if err := csi.ExpandOnNode(ctx, p.config.Client, d, r.Persistent, r.Claim, staging, target); err != nil {
			return phase("MountVolume.NodeExpandVolume", errors.New(csi.Message(err)))
		}
	}
	if s.data.Block || s.readOnly || !s.ownedByGroup() {
		return nil
	}
	return r.SetOwner(target, false)
}

func (p *Plugin) step(r volume.Request, s *source, step string, start time.Time) {
	if p.config.Step != nil {
		p.config.Step(r, s.data.Driver, step, start)
	}
}

// driverObject returns the CSIDriver, or one with the defaults.
func (p *Plugin) driverObject(ctx context.Context, name string) (*storagev1.CSIDriver, error) {
	if p.config.Client == nil {
		return nil, errors.New("no connection to the API")
	}
	d, err := p.config.Client.StorageV1().CSIDrivers().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return &storagev1.CSIDriver{}, nil
	}
	return d, err
}

// stage makes the volume available on the node; fresh says that it was not before.
func (p *Plugin) stage(ctx context.Context, r volume.Request, s *source, d *csi.Driver, publish map[string]string) (staging string, fresh bool, err error) {
	dir := p.stagingDir(s.data.Driver, s.data.Handle)
	others, err := p.published(s.data.Driver, s.data.Handle)
	if err != nil {
		return "", false, err
	}
	if err := writeData(dir, &s.data); err != nil {
		return "", false, err
	}
	staging = filepath.Join(dir, globalMount)
	if err := os.MkdirAll(staging, 0o750); err != nil {
		return "", false, err
	}
	secrets, err := p.secrets(ctx, s.stageSecret)
	if err != nil {
		return "", false, err
	}
	call, cancel := context.WithTimeout(ctx, csi.CallTimeout)
	defer cancel()
	_, err = d.NodeStageVolume(call, &csipb.NodeStageVolumeRequest{
		VolumeId: s.data.Handle, PublishContext: publish, StagingTargetPath: staging, Secrets: secrets,
		VolumeContext: s.attributes, VolumeCapability: s.capability(r),
	})
	if err != nil {
		return "", false, errors.New(csi.Message(err))
	}
	return staging, len(others) == 0, nil
}

func (p *Plugin) publish(ctx context.Context, r volume.Request, s *source, d *csi.Driver, staging, target string, publish map[string]string) error {
	if err := writeData(r.Dir, &s.data); err != nil {
		return err
	}
	secrets, err := p.secrets(ctx, s.publishSecret)
	if err != nil {
		return err
	}
	attributes, err := s.withPod(ctx, r)
	if err != nil {
		return err
	}
	call, cancel := context.WithTimeout(ctx, csi.CallTimeout)
	defer cancel()
	_, err = d.NodePublishVolume(call, &csipb.NodePublishVolumeRequest{
		VolumeId: s.data.Handle, PublishContext: publish, StagingTargetPath: staging, TargetPath: target, Readonly: s.readOnly,
		VolumeCapability: s.capability(r), Secrets: secrets, VolumeContext: attributes,
	})
	if err != nil {
		return errors.New(csi.Message(err))
	}
	return nil
}

func (p *Plugin) secrets(ctx context.Context, ref *corev1.SecretReference) (map[string]string, error) {
	if ref == nil || ref.Name == "" {
		return nil, nil
	}
	secret, err := p.config.Client.CoreV1().Secrets(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("failed to get secret %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	out := make(map[string]string, len(secret.Data))
	for k, v := range secret.Data {
		out[k] = string(v)
	}
	return out, nil
}

// TearDown implements volume.Plugin: it unpublishes the volume, and unstages it
// when no other pod has it.
func (p *Plugin) TearDown(ctx context.Context, dir string) error {
	data, err := readData(dir)
	if err != nil {
		return err
	}
	if data == nil {
		return removeEmpty(dir)
	}
	defer p.lock(data.Driver, data.Handle)()
	d, err := p.config.Drivers.Get(data.Driver)
	if err != nil {
		return err
	}
	call, cancel := context.WithTimeout(ctx, csi.CallTimeout)
	defer cancel()
	target := data.target(dir)
	if _, err := d.NodeUnpublishVolume(call, &csipb.NodeUnpublishVolumeRequest{VolumeId: data.Handle, TargetPath: target}); err != nil {
		return errors.New(csi.Message(err))
	}
	if mounted, err := mount.IsPoint(target); err != nil || mounted {
		return errors.Join(err, fmt.Errorf("%s is still mounted", target))
	}
	if data.Lifecycle == persistent {
		if err := p.unstage(call, d, data, dir); err != nil {
			return err
		}
	}
	if err := removeEmpty(dir); err != nil {
		return err
	}
	if data.Attachment != "" {
		p.changed()
	}
	return nil
}

// unstage takes the volume off the node unless another pod than that of dir has it.
func (p *Plugin) unstage(ctx context.Context, d *csi.Driver, data *data, dir string) error {
	users, err := p.published(data.Driver, data.Handle)
	if err != nil {
		return err
	}
	for _, u := range users {
		if u != dir {
			return nil
		}
	}
	can, err := d.Capabilities(ctx)
	if err != nil || !can.Stage {
		return err
	}
	staged := p.stagingDir(data.Driver, data.Handle)
	staging := filepath.Join(staged, globalMount)
	if _, err := d.NodeUnstageVolume(ctx, &csipb.NodeUnstageVolumeRequest{VolumeId: data.Handle, StagingTargetPath: staging}); err != nil {
		return errors.New(csi.Message(err))
	}
	if mounted, err := mount.IsPoint(staging); err != nil || mounted {
		return errors.Join(err, fmt.Errorf("%s is still mounted", staging))
	}
	return removeEmpty(staged)
}

// removeEmpty removes a directory of ours; what a driver left in it stops it, for
// that may be somebody's data.
func removeEmpty(dir string) error {
	for _, name := range []string{mountDir, device, globalMount, dataFile + ".tmp", dataFile, ""} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
