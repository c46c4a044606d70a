package containers

import (
	"os"
	"path/filepath"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/periplus/periplus/containers/oci"
	"github.com/periplus/periplus/containers/snapshot"
	"github.com/periplus/periplus/linux/process"
)

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
