package pilot

import (
	"net"
	"strconv"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"github.com/periplus/periplus/mesh"
)

// gRPC clients (xds:///reviews.shop.svc.cluster.local:9080) ask for a listener by the
// name of their target, and follow it to routes, clusters and endpoints. The
// configuration of a listener's port differs from a sidecar's only in what is left out.

// target reads what a gRPC client wants to call.
func (w *World) target(name, namespace string) (*service, *port) {
	host, number, err := net.SplitHostPort(name)
	if err != nil {
		return nil, nil
	}
	for _, full := range []string{
		host, host + ".svc." + w.domain, host + "." + w.domain, host + "." + namespace + ".svc." + w.domain,
	} {
		s := w.byHost[full]
		if s == nil {
			continue
		}
		n, err := strconv.Atoi(number)
		if err != nil {
			return nil, nil
		}
		return s, s.port(n)
	}
	return nil, nil
}

// proxylessListener is the listener of a target; nil: there is none.
func (w *World) proxylessListener(name, namespace string) *resource {
	s, p := w.target(name, namespace)
	if p == nil {
		return nil
	}
	manager := &hcm.HttpConnectionManager{
		RouteSpecifier: &hcm.HttpConnectionManager_Rds{Rds: &hcm.Rds{ConfigSource: ads(), RouteConfigName: sniffedName(s, p)}},
		HttpFilters:    []*hcm.HttpFilter{httpFilter(filterRouter, &routerv3.Router{})},
	}
	return newResource(name, &listenerv3.Listener{Name: name, ApiListener: &listenerv3.ApiListener{ApiListener: pack(manager)}})
}

// proxylessRoute is the routes of host:port.
func (w *World) proxylessRoute(g *generator, name string) *resource {
	s, p := w.target(name, g.namespace)
	if p == nil {
		return nil
	}
	r := g.sniffedRoutes(s, p)
	r.ValidateClusters, r.IgnorePortInHostMatching = nil, false
	for _, v := range r.GetVirtualHosts() {
		for _, route := range v.GetRoutes() {
			route.TypedPerFilterConfig = nil
			if a := route.GetRoute(); a != nil {
				a.MaxStreamDuration = nil
				if a.RetryPolicy != nil {
					a.RetryPolicy = &routev3.RetryPolicy{
						RetryOn: grpcReasons(a.RetryPolicy.GetRetryOn()), NumRetries: a.RetryPolicy.GetNumRetries(), RetryBackOff: a.RetryPolicy.GetRetryBackOff(),
					}
				}
			}
		}
	}
	return newResource(name, r)
}

// grpcReasons leaves the reasons that gRPC knows.
func grpcReasons(s string) string {
	var out []string
	for part := range strings.SplitSeq(s, ",") {
		switch part = strings.TrimSpace(part); part {
		case "cancelled", "deadline-exceeded", "internal", "resource-exhausted", "unavailable":
			out = append(out, part)
		}
	}
	return strings.Join(out, ",")
}

// proxylessCluster is a cluster by name; nil: there is none.
func (w *World) proxylessCluster(g *generator, name string) *resource {
	_, number, subset, host, err := mesh.ParseClusterName(name)
	s := w.byHost[host]
	if err != nil || s == nil {
		return nil
	}
	p := s.port(number)
	if p == nil {
		return nil
	}
	return newResource(name, g.cluster(s, p, subset, trafficPolicy(w.rule(host, s.namespace, g.namespace), subset, number)))
}
