package dns

import (
	"log/slog"
	"net/netip"

	"k8s.io/client-go/informers"
)

// Config says what is answered and where.
type Config struct {
	// Informers gives Services, EndpointSlices and, for pod names, Pods; the caller starts it.
	Informers informers.SharedInformerFactory
	// Domain is the cluster's domain, "cluster.local".
	Domain string
	// Address is where pods ask: the cluster IP of kube-dns. Run puts it on lo.
	Address netip.Addr
	// ResolvConf names the resolvers for all other names; default /etc/resolv.conf.
	ResolvConf string
	// StubDomains maps domains to the resolvers that know them.
	StubDomains map[string][]netip.AddrPort
	// OnReady is called once, when names are answered.
	OnReady func()
	// Log; default slog.Default().
	Log *slog.Logger
}
