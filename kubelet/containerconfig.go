package kubelet

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/kubelet/env"
	"github.com/periplus/periplus/kubelet/image"
	"github.com/periplus/periplus/kubelet/netcfg"
)

// containerConfig describes a container for the runtime. Its errors are what
// users see as CreateContainerConfigError.
func (e *execution) containerConfig(ctx context.Context, c *corev1.Container, img image.Result, restarts int32) (*runtimeapi.ContainerConfig, error) {
	pod, k := e.pod, e.w.k
	vars, err := e.environment(c)
	if err != nil {
		return nil, err
	}
	byName := make(map[string]string, len(vars))
	for _, v := range vars {
		byName[v.Name] = v.Value
	}
	target, err := e.target(c)
	if err != nil {
		return nil, err
	}
	security, err := containerSecurity(pod, c, img, target)
	if err != nil {
		return nil, err
	}
	mounts, err := e.mountsOf(c, byName)
	if err != nil {
		return nil, err
	}
	devices, err := e.devicesOf(c)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(k.podLogDir(pod), c.Name), 0o755); err != nil {
		return nil, err
	}
	config := &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: c.Name, Attempt: uint32(restarts)},
		Image:    &runtimeapi.ImageSpec{Image: img.Ref, UserSpecifiedImage: c.Image},
		Command:  env.ExpandAll(c.Command, byName), Args: env.ExpandAll(c.Args, byName),
		WorkingDir: c.WorkingDir,
		Labels:     containerLabels(pod, c), Annotations: containerAnnotations(pod, c, restarts),
		LogPath: containerLog(c.Name, restarts),
		Mounts:  mounts,
		Devices: devices,
		Stdin:   c.Stdin, StdinOnce: c.StdinOnce, Tty: c.TTY,
		Linux: &runtimeapi.LinuxContainerConfig{Resources: k.containerResources(pod, c), SecurityContext: security},
	}
	for _, v := range vars {
		config.Envs = append(config.Envs, &runtimeapi.KeyValue{Key: v.Name, Value: []byte(v.Value)})
	}
	if c.Lifecycle != nil && c.Lifecycle.StopSignal != nil {
		config.StopSignal = runtimeapi.Signal(runtimeapi.Signal_value[string(*c.Lifecycle.StopSignal)])
	}
	if err := k.particular.configure(ctx, pod, c, config); err != nil {
		return nil, err
	}
	return config, ctx.Err()
}

// target is the container whose process namespace an ephemeral container shares.
func (e *execution) target(c *corev1.Container) (string, error) {
	for i := range e.pod.Spec.EphemeralContainers {
		ec := &e.pod.Spec.EphemeralContainers[i]
		if ec.Name != c.Name || ec.TargetContainerName == "" {
			continue
		}
		if t := e.rt.newest(ec.TargetContainerName); t != nil && t.running() {
			return t.id, nil
		}
		return "", fmt.Errorf("unable to find target container %v", ec.TargetContainerName)
	}
	return "", nil
}

func (e *execution) environment(c *corev1.Container) ([]env.Var, error) {
	k, pod := e.w.k, e.pod
	var services []*corev1.Service
	if k.cfg.Services != nil {
		var err error
		if services, err = k.cfg.Services.List(labels.Everything()); err != nil {
			return nil, err
		}
	}
	var allocatable corev1.ResourceList
	if n := k.Node(); n != nil {
		allocatable = n.Status.Allocatable
	}
	return env.Make(env.Request{
		Pod: pod, Container: c, Status: e.podStatus(), Services: services, Objects: k.cfg.Objects, Allocatable: allocatable,
		Event: func(reason, message string) { k.cfg.Events.Event(pod, corev1.EventTypeWarning, reason, message) },
	})
}

// podStatus carries the addresses that environments may refer to.
func (e *execution) podStatus() *corev1.PodStatus {
	st := &corev1.PodStatus{}
	for _, ip := range e.w.k.node.IPs() {
		st.HostIPs = append(st.HostIPs, corev1.HostIP{IP: ip})
	}
	if len(st.HostIPs) > 0 {
		st.HostIP = st.HostIPs[0].IP
	}
	for _, ip := range e.ips() {
		st.PodIPs = append(st.PodIPs, corev1.PodIP{IP: ip})
	}
	if len(st.PodIPs) > 0 {
		st.PodIP = st.PodIPs[0].IP
	}
	return st
}

func (e *execution) ips() []string {
	if isHostNetwork(e.pod) {
		return e.w.k.node.IPs()
	}
	return e.box.ips
}

// devicesOf lists a container's block volumes.
func (e *execution) devicesOf(c *corev1.Container) ([]*runtimeapi.Device, error) {
	var out []*runtimeapi.Device
	for _, d := range c.VolumeDevices {
		vol, ok := e.w.state.mounts[d.Name]
		if !ok || !vol.Block {
			return nil, fmt.Errorf("volume %q of container %q is not a block device", d.Name, c.Name)
		}
		permissions := "mrw"
		if vol.ReadOnly {
			permissions = "r"
		}
		out = append(out, &runtimeapi.Device{HostPath: vol.HostPath, ContainerPath: d.DevicePath, Permissions: permissions})
	}
	return out, nil
}

