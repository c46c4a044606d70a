package oci

import (
	"fmt"
	"slices"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/linux/process"
)

// defaultCapabilities are Docker's.
var defaultCapabilities = []string{
	"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FSETID", "CAP_FOWNER", "CAP_MKNOD", "CAP_NET_RAW", "CAP_SETGID",
	"CAP_SETUID", "CAP_SETFCAP", "CAP_SETPCAP", "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT", "CAP_KILL", "CAP_AUDIT_WRITE",
}

// capabilities applies a pod's additions and removals to the defaults, "ALL"
// first. available limits what ALL and privileged mean: we cannot give what we
// do not have.
func capabilities(sc *runtimeapi.LinuxContainerSecurityContext, available []string) (*specs.LinuxCapabilities, error) {
	c := sc.GetCapabilities()
	if sc.GetPrivileged() {
		return grant(available, nil), nil
	}
	add, err := normalize(c.GetAddCapabilities())
	if err != nil {
		return nil, err
	}
	drop, err := normalize(c.GetDropCapabilities())
	if err != nil {
		return nil, err
	}
	ambient, err := normalize(c.GetAddAmbientCapabilities())
	if err != nil {
		return nil, err
	}
	set := intersect(defaultCapabilities, available)
	if slices.Contains(add, "ALL") {
		set = slices.Clone(available)
	}
	if slices.Contains(drop, "ALL") {
		set = nil
	}
	for _, name := range append(slices.Clone(add), ambient...) {
		if name != "ALL" && !slices.Contains(set, name) {
			set = append(set, name)
		}
	}
	set = slices.DeleteFunc(set, func(name string) bool { return slices.Contains(drop, name) })
	return grant(set, intersect(ambient, set)), nil
}

// grant leaves the inheritable set empty unless there are ambient capabilities,
// so that programs of other users do not gain any through file capabilities.
func grant(set, ambient []string) *specs.LinuxCapabilities {
	set = slices.Clone(set)
	slices.Sort(set)
	c := &specs.LinuxCapabilities{Bounding: set, Effective: set, Permitted: set}
	if len(ambient) > 0 {
		c.Inheritable, c.Ambient = ambient, ambient
	}
	return c
}

// normalize turns "net_admin" and "CAP_NET_ADMIN" into the latter.
func normalize(names []string) ([]string, error) {
	out := make([]string, 0, len(names))
	for _, n := range names {
		name := strings.ToUpper(n)
		if name == "ALL" || name == "CAP_ALL" {
			out = append(out, "ALL")
			continue
		}
		if !strings.HasPrefix(name, "CAP_") {
			name = "CAP_" + name
		}
		if !process.KnownCapability(name) {
			return nil, fmt.Errorf("unknown capability %q", n)
		}
		out = append(out, name)
	}
	return out, nil
}

func intersect(a, b []string) []string {
	var out []string
	for _, x := range a {
		if slices.Contains(b, x) {
			out = append(out, x)
		}
	}
	return out
}
