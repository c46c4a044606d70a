package app

import (
	"context"
	"errors"
	"net/netip"

	"k8s.io/apiserver/pkg/authentication/user"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/dns"
	"github.com/periplus/periplus/proxy"
	proxyall "github.com/periplus/periplus/proxy/all"
)

// proxyStage programs the kernel with the Services.
func (w *worker) proxyStage(after ...string) stage {
	return stage{name: "proxy", after: after, run: func(ctx context.Context, ready func()) error {
		log := w.log.With(base.KeyComponent, "proxy")
		backend, err := proxyall.New(w.config.ProxyMode, proxy.BackendConfig{
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
			Informers: w.shared(), Namespaces: w.namespaces(), Domain: w.config.ClusterDomain, Address: netip.MustParseAddr(w.config.ClusterDNS),
			ResolvConf: w.config.ResolvConf, OnReady: ready, Log: w.log.With(base.KeyComponent, "dns"),
		})
		if err != nil {
			return err
		}
		w.shared().StartWithContext(ctx)
		return server.Run(ctx)
	}}
}

// namespaces are the informer of namespaces where this process may list them.
func (w *worker) namespaces() coreinformers.NamespaceInformer {
	if !w.together {
		return nil
	}
	return w.shared().Core().V1().Namespaces()
}

// addonsStage makes the objects of the cluster's own services.
func (s *controlPlane) addonsStage() stage {
	return stage{name: "addons", after: []string{"apiserver"}, run: func(ctx context.Context, ready func()) error {
		c, err := kubernetes.NewForConfig(s.api.ClientConfig("periplus-admin", user.SystemPrivilegedGroup))
		if err != nil {
			return err
		}
		if err := dns.Ensure(ctx, c, netip.MustParseAddr(s.config.ClusterDNS)); err != nil {
			return err
		}
		if err := s.publishCluster(ctx, c); err != nil {
			return err
		}
		if err := errors.Join(ensureStorage(ctx, c), ensureGateway(ctx, c), ensureRuntimeClass(ctx, c)); err != nil {
			return err
		}
		ready()
		<-ctx.Done()
		return nil
	}}
}
