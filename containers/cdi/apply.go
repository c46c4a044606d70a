package cdi

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	hostdevice "github.com/periplus/periplus/linux/device"
)

// Apply makes the changes.
func Apply(s *specs.Spec, list []Edits) error {
	for _, e := range list {
		for _, v := range e.Env {
			setEnv(s, v)
		}
		for _, n := range e.DeviceNodes {
			if err := addDevice(s, n); err != nil {
				return err
			}
		}
		for _, m := range e.Mounts {
			addMount(s, m)
		}
		for _, h := range e.Hooks {
			if err := addHook(s, h); err != nil {
				return err
			}
		}
		for _, gid := range e.AdditionalGIDs {
			if gid != 0 && !slices.Contains(s.Process.User.AdditionalGids, gid) {
				s.Process.User.AdditionalGids = append(s.Process.User.AdditionalGids, gid)
			}
		}
	}
	// A mount comes after what it is in.
	slices.SortStableFunc(s.Mounts, func(a, b specs.Mount) int {
		return cmp.Compare(strings.Count(strings.TrimSuffix(a.Destination, "/"), "/"), strings.Count(strings.TrimSuffix(b.Destination, "/"), "/"))
	})
	return nil
}

func setEnv(s *specs.Spec, v string) {
	name, _, _ := strings.Cut(v, "=")
	s.Process.Env = slices.DeleteFunc(s.Process.Env, func(have string) bool { return strings.HasPrefix(have, name+"=") })
	s.Process.Env = append(s.Process.Env, v)
}

func addDevice(s *specs.Spec, n DeviceNode) error {
	host := cmp.Or(n.HostPath, n.Path)
	d := specs.LinuxDevice{Path: n.Path, Type: n.Type, Major: n.Major, Minor: n.Minor, UID: n.UID, GID: n.GID}
	if n.FileMode != nil {
		mode := os.FileMode(*n.FileMode)
		d.FileMode = &mode
	}
	if n.Type == "" || n.Type != "p" && n.Major == 0 && n.Minor == 0 {
		found, err := hostdevice.Stat(host)
		if err != nil {
			return fmt.Errorf("CDI device %s: %w", host, err)
		}
		d.Type, d.Major, d.Minor = found.Type, found.Major, found.Minor
		if d.FileMode == nil {
			d.FileMode = &found.Mode
		}
		if d.UID == nil && d.GID == nil {
			d.UID, d.GID = &found.UID, &found.GID
		}
	}
	s.Linux.Devices = slices.DeleteFunc(s.Linux.Devices, func(have specs.LinuxDevice) bool { return have.Path == d.Path })
	s.Linux.Devices = append(s.Linux.Devices, d)
	if d.Type == "b" || d.Type == "c" {
		s.Linux.Resources.Devices = append(s.Linux.Resources.Devices, specs.LinuxDeviceCgroup{
			Allow: true, Type: d.Type, Major: &d.Major, Minor: &d.Minor, Access: cmp.Or(n.Permissions, "rwm"),
		})
	}
	return nil
}

func addMount(s *specs.Spec, m Mount) {
	options := slices.Clone(m.Options)
	if m.Type == "" && !slices.Contains(options, "bind") && !slices.Contains(options, "rbind") {
		options = append(options, "rbind")
	}
	s.Mounts = slices.DeleteFunc(s.Mounts, func(have specs.Mount) bool { return have.Destination == m.ContainerPath })
	s.Mounts = append(s.Mounts, specs.Mount{
		Destination: m.ContainerPath, Source: m.HostPath, Type: cmp.Or(m.Type, "bind"), Options: options,
	})
}

func addHook(s *specs.Spec, h Hook) error {
	if s.Hooks == nil {
		s.Hooks = &specs.Hooks{}
	}
	hook := specs.Hook{Path: h.Path, Args: h.Args, Env: h.Env, Timeout: h.Timeout}
	switch h.HookName {
	case "prestart":
		s.Hooks.Prestart = append(s.Hooks.Prestart, hook) //nolint:staticcheck // files may name it
	case "createRuntime":
		s.Hooks.CreateRuntime = append(s.Hooks.CreateRuntime, hook)
	case "createContainer":
		s.Hooks.CreateContainer = append(s.Hooks.CreateContainer, hook)
	case "startContainer":
		s.Hooks.StartContainer = append(s.Hooks.StartContainer, hook)
	case "poststart":
		s.Hooks.Poststart = append(s.Hooks.Poststart, hook)
	case "poststop":
		s.Hooks.Poststop = append(s.Hooks.Poststop, hook)
	default:
		return fmt.Errorf("CDI hook %q is unknown", h.HookName)
	}
	return nil
}
