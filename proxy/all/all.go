package all

import (
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/periplus/periplus/proxy"
	"github.com/periplus/periplus/proxy/nftables"
)

// Config is what a backend is told about the cluster.
type Config struct {
	IPv6         bool
	ServiceCIDRs []netip.Prefix
	PodCIDRs     []netip.Prefix
	Log          *slog.Logger
}

// Backends returns the constructor of each backend by name.
func Backends() map[string]func(Config) (proxy.Backend, error) {
	return map[string]func(Config) (proxy.Backend, error){
		"nftables": func(c Config) (proxy.Backend, error) {
			return nftables.New(nftables.Config{IPv6: c.IPv6, ServiceCIDRs: c.ServiceCIDRs, PodCIDRs: c.PodCIDRs, Log: c.Log})
		},
	}
}

// New makes the backend of that name.
func New(name string, c Config) (proxy.Backend, error) {
	backends := Backends()
	f, ok := backends[name]
	if !ok {
		return nil, fmt.Errorf("proxy mode %q is unknown, must be one of %s", name, strings.Join(slices.Sorted(maps.Keys(backends)), ", "))
	}
	return f(c)
}
