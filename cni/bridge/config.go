package bridge

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
)

// Config says what the bridge looks like.
type Config struct {
	// StateDir keeps the record of addresses.
	StateDir string
	// ClusterCIDRs are the ranges of all pods of the cluster.
	ClusterCIDRs []netip.Prefix
	// ServiceCIDRs are the ranges of cluster IPs.
	ServiceCIDRs []netip.Prefix
	// Log; default slog.Default().
	Log *slog.Logger
	// Bridge is the name of the bridge; default "peri0".
	Bridge string
	// Table is the name of the nftables table; default "periplus-cni".
	Table string
	// MTU of pods; default: that of the node's uplink.
	MTU int
}

func (c *Config) validate() error {
	if c.StateDir == "" {
		return errors.New("bridge: StateDir: is empty, must be a directory")
	}
	if c.Bridge == "" {
		c.Bridge = "peri0"
	}
	if len(c.Bridge) > 15 {
		return fmt.Errorf("bridge: Bridge: %q is too long for an interface, at most 15 characters", c.Bridge)
	}
	if c.Table == "" {
		c.Table = "periplus-cni"
	}
	if c.MTU != 0 && (c.MTU < 576 || c.MTU > 65535) {
		return fmt.Errorf("bridge: MTU: %d is out of range, must be 576 to 65535", c.MTU)
	}
	for _, p := range append(append([]netip.Prefix{}, c.ClusterCIDRs...), c.ServiceCIDRs...) {
		if !p.IsValid() {
			return errors.New("bridge: ClusterCIDRs, ServiceCIDRs: an entry is not a range like 10.42.0.0/16")
		}
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return nil
}

func (c *Config) poolDir() string { return filepath.Join(c.StateDir, "ipam") }
