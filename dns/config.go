package dns

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"

	miekg "github.com/miekg/dns"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
)

// Config says what is answered and where.
type Config struct {
	// Informers gives Services and EndpointSlices; the caller starts it, after New.
	Informers informers.SharedInformerFactory
	// Namespaces, if set, tells which namespaces exist, so that names of pods in
	// others and of others themselves do not. Without it, pod names exist in any
	// namespace and a namespace exists that has a Service. It needs permission to
	// list and watch namespaces.
	Namespaces coreinformers.NamespaceInformer
	// Domain is the cluster's domain, "cluster.local".
	Domain string
	// Address is where pods ask: the cluster IP of kube-dns. Run puts it on lo,
	// unless it is a loopback address and so there already.
	Address netip.Addr
	// Port is where pods ask; default 53.
	Port uint16
	// ResolvConf names the resolvers for all other names; default /etc/resolv.conf.
	ResolvConf string
	// StubDomains maps domains to the resolvers that know them.
	StubDomains map[string][]netip.AddrPort
	// OnReady is called once, when names are answered.
	OnReady func()
	// Log; default slog.Default().
	Log *slog.Logger
}

func (c *Config) validate() error {
	if c.Informers == nil {
		return errors.New("dns: Informers: is missing")
	}
	domain, err := canonical(c.Domain)
	if err != nil {
		return fmt.Errorf("dns: Domain: %w", err)
	}
	c.Domain = domain
	if !c.Address.IsValid() || c.Address.IsUnspecified() {
		return fmt.Errorf("dns: Address: is %q, must be the cluster IP of kube-dns", c.Address)
	}
	c.Address = c.Address.Unmap()
	stubs := make(map[string][]netip.AddrPort, len(c.StubDomains))
	for d, servers := range c.StubDomains {
		name, err := canonical(d)
		if err != nil {
			return fmt.Errorf("dns: StubDomains: %w", err)
		}
		if len(servers) == 0 {
			return fmt.Errorf("dns: StubDomains: %q has no resolvers, must have at least one", d)
		}
		for _, a := range servers {
			if !a.IsValid() || a.Addr().Unmap() == c.Address {
				return fmt.Errorf("dns: StubDomains: %q: resolver %s, must be an address and port other than %s", d, a, c.Address)
			}
		}
		stubs[name] = servers
	}
	c.StubDomains = stubs
	if c.Port == 0 {
		c.Port = 53
	}
	if c.ResolvConf == "" {
		c.ResolvConf = "/etc/resolv.conf"
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return nil
}

// canonical returns a domain in lower case with a dot at the end.
func canonical(domain string) (string, error) {
	if _, ok := miekg.IsDomainName(domain); !ok || strings.Trim(domain, ".") == "" || strings.Contains(domain, `\`) {
		return "", fmt.Errorf("%q is not a domain, like cluster.local", domain)
	}
	return miekg.CanonicalName(domain), nil
}
