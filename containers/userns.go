package containers

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/containers/oci"
	"github.com/periplus/periplus/containers/snapshot"
	"github.com/periplus/periplus/linux/mount"
	"github.com/periplus/periplus/linux/process"
)

// letPass lets other users pass through the directories that lead to the containers'
// files: a user namespace's root is one. Of those that are not ours it only complains.
func (r *Runtime) letPass() error {
	const pass = 0o001
	ours := []string{r.cfg.StateDir, filepath.Dir(r.cfg.StateDir)}
	for dir := r.cfg.StateDir; ; dir = filepath.Dir(dir) {
		fi, err := os.Stat(dir)
		if err != nil {
			return err
		}
		switch {
		case fi.Mode()&pass != 0:
		case slices.Contains(ours, dir):
			if err := os.Chmod(dir, fi.Mode()|pass); err != nil {
				return err
			}
		default:
			return fmt.Errorf("user namespaces need the directory %s to let other users pass: chmod o+x %s", dir, dir)
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// usersOf says whom the files of a sandbox's containers belong to, nil without a user
// namespace.
func usersOf(s *podSandbox) *snapshot.Users {
	u := s.rec.Sandbox.User
	if u == nil {
		return nil
	}
	return &snapshot.Users{Namespace: s.rec.Sandbox.Pins.User, UID: u.UID, GID: u.GID}
}

func userNamespace(s *podSandbox) *oci.UserNamespace {
	u := s.rec.Sandbox.User
	if u == nil {
		return nil
	}
	return &oci.UserNamespace{
		Path: s.rec.Sandbox.Pins.User,
		UIDs: []specs.LinuxIDMapping{{HostID: u.UID, Size: u.UIDs}},
		GIDs: []specs.LinuxIDMapping{{HostID: u.GID, Size: u.GIDs}},
	}
}

// givePipes makes the pipes of a container in a user namespace before the monitor
// does, and gives them to its root: programs open /dev/stdout by name.
func (r *Runtime) givePipes(c *container) error {
	s, err := r.sandbox(c.rec.SandboxID)
	if err != nil || s.rec.Sandbox.User == nil || c.config.GetTty() {
		return err
	}
	u := s.rec.Sandbox.User
	for _, name := range []string{"stdin", "stdout", "stderr"} {
		path := filepath.Join(r.containerDir(c.rec.ID), name)
		if err := process.Fifo(path); err != nil {
			return err
		}
		if err := os.Chown(path, int(u.UID), int(u.GID)); err != nil {
			return err
		}
	}
	return nil
}

// mapMounts mounts the volumes whose IDs are to be mapped into the container's
// directory, and returns a configuration that binds them from there. Not every OCI
// runtime can do that for a user namespace that exists already.
func (r *Runtime) mapMounts(s *podSandbox, id string, config *runtimeapi.ContainerConfig) (*runtimeapi.ContainerConfig, error) {
	mapped := func(m *runtimeapi.Mount) bool { return len(m.GetUidMappings())+len(m.GetGidMappings()) > 0 }
	if !slices.ContainsFunc(config.GetMounts(), mapped) {
		return config, nil
	}
	if s.rec.Sandbox.User == nil {
		return nil, status.Error(codes.InvalidArgument, "mounts with ID mappings need a pod with a user namespace")
	}
	config = proto.Clone(config).(*runtimeapi.ContainerConfig)
	for i, m := range config.GetMounts() {
		if !mapped(m) {
			continue
		}
		source, err := filepath.EvalSymlinks(m.GetHostPath())
		if err != nil {
			return nil, fmt.Errorf("mount %s: %w", m.GetContainerPath(), err)
		}
		target := filepath.Join(r.containerDir(id), fmt.Sprintf("idmap-%d", i))
		if err := likeSource(source, target); err != nil {
			return nil, err
		}
		if err := mount.Mapped(source, target, s.rec.Sandbox.Pins.User); err != nil {
			return nil, fmt.Errorf("mount %s: %w", m.GetContainerPath(), err)
		}
		m.HostPath, m.UidMappings, m.GidMappings = target, nil, nil
	}
	return config, nil
}

// likeSource makes a file or a directory to mount over.
func likeSource(source, target string) error {
	fi, err := os.Stat(source)
	if err != nil {
		return err
	}
	if fi.IsDir() {
		return os.MkdirAll(target, 0o711)
	}
	f, err := os.OpenFile(target, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}
