package containers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/containers/cdi"
	"github.com/periplus/periplus/containers/oci"
	"github.com/periplus/periplus/containers/snapshot"
	wasmbin "github.com/periplus/periplus/containers/wasm/bin"
	"github.com/periplus/periplus/linux/namespace"
	"github.com/periplus/periplus/linux/process"
)

// CreateContainer prepares everything but the process: root file system,
// configuration, record. The OCI runtime is called by StartContainer, once.
func (r *Runtime) CreateContainer(ctx context.Context, req *runtimeapi.CreateContainerRequest) (*runtimeapi.CreateContainerResponse, error) {
	if err := r.wait(ctx); err != nil {
		return nil, err
	}
	s, err := r.sandbox(req.GetPodSandboxId())
	if err != nil {
		return nil, err
	}
	config := req.GetConfig()
	if config.GetMetadata() == nil {
		return nil, status.Error(codes.InvalidArgument, "container config must include metadata")
	}
	if s.phase() != phaseReady {
		return nil, status.Errorf(codes.FailedPrecondition, "sandbox %q is not ready", s.rec.ID)
	}
	img, err := r.cfg.Images.Image(ctx, config.GetImage().GetImage())
	if err != nil {
		if errors.Is(err, ErrNoImage) {
			return nil, status.Errorf(codes.NotFound, "failed to resolve image %q: %v", config.GetImage().GetImage(), err)
		}
		return nil, fmt.Errorf("failed to resolve image %q: %w", config.GetImage().GetImage(), err)
	}
	id, name := newID(), containerName(s.rec.ID, config)
	if err := r.reserve(name, id); err != nil {
		return nil, err
	}
	c, err := r.makeContainer(ctx, s, id, config, img)
	if err != nil {
		r.release(name)
		r.removeFiles(context.WithoutCancel(ctx), id, nil)
		return nil, fmt.Errorf("failed to create container %q: %w", config.GetMetadata().GetName(), err)
	}
	r.mu.Lock()
	r.containers[id] = c
	r.mu.Unlock()
	r.emit(s.rec.ID, id, runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT)
	return &runtimeapi.CreateContainerResponse{ContainerId: id}, nil
}

func (r *Runtime) makeContainer(ctx context.Context, s *podSandbox, id string, config *runtimeapi.ContainerConfig, img Image) (*container, error) {
	dir := r.containerDir(id)
	rootfs := filepath.Join(dir, "rootfs")
	if err := os.MkdirAll(rootfs, 0o711); err != nil {
		return nil, err
	}
	if err := r.cfg.Snapshots.Prepare(ctx, id, img.ChainID, snapshot.PrepareOptions{Users: usersOf(s)}); err != nil {
		return nil, err
	}
	if err := r.cfg.Snapshots.Mount(ctx, id, rootfs); err != nil {
		return nil, err
	}
	config, volumes, err := r.mountImages(ctx, s, id, config)
	if err != nil {
		return nil, err
	}
	bound, err := r.mapMounts(s, id, config)
	if err != nil {
		return nil, err
	}
	stop, err := stopSignal(config, img)
	if err != nil {
		return nil, err
	}
	ns, err := r.namespaces(s, config)
	if err != nil {
		return nil, err
	}
	cgroupPath := r.cgroupPath(s, id)
	sb := s.rec.Sandbox
	res, err := oci.Spec(oci.Input{
		ID: id, Config: bound, Sandbox: s.config, Image: img.Config, Rootfs: rootfs, Host: r.host,
		CgroupsPath: cgroupPath, Namespaces: ns,
		Files: oci.Files{Hostname: sb.Hostname, Hosts: sb.Hosts, ResolvConf: sb.ResolvConf, Shm: sb.Shm},
	})
	if err != nil {
		return nil, err
	}
	if res.OOMClamped {
		r.warnOOM.Do(func() {
			r.log.Warn("cannot lower oom_score_adj of containers without CAP_SYS_RESOURCE, they get our own", "floor", r.host.OOMScoreFloor)
		})
	}
	if err := r.injectDevices(res.Spec, config); err != nil {
		return nil, err
	}
	if s.rec.Handler == wasmbin.Handler {
		if err := r.runModule(res.Spec); err != nil {
			return nil, err
		}
	}
	if err := writeRecord(filepath.Join(dir, "config.json"), res.Spec); err != nil {
		return nil, err
	}
	raw, err := proto.Marshal(config)
	if err != nil {
		return nil, err
	}
	rec := containerRecord{
		ID: id, SandboxID: s.rec.ID, CreatedAt: time.Now(), Config: raw,
		Image: imageName(config, img), ImageID: img.ID, ImageRef: img.Ref,
		CgroupPath: cgroupPath, StopSignal: stop, Process: res.Spec.Process, Volumes: volumes,
	}
	if rec.ImageRef == "" {
		rec.ImageRef = img.ID
	}
	if config.GetLogPath() != "" && s.config.GetLogDirectory() != "" {
		rec.LogPath = filepath.Join(s.config.GetLogDirectory(), config.GetLogPath())
	}
	c := newContainer(rec, config)
	return c, c.save(dir)
}

