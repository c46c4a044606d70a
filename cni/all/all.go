package all

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/periplus/periplus/cni"
	"github.com/periplus/periplus/cni/bridge"
)

// Modes returns the constructor of each mode by name.
func Modes() map[string]func(cni.Config) (cni.Network, error) {
	return map[string]func(cni.Config) (cni.Network, error){
		"bridge": func(c cni.Config) (cni.Network, error) {
			return bridge.New(bridge.Config{StateDir: c.StateDir, ClusterCIDRs: c.ClusterCIDRs, ServiceCIDRs: c.ServiceCIDRs, Log: c.Log})
		},
	}
}

// New makes the network of that mode.
func New(mode string, c cni.Config) (cni.Network, error) {
	modes := Modes()
	f, ok := modes[mode]
	if !ok {
		return nil, fmt.Errorf("network mode %q is unknown, must be one of %s", mode, strings.Join(slices.Sorted(maps.Keys(modes)), ", "))
	}
	return f(c)
}
