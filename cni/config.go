package cni

import (
	"log/slog"
	"net/netip"
)

// Config is what every mode is told about the cluster.
type Config struct {
	// StateDir keeps what must survive a restart.
	StateDir string
	// ClusterCIDRs are the ranges of all pods of the cluster.
	ClusterCIDRs []netip.Prefix
	// ServiceCIDRs are the ranges of cluster IPs.
	ServiceCIDRs []netip.Prefix
	// Log; default slog.Default().
	Log *slog.Logger
}