// injectDevices adds the devices that are asked for by their vendors' names.
func (r *Runtime) injectDevices(spec *specs.Spec, config *runtimeapi.ContainerConfig) error {
	var names []string
	for _, d := range config.GetCDIDevices() {
		names = append(names, d.GetName())
	}
	if len(names) == 0 {
		return nil
	}
	edits, err := cdi.Find(r.cfg.CDIDirs, names)
	if err == nil {
		err = cdi.Apply(spec, edits)
	}
	if err != nil {
		return fmt.Errorf("CDI device injection failed: %w", err)
	}
	return nil
}

func imageName(config *runtimeapi.ContainerConfig, img Image) string {
	switch {
	case config.GetImage().GetUserSpecifiedImage() != "":
		return config.GetImage().GetUserSpecifiedImage()
	case img.Name != "":
		return img.Name
	}
	return config.GetImage().GetImage()
}

func (r *Runtime) cgroupPath(s *podSandbox, id string) string {
	parent := s.config.GetLinux().GetCgroupParent()
	if parent == "" {
		parent = r.cfg.CgroupParent
	}
	return path.Join("/", parent, id)
}

// namespaces says where a container lives.
func (r *Runtime) namespaces(s *podSandbox, config *runtimeapi.ContainerConfig) (oci.Namespaces, error) {
	sb := s.rec.Sandbox
	ns := oci.Namespaces{
		Net: sb.Pins.Net, IPC: sb.Pins.IPC, UTS: sb.Pins.UTS,
		HostNet: sb.HostNetwork, HostUTS: sb.HostNetwork, HostIPC: sb.HostIPC, User: userNamespace(s),
	}
	opts := config.GetLinux().GetSecurityContext().GetNamespaceOptions()
	switch opts.GetPid() {
	case runtimeapi.NamespaceMode_NODE:
		ns.HostPID = true
	case runtimeapi.NamespaceMode_POD:
		if !s.rec.Pause {
			break
		}
		_, pid := r.pauseOf(s).snapshotState()
		if pid == 0 {
			return ns, errors.New("the process that holds the pod's PID namespace has ended")
		}
		ns.PID = fmt.Sprintf("/proc/%d/ns/pid", pid)
	case runtimeapi.NamespaceMode_TARGET:
		target, err := r.container(opts.GetTargetId())
		if err != nil {
			return ns, fmt.Errorf("target container: %w", err)
		}
		if target.rec.SandboxID != s.rec.ID {
			return ns, status.Errorf(codes.InvalidArgument, "target container %q is in another sandbox", opts.GetTargetId())
		}
		_, pid := target.snapshotState()
		if pid == 0 {
			return ns, status.Errorf(codes.FailedPrecondition, "target container %q is not running", opts.GetTargetId())
		}
		ns.PID = fmt.Sprintf("/proc/%d/ns/pid", pid)
	}
	return ns, nil
}

// stopSignal is the pod's, else the image's, else SIGTERM.
func stopSignal(config *runtimeapi.ContainerConfig, img Image) (syscall.Signal, error) {
	name := img.Config.StopSignal
	if s := config.GetStopSignal(); s != runtimeapi.Signal_SIGNAL_RUNTIME_DEFAULT {
		// The enumeration writes SIGRTMIN+3 as SIGRTMINPLUS3.
		name = strings.NewReplacer("PLUS", "+", "MINUS", "-", "SIGNAL_", "").Replace(s.String())
	}
	if name == "" {
		return syscall.SIGTERM, nil
	}
	sig, err := process.ParseSignal(name)
	if err != nil {
		return 0, fmt.Errorf("stop signal: %w", err)
	}
	return sig, nil
}

// mountImages mounts the images that are volumes of the container, read-only,
// and returns a configuration that binds them like directories.
func (r *Runtime) mountImages(ctx context.Context, s *podSandbox, id string, config *runtimeapi.ContainerConfig) (*runtimeapi.ContainerConfig, []string, error) {
	if !slices.ContainsFunc(config.GetMounts(), func(m *runtimeapi.Mount) bool { return m.GetImage().GetImage() != "" }) {
		return config, nil, nil
	}
	config = proto.Clone(config).(*runtimeapi.ContainerConfig)
	var keys []string
	for i, m := range config.GetMounts() {
		ref := m.GetImage().GetImage()
		if ref == "" {
			continue
		}
		if !m.GetReadonly() {
			return nil, nil, status.Errorf(codes.InvalidArgument, "image volume %q must be mounted read-only", ref)
		}
		img, err := r.cfg.Images.Image(ctx, ref)
		if err != nil {
			return nil, nil, fmt.Errorf("image volume %q: %w", ref, err)
		}
		key := fmt.Sprintf("%s-%d", id, i)
		target := filepath.Join(r.containerDir(id), "image-"+fmt.Sprint(i))
		if err := os.MkdirAll(target, 0o711); err != nil {
			return nil, nil, err
		}
		if err := r.cfg.Snapshots.Prepare(ctx, key, img.ChainID, snapshot.PrepareOptions{ReadOnly: true, Users: usersOf(s)}); err != nil {
			return nil, nil, err
		}
		keys = append(keys, key)
		if err := r.cfg.Snapshots.Mount(ctx, key, target); err != nil {
			return nil, nil, err
		}
		m.HostPath, m.Image.ImageRef = target, img.ID
		if sub := m.GetImageSubPath(); sub != "" {
			if !filepath.IsLocal(sub) {
				return nil, nil, status.Errorf(codes.InvalidArgument, "image volume sub path %q leads out of the image", sub)
			}
			if m.HostPath, err = namespace.ResolveInRoot(target, sub); err != nil {
				return nil, nil, status.Errorf(codes.InvalidArgument, "image volume %q has no %q", ref, sub)
			}
		}
	}
	return config, keys, nil
}

