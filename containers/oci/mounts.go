package oci

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// mounts returns the container's mounts, a parent always before what lies in
// it. What the pod mounts at the place of a default replaces it.
func (in Input) mounts() ([]specs.Mount, error) {
	var fromPod []specs.Mount
	taken := map[string]bool{}
	for _, m := range in.Config.GetMounts() {
		mount, err := bind(m)
		if err != nil {
			return nil, err
		}
		taken[mount.Destination] = true
		fromPod = append(fromPod, mount)
	}
	list := slices.DeleteFunc(in.defaults(), func(m specs.Mount) bool { return taken[m.Destination] })
	list = append(list, fromPod...)
	slices.SortStableFunc(list, func(a, b specs.Mount) int { return depth(a.Destination) - depth(b.Destination) })
	return list, nil
}

func depth(p string) int {
	if p = path.Clean(p); p == "/" {
		return 0
	}
	return strings.Count(p, "/")
}

func (in Input) defaults() []specs.Mount {
	sc := in.Config.GetLinux().GetSecurityContext()
	sysMode := "ro"
	if sc.GetPrivileged() {
		sysMode = "rw"
	}
	list := []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "noexec", "nodev"}},
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "strictatime", "mode=755", "size=65536k"}},
		{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: []string{"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"}},
		{Destination: "/dev/mqueue", Type: "mqueue", Source: "mqueue", Options: []string{"nosuid", "noexec", "nodev"}},
		{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: []string{"nosuid", "noexec", "nodev", sysMode}},
		{Destination: "/sys/fs/cgroup", Type: "cgroup", Source: "cgroup", Options: []string{"nosuid", "noexec", "nodev", "relatime", sysMode}},
	}
	fileMode := "rw"
	if sc.GetReadonlyRootfs() {
		fileMode = "ro"
	}
	for _, f := range []struct{ source, at string }{
		{in.Files.Hostname, "/etc/hostname"}, {in.Files.Hosts, "/etc/hosts"}, {in.Files.ResolvConf, "/etc/resolv.conf"},
	} {
		if f.source != "" {
			list = append(list, specs.Mount{Destination: f.at, Type: "bind", Source: f.source, Options: []string{"rbind", "rprivate", fileMode}})
		}
	}
	if in.Files.Shm != "" {
		list = append(list, specs.Mount{Destination: "/dev/shm", Type: "bind", Source: in.Files.Shm, Options: []string{"rbind", "rprivate", "rw"}})
	}
	return list
}

// bind translates a mount of the pod. A source that does not exist is made, a
// directory, as Docker does and containerd after it.
func bind(m *runtimeapi.Mount) (specs.Mount, error) {
	out := specs.Mount{Destination: path.Clean(m.GetContainerPath()), Type: "bind"}
	out.UIDMappings, out.GIDMappings = IDMappings(m.GetUidMappings()), IDMappings(m.GetGidMappings())
	if !path.IsAbs(m.GetContainerPath()) {
		out.Destination = path.Join("/", m.GetContainerPath())
	}
	source, err := filepath.EvalSymlinks(m.GetHostPath())
	if errors.Is(err, os.ErrNotExist) {
		if err = os.MkdirAll(m.GetHostPath(), 0o755); err == nil {
			source, err = filepath.EvalSymlinks(m.GetHostPath())
		}
	}
	if err != nil {
		return out, fmt.Errorf("failed to mkdir %q: %w", m.GetHostPath(), err)
	}
	out.Source = source
	out.Options = []string{"rbind"}
	switch m.GetPropagation() {
	case runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL:
		out.Options = append(out.Options, "rshared")
	case runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER:
		out.Options = append(out.Options, "rslave")
	default:
		out.Options = append(out.Options, "rprivate")
	}
	switch {
	case m.GetRecursiveReadOnly() && !m.GetReadonly():
		return out, fmt.Errorf("mount %s: recursive_read_only needs readonly", m.GetContainerPath())
	case m.GetRecursiveReadOnly() && m.GetPropagation() != runtimeapi.MountPropagation_PROPAGATION_PRIVATE:
		return out, fmt.Errorf("mount %s: recursive_read_only needs private propagation", m.GetContainerPath())
	case m.GetRecursiveReadOnly():
		out.Options = append(out.Options, "rro")
	case m.GetReadonly():
		out.Options = append(out.Options, "ro")
	default:
		out.Options = append(out.Options, "rw")
	}
	out.Options = append(out.Options, m.GetMountOptions()...)
	return out, nil
}

// IDMappings are those of the CRI in the words of the OCI.
func IDMappings(list []*runtimeapi.IDMapping) []specs.LinuxIDMapping {
	var out []specs.LinuxIDMapping
	for _, m := range list {
		out = append(out, specs.LinuxIDMapping{ContainerID: m.GetContainerId(), HostID: m.GetHostId(), Size: m.GetLength()})
	}
	return out
}

// rootPropagation is the weakest propagation of the root file system that lets
// the mounts in it propagate as they want.
func rootPropagation(mounts []specs.Mount) string {
	p := ""
	for _, m := range mounts {
		switch {
		case slices.Contains(m.Options, "rshared"):
			return "rshared"
		case slices.Contains(m.Options, "rslave"):
			p = "rslave"
		}
	}
	return p
}
