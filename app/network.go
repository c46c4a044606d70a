package app

import (
	"context"
	"net/netip"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/dns"
	"github.com/periplus/periplus/proxy"
	"github.com/periplus/periplus/proxy/nftables"
)

// proxyStage programs the kernel with the Services.
func (w *worker) proxyStage(after ...string) stage {
	return stage{name: "proxy", after: after, run: func(ctx context.Context, ready func()) error {
		log := w.log.With(base.KeyComponent, "proxy")
		backend, err := nftables.New(nftables.Config{
			ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix(w.config.ServiceCIDR)},
			PodCIDRs:     []netip.Prefix{netip.MustParsePrefix(w.config.ClusterCIDR)}, Log: log,
		})
		if err != nil {
			return err
		}
		defer backend.Close()
		p, err := proxy.New(proxy.Config{
			Informers: w.shared(), Node: w.config.NodeName, Backends: []proxy.Backend{backend}, Journey: w.record, OnSynced: ready, Log: log,
		})
		if err != nil {
			return err
		}
		w.shared().StartWithContext(ctx)
		return p.Run(ctx)
	}}
}

// dnsStage answers the cluster's names.
func (w *worker) dnsStage(after ...string) stage {
	return stage{name: "dns", after: after, run: func(ctx context.Context, ready func()) error {
		server, err := dns.New(dns.Config{
			Informers: w.shared(), Domain: w.config.ClusterDomain, Address: netip.MustParseAddr(w.config.ClusterDNS),
			ResolvConf: w.config.ResolvConf, OnReady: ready, Log: w.log.With(base.KeyComponent, "dns"),
		})
		if err != nil {
			return err
		}
		w.shared().StartWithContext(ctx)
		return server.Run(ctx)
	}}
}