// removeFiles removes what makeContainer made, as far as it got.
func (r *Runtime) removeFiles(ctx context.Context, id string, volumes []string) {
	dir := r.containerDir(id)
	mapped, _ := filepath.Glob(filepath.Join(dir, "idmap-*"))
	mounts, _ := filepath.Glob(filepath.Join(dir, "image-*"))
	unknown := len(volumes) == 0
	for i, target := range slices.Concat(mounts, mapped, []string{filepath.Join(dir, "rootfs")}) {
		if err := r.cfg.Snapshots.Unmount(ctx, target); err != nil {
			r.log.Warn("cannot unmount a container's files", base.KeyPath, target, base.KeyError, err)
			return
		}
		if i < len(mounts) && unknown {
			volumes = append(volumes, id+"-"+strings.TrimPrefix(filepath.Base(target), "image-"))
		}
	}
	for _, key := range append([]string{id}, volumes...) {
		if err := r.cfg.Snapshots.Remove(ctx, key); err != nil {
			r.log.Warn("cannot remove a container's files", base.KeyID, key, base.KeyError, err)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		r.log.Warn("cannot remove a container's files", base.KeyPath, dir, base.KeyError, err)
	}
}

// startPause starts the first process of a PID namespace that a pod's
// containers share: the monitor program, with nothing to see or do.
func (r *Runtime) startPause(ctx context.Context, s *podSandbox) error {
	id := s.rec.ID
	dir := r.containerDir(id)
	if err := os.MkdirAll(filepath.Join(dir, "rootfs"), 0o711); err != nil {
		return err
	}
	if u := s.rec.Sandbox.User; u != nil { // who makes the mount points
		if err := os.Chown(filepath.Join(dir, "rootfs"), int(u.UID), int(u.GID)); err != nil {
			return err
		}
	}
	config := &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "POD"},
		Command:  []string{"/pause", "pause"},
		Mounts:   []*runtimeapi.Mount{{ContainerPath: "/pause", HostPath: r.monitorPath, Readonly: true}},
		Linux: &runtimeapi.LinuxContainerConfig{SecurityContext: &runtimeapi.LinuxContainerSecurityContext{
			RunAsUser: &runtimeapi.Int64Value{Value: 65535}, RunAsGroup: &runtimeapi.Int64Value{Value: 65535},
			ReadonlyRootfs: true, NoNewPrivs: true,
			Capabilities: &runtimeapi.Capability{DropCapabilities: []string{"ALL"}},
		}},
	}
	sb := s.rec.Sandbox
	res, err := oci.Spec(oci.Input{
		ID: id, Config: config, Sandbox: s.config, Rootfs: filepath.Join(dir, "rootfs"), Host: r.host,
		CgroupsPath: r.cgroupPath(s, id),
		Namespaces: oci.Namespaces{Net: sb.Pins.Net, IPC: sb.Pins.IPC, UTS: sb.Pins.UTS,
			HostNet: sb.HostNetwork, HostUTS: sb.HostNetwork, HostIPC: sb.HostIPC, User: userNamespace(s)},
	})
	if err != nil {
		return err
	}
	// Nothing of the machine but these: the namespace's members may look at them through /proc/1.
	res.Spec.Mounts = slices.DeleteFunc(res.Spec.Mounts, func(m specs.Mount) bool {
		return !slices.Contains([]string{"/proc", "/dev", "/pause"}, m.Destination)
	})
	if err := writeRecord(filepath.Join(dir, "config.json"), res.Spec); err != nil {
		return err
	}
	raw, err := proto.Marshal(config)
	if err != nil {
		return err
	}
	c := newContainer(containerRecord{
		ID: id, SandboxID: id, Pause: true, CreatedAt: time.Now(), Config: raw,
		CgroupPath: r.cgroupPath(s, id), StopSignal: syscall.SIGTERM, Process: res.Spec.Process,
	}, config)
	if err := c.save(dir); err != nil {
		return err
	}
	r.mu.Lock()
	r.containers[id] = c
	r.mu.Unlock()
	return r.startContainer(ctx, c)
}
