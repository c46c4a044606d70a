package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
)

// ErrMissing is returned by a backend whose programs the machine does not have.
var ErrMissing = errors.New("not on this machine")

// A Backend programs the kernel of one node for one address family. Its
// methods are called from one goroutine.
type Backend interface {
	// Name is the backend's name, "nftables".
	Name() string
	// IPv6 says which family it serves.
	IPv6() bool
	// Replace makes the kernel hold exactly these ports. What it already holds
	// stays as it is, so that no connection suffers.
	Replace(ctx context.Context, ports []*Port) error
	// Apply carries out changes after a successful Replace. After an error the
	// caller starts again with Replace.
	Apply(ctx context.Context, updates []Update) error
	// Lost is signalled when somebody else removed the rules.
	Lost() <-chan struct{}
	// Cleanup removes all that the backend made.
	Cleanup() error
	// Close gives up the connection to the kernel; the rules stay.
	Close() error
}

// BackendConfig says what any backend must know of the cluster.
type BackendConfig struct {
	// IPv6 chooses the address family.
	IPv6 bool
	// ServiceCIDRs are the ranges of cluster IPs: packets for one that is not in
	// use are refused on the node. Those of the other family are left out.
	ServiceCIDRs []netip.Prefix
	// PodCIDRs are the ranges of all pods of the cluster: others that use a
	// cluster IP are masqueraded.
	PodCIDRs []netip.Prefix
	// Log; default slog.Default().
	Log *slog.Logger
}

// Complete sets defaults, leaves out ranges of the other family, and refuses
// what is no range.
func (c *BackendConfig) Complete() (err error) {
	if c.Log == nil {
		c.Log = slog.Default()
	}
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
			return nil, fmt.Errorf("proxy: %s[%d]: %v is not a range like 10.43.0.0/16", field, i, p)
		}
		if p.Addr().Is6() == ipv6 {
			out = append(out, p.Masked())
		}
	}
	return out, nil
}
