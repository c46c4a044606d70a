package netlab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/periplus/periplus/linux/cgroup"
)

// Leftovers lists everything that "peri down --purge" should have removed:
// processes, mounts, interfaces, addresses, routes, rules, cgroups, files. Empty
// means that the machine is as it was.
func (m *Machine) Leftovers(ctx context.Context) ([]string, error) {
	var found []string
	var errs []error
	for _, look := range []func(context.Context) ([]string, error){
		m.processes, m.newMounts, m.interfaces, m.rules, m.cgroups, m.files,
	} {
		f, err := look(ctx)
		found = append(found, f...)
		errs = append(errs, err)
	}
	return found, errors.Join(errs...)
}

// processes lists the command lines of what runs.
func (m *Machine) processes(context.Context) ([]string, error) {
	pids, err := m.Processes()
	if err != nil {
		return nil, err
	}
	var found []string
	for _, pid := range pids {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil || len(line) == 0 {
			continue // it has just ended
		}
		found = append(found, "process: "+strings.TrimSpace(strings.ReplaceAll(string(line), "\x00", " ")))
	}
	return found, nil
}

// Processes lists what runs in the machine's PID namespace besides its first two:
// peri and its monitor, and no container that has a PID namespace of its own. The
// numbers are those that are seen from outside.
func (m *Machine) Processes() ([]int, error) {
	namespace, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", m.PID()))
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	cat, err := child(m.PID())
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == m.PID() || pid == cat {
			continue
		}
		if ns, err := os.Readlink(filepath.Join("/proc", e.Name(), "ns/pid")); err == nil && ns == namespace {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// newMounts lists what is mounted now and was not before the first start.
func (m *Machine) newMounts(context.Context) ([]string, error) {
	points, err := m.Mounts()
	if err != nil {
		return nil, err
	}
	var found []string
	for _, p := range points {
		if !m.mounted[p] {
			found = append(found, "mount: "+p)
		}
	}
	return found, nil
}

// Mounts lists the mount points of the machine.
func (m *Machine) Mounts() ([]string, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", m.PID()))
	if err != nil {
		return nil, err
	}
	var points []string
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) > 4 {
			points = append(points, f[4])
		}
	}
	return points, nil
}

// interfaces looks at links, addresses and routes.
func (m *Machine) interfaces(ctx context.Context) ([]string, error) {
	var found []string
	links, err := m.Output(ctx, "ip", "-o", "link")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(links) {
		name, _, _ := strings.Cut(strings.Fields(line)[1], "@")
		if name = strings.TrimSuffix(name, ":"); !slices.Contains(built, name) {
			found = append(found, "interface: "+name)
		}
	}
	addresses, err := m.Output(ctx, "ip", "-o", "-4", "address")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(addresses) {
		if a := strings.Fields(line)[3]; a != "127.0.0.1/8" && a != m.Address().String()+"/24" {
			found = append(found, "address: "+a)
		}
	}
	routes, err := m.Output(ctx, "ip", "-o", "route")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(routes) {
		if !strings.Contains(line, "dev uplink") {
			found = append(found, "route: "+strings.TrimSpace(line))
		}
	}
	return found, nil
}

// built are the interfaces of an untouched machine; the tunnels are the kernel's own.
var built = []string{"lo", "uplink", "wire", "tunl0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0", "sit0", "ip6tnl0", "ip6gre0"}

// rules looks at nftables, which iptables' rules are part of.
func (m *Machine) rules(ctx context.Context) ([]string, error) {
	out, err := m.Output(ctx, "nft", "list", "tables")
	if err != nil {
		return nil, err
	}
	var found []string
	for line := range strings.Lines(out) {
		found = append(found, "rules: "+strings.TrimSpace(line))
	}
	return found, nil
}

// cgroups looks below the machine's own, which is the machine's to remove.
func (m *Machine) cgroups(context.Context) ([]string, error) {
	dirs, err := m.Cgroups()
	for i := range dirs {
		dirs[i] = "cgroup: " + dirs[i]
	}
	return dirs, err
}

// Cgroups lists those below the machine's own, in every hierarchy.
func (m *Machine) Cgroups() ([]string, error) {
	var found []string
	for _, dir := range cgroup.Dirs(m.cgroup) {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err == nil && d.IsDir() && path != dir {
				found = append(found, path)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// files looks at the state and run directories.
func (m *Machine) files(context.Context) ([]string, error) {
	var found []string
	if _, err := os.Lstat(m.StateDir()); err == nil {
		found = append(found, "file: "+m.StateDir())
	}
	err := filepath.WalkDir(m.RunDir(), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && !d.IsDir() && d.Name() != "peri.log" {
			found = append(found, "file: "+path)
		}
		return err
	})
	return found, err
}
