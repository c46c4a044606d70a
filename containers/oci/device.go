package oci

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/linux/device"
)

// devices returns the nodes to make and the rules of the device cgroup. The
// usual ones (/dev/null, /dev/pts …) are made and allowed by the OCI runtime.
func devices(c *runtimeapi.ContainerConfig) ([]specs.LinuxDevice, []specs.LinuxDeviceCgroup, error) {
	if c.GetLinux().GetSecurityContext().GetPrivileged() {
		var nodes []specs.LinuxDevice
		for _, n := range device.All("/dev") {
			nodes = append(nodes, specDevice(n, n.Path))
		}
		return nodes, []specs.LinuxDeviceCgroup{{Allow: true, Access: "rwm"}}, nil
	}
	rules := []specs.LinuxDeviceCgroup{{Allow: false, Access: "rwm"}}
	var nodes []specs.LinuxDevice
	for _, d := range c.GetDevices() {
		found, err := expand(d)
		if err != nil {
			return nil, nil, err
		}
		for path, n := range found {
			access := d.GetPermissions()
			if access == "" {
				access = "rwm"
			}
			major, minor := n.Major, n.Minor
			nodes = append(nodes, specDevice(n, path))
			rules = append(rules, specs.LinuxDeviceCgroup{Allow: true, Type: n.Type, Major: &major, Minor: &minor, Access: access})
		}
	}
	return nodes, rules, nil
}

// expand returns the nodes by their path in the container; a directory stands
// for those below it.
func expand(d *runtimeapi.Device) (map[string]device.Node, error) {
	host, err := filepath.EvalSymlinks(d.GetHostPath())
	if err != nil {
		return nil, fmt.Errorf("device %s: %w", d.GetHostPath(), err)
	}
	n, err := device.Stat(host)
	if err == nil {
		return map[string]device.Node{d.GetContainerPath(): n}, nil
	}
	if info, statErr := os.Stat(host); !errors.Is(err, device.ErrNotDevice) || statErr != nil || !info.IsDir() {
		return nil, fmt.Errorf("device %s: %w", d.GetHostPath(), err)
	}
	found := map[string]device.Node{}
	for _, n := range device.All(host) {
		rel, err := filepath.Rel(host, n.Path)
		if err == nil {
			found[filepath.Join(d.GetContainerPath(), rel)] = n
		}
	}
	return found, nil
}

func specDevice(n device.Node, path string) specs.LinuxDevice {
	return specs.LinuxDevice{
		Path: path, Type: n.Type, Major: n.Major, Minor: n.Minor,
		FileMode: &n.Mode, UID: &n.UID, GID: &n.GID,
	}
}