// mountsOf lists a container's mounts: its volumes, /etc/hosts and the file for
// its termination message.
func (e *execution) mountsOf(c *corev1.Container, vars map[string]string) ([]*runtimeapi.Mount, error) {
	var out []*runtimeapi.Mount
	for i := range c.VolumeMounts {
		m, err := e.volumeMount(c, i, vars)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	hosts, err := e.hostsMount(c)
	if err != nil {
		return nil, err
	}
	if hosts != nil {
		out = append(out, hosts)
	}
	if c.TerminationMessagePath != "" {
		m, err := e.messageMount(c)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

func (e *execution) volumeMount(c *corev1.Container, i int, vars map[string]string) (*runtimeapi.Mount, error) {
	vm := &c.VolumeMounts[i]
	vol, ok := e.w.state.mounts[vm.Name]
	if !ok {
		return nil, fmt.Errorf("cannot find volume %q to mount into container %q", vm.Name, c.Name)
	}
	m := &runtimeapi.Mount{
		ContainerPath: vm.MountPath, HostPath: vol.HostPath,
		Readonly: vm.ReadOnly || vol.ReadOnly, Propagation: propagation(vm.MountPropagation),
	}
	if spec := e.images[vm.Name]; spec != nil {
		m.Image, m.Readonly, m.ImageSubPath = spec, true, vm.SubPath
	}
	if !filepath.IsAbs(m.ContainerPath) {
		m.ContainerPath = filepath.Join("/", m.ContainerPath)
	}
	if vm.RecursiveReadOnly != nil && *vm.RecursiveReadOnly == corev1.RecursiveReadOnlyEnabled && m.Readonly {
		m.RecursiveReadOnly = true
	}
	subPath := vm.SubPath
	if vm.SubPathExpr != "" {
		var err error
		if subPath, err = env.ExpandStrict(vm.SubPathExpr, vars); err != nil {
			return nil, err
		}
	}
	if m.Image != nil {
		m.ImageSubPath = subPath
		return m, nil
	}
	if subPath == "" {
		return m, nil
	}
	path, err := e.w.k.cfg.Volumes.SubPath(e.pod.UID, vol, vm.Name, c.Name, i, subPath)
	if err != nil {
		return nil, fmt.Errorf("failed to prepare subPath for volumeMount %q of container %q", vm.Name, c.Name)
	}
	m.HostPath = path
	return m, nil
}

func propagation(p *corev1.MountPropagationMode) runtimeapi.MountPropagation {
	if p != nil {
		switch *p {
		case corev1.MountPropagationHostToContainer:
			return runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER
		case corev1.MountPropagationBidirectional:
			return runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL
		}
	}
	return runtimeapi.MountPropagation_PROPAGATION_PRIVATE
}

// hostsMount writes the pod's /etc/hosts, unless the container brings its own.
func (e *execution) hostsMount(c *corev1.Container) (*runtimeapi.Mount, error) {
	k, pod := e.w.k, e.pod
	own := slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return filepath.Clean(m.MountPath) == "/etc/hosts" })
	if own || len(e.ips()) == 0 {
		return nil, nil
	}
	host, domain := netcfg.Hostname(pod, k.cfg.ClusterDomain)
	content, err := netcfg.Hosts(pod, e.ips(), host, domain, k.cfg.HostsFile)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(k.podDir(pod), "etc-hosts")
	if old, err := os.ReadFile(path); err != nil || string(old) != content {
		// Written in place: running containers have this very file mounted.
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil { //nolint:gosec // every user of the container reads it
			return nil, err
		}
	}
	readonly := c.SecurityContext != nil && c.SecurityContext.ReadOnlyRootFilesystem != nil && *c.SecurityContext.ReadOnlyRootFilesystem
	return &runtimeapi.Mount{ContainerPath: "/etc/hosts", HostPath: path, Readonly: readonly, SelinuxRelabel: true}, nil
}

// messageMount makes a new file for the termination message, one per instance.
func (e *execution) messageMount(c *corev1.Container) (*runtimeapi.Mount, error) {
	dir := filepath.Join(e.w.k.podDir(e.pod), "containers", c.Name)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, err
	}
	var id [4]byte
	_, _ = rand.Read(id[:])
	path := filepath.Join(dir, hex.EncodeToString(id[:]))
	if err := os.WriteFile(path, nil, 0o666); err != nil { //nolint:gosec // any user of the container may write its last words
		return nil, err
	}
	if err := os.Chmod(path, 0o666); err != nil { //nolint:gosec // whatever the umask is
		return nil, err
	}
	return &runtimeapi.Mount{ContainerPath: c.TerminationMessagePath, HostPath: path, SelinuxRelabel: true}, nil
}
