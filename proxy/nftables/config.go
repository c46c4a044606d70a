package nftables

import (
	"fmt"
	"log/slog"
	"net/netip"
)

// Config says what the backend must know of the cluster.
type Config struct {
	// IPv6 chooses the family of the table.
	IPv6 bool
	// Table is the name of the table; default "periplus-proxy".
	Table string
	// ServiceCIDRs are the ranges of cluster IPs: packets for one that is not in
	// use are refused on the node. Those of the other family are left out.
	ServiceCIDRs []netip.Prefix
	// PodCIDRs are the ranges of all pods of the cluster: others that use a
	// cluster IP are masqueraded.
	PodCIDRs []netip.Prefix
	// Log; default slog.Default().
	Log *slog.Logger
}

func (c *Config) validate() error {
	if c.Table == "" {
		c.Table = "periplus-proxy"
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	var err error
	if c.ServiceCIDRs, err = ofFamily("ServiceCIDRs", c.ServiceCIDRs, c.IPv6); err != nil {
		return err
	}
	c.PodCIDRs, err = ofFamily("PodCIDRs", c.PodCIDRs, c.IPv6)
	return err
}

func ofFamily(field string, list []netip.Prefix, ipv6 bool) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for i, p := range list {
		if !p.IsValid() {
			return nil, fmt.Errorf("nftables: %s[%d]: %v is not a range like 10.43.0.0/16", field, i, p)
		}
		if p.Addr().Is6() == ipv6 {
			out = append(out, p.Masked())
		}
	}
	return out, nil
}
