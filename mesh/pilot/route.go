package pilot

import (
	"slices"
	"strconv"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/periplus/periplus/mesh"
	"github.com/periplus/periplus/mesh/config"
)

// portRoutes are the routes of the HTTP listener of a port: a virtual host for each
// service that has it.
func (g *generator) portRoutes(number int, services []*service) *routev3.RouteConfiguration {
	out := &routev3.RouteConfiguration{Name: strconv.Itoa(number), ValidateClusters: yes(false), IgnorePortInHostMatching: true}
	taken := map[string]bool{}
	known := map[string]bool{}
	for _, s := range services {
		known[s.host] = true
		domains := g.free(taken, g.domains(s))
		if len(domains) == 0 {
			continue
		}
		out.VirtualHosts = append(out.VirtualHosts, &routev3.VirtualHost{
			Name: s.host + ":" + strconv.Itoa(number), Domains: domains, Routes: g.serviceRoutes(s, s.port(number)), IncludeRequestAttemptCount: true,
		})
	}
	if number == 80 {
		out.VirtualHosts = append(out.VirtualHosts, g.otherHosts(taken)...)
	}
	out.VirtualHosts = append(out.VirtualHosts, &routev3.VirtualHost{
		Name: "allow_any", Domains: []string{"*"}, Routes: []*routev3.Route{forward("allow_any", mesh.PassthroughCluster)},
	})
	return out
}

// otherHosts are the hosts of VirtualServices that are no service's.
func (g *generator) otherHosts(taken map[string]bool) []*routev3.VirtualHost {
	var out []*routev3.VirtualHost
	for _, v := range g.world.virtualServices {
		if !g.applies(v) {
			continue
		}
		for _, h := range v.Spec.GetHosts() {
			host := config.FullHost(h, v.Namespace, g.world.domain)
			if g.world.byHost[host] != nil || host == "*" {
				continue
			}
			if domains := g.free(taken, []string{host}); len(domains) > 0 {
				out = append(out, &routev3.VirtualHost{Name: host + ":80", Domains: domains, Routes: g.httpRoutes(v, 80), IncludeRequestAttemptCount: true})
			}
		}
	}
	return out
}

func (g *generator) free(taken map[string]bool, domains []string) []string {
	var out []string
	for _, d := range domains {
		if !taken[d] {
			taken[d] = true
			out = append(out, d)
		}
	}
	return out
}

// domains are the names by which clients of this view may call a service.
func (g *generator) domains(s *service) []string {
	out := []string{s.host}
	if s.namespace == g.namespace {
		out = append(out, s.name)
	}
	out = append(out, s.name+"."+s.namespace+".svc", s.name+"."+s.namespace)
	if s.headless {
		// Pods of a StatefulSet: db-0.db.shop.svc.cluster.local.
		out = append(out, "*."+s.host, "*."+s.name+"."+s.namespace+".svc")
	}
	return append(out, s.addresses...)
}

func sniffedName(s *service, p *port) string { return s.host + ":" + strconv.Itoa(p.number) }

// sniffedRoutes are those of a port that may be HTTP: whatever the name, it is that service.
func (g *generator) sniffedRoutes(s *service, p *port) *routev3.RouteConfiguration {
	name := sniffedName(s, p)
	return &routev3.RouteConfiguration{
		Name: name, ValidateClusters: yes(false), IgnorePortInHostMatching: true,
		VirtualHosts: []*routev3.VirtualHost{{Name: name, Domains: []string{"*"}, Routes: g.serviceRoutes(s, p), IncludeRequestAttemptCount: true}},
	}
}

// serviceRoutes are what a VirtualService says, or one route to the service.
func (g *generator) serviceRoutes(s *service, p *port) []*routev3.Route {
	if v := g.virtualService(s.host); v != nil && len(v.Spec.GetHttp()) > 0 {
		if routes := g.httpRoutes(v, p.number); len(routes) > 0 {
			return routes
		}
	}
	r := forward("default", mesh.ClusterName(mesh.Outbound, p.number, "", s.host))
	action := r.GetRoute()
	action.RetryPolicy = retryPolicy(nil)
	action.HashPolicy = g.hashPolicy(s, p.number, "")
	return []*routev3.Route{r}
}

// forward is a route for everything, without time limits.
func forward(name, cluster string) *routev3.Route {
	return &routev3.Route{
		Name:  name,
		Match: &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
		Action: &routev3.Route_Route{Route: &routev3.RouteAction{
			ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: cluster},
			Timeout:          durationpb.New(0),
			MaxStreamDuration: &routev3.RouteAction_MaxStreamDuration{
				MaxStreamDuration: durationpb.New(0), GrpcTimeoutHeaderMax: durationpb.New(0),
			},
		}},
	}
}

// virtualService is the one that counts for a host: the most specific host, then the oldest.
func (g *generator) virtualService(host string) *config.VirtualService {
	var best *config.VirtualService
	length := -1
	for _, v := range g.world.virtualServices {
		if !g.applies(v) {
			continue
		}
		for _, h := range v.Spec.GetHosts() {
			pattern := config.FullHost(h, v.Namespace, g.world.domain)
			if config.HostMatches(pattern, host) && specificity(pattern) > length {
				best, length = v, specificity(pattern)
			}
		}
	}
	return best
}

func (g *generator) applies(v *config.VirtualService) bool {
	return forMesh(v.Spec.GetGateways()) && config.Exported(v.Spec.GetExportTo(), v.Namespace, g.namespace)
}

// forMesh reports whether sidecars are among some gateways.
func forMesh(gateways []string) bool {
	if slices.Contains(gateways, "mesh") {
		return true
	}
	return len(gateways) == 0
}

// destination names the cluster of a destination.
func (g *generator) destination(v *config.VirtualService, d *networking.Destination, listener int) string {
	host := config.FullHost(d.GetHost(), v.Namespace, g.world.domain)
	number := int(d.GetPort().GetNumber())
	if number == 0 {
		number = listener
		if s := g.world.byHost[host]; s != nil && len(s.ports) == 1 {
			number = s.ports[0].number
		}
	}
	return mesh.ClusterName(mesh.Outbound, number, d.GetSubset(), host)
}

// hashPolicy is the key of consistent hashing, if the destination's rule has it.
func (g *generator) hashPolicy(s *service, number int, subset string) []*routev3.RouteAction_HashPolicy {
	if s == nil {
		return nil
	}
	h := trafficPolicy(g.world.rule(s.host, s.namespace, g.namespace), subset, number).GetLoadBalancer().GetConsistentHash()
	p := &routev3.RouteAction_HashPolicy{}
	switch key := h.GetHashKey().(type) {
	case *networking.LoadBalancerSettings_ConsistentHashLB_HttpHeaderName:
		p.PolicySpecifier = &routev3.RouteAction_HashPolicy_Header_{Header: &routev3.RouteAction_HashPolicy_Header{HeaderName: key.HttpHeaderName}}
	case *networking.LoadBalancerSettings_ConsistentHashLB_HttpQueryParameterName:
		p.PolicySpecifier = &routev3.RouteAction_HashPolicy_QueryParameter_{QueryParameter: &routev3.RouteAction_HashPolicy_QueryParameter{Name: key.HttpQueryParameterName}}
	case *networking.LoadBalancerSettings_ConsistentHashLB_UseSourceIp:
		p.PolicySpecifier = &routev3.RouteAction_HashPolicy_ConnectionProperties_{ConnectionProperties: &routev3.RouteAction_HashPolicy_ConnectionProperties{SourceIp: key.UseSourceIp}}
	case *networking.LoadBalancerSettings_ConsistentHashLB_HttpCookie:
		c := &routev3.RouteAction_HashPolicy_Cookie{Name: key.HttpCookie.GetName(), Path: key.HttpCookie.GetPath()}
		if t := key.HttpCookie.GetTtl(); t != nil {
			c.Ttl = durationpb.New(t.AsDuration())
		}
		p.PolicySpecifier = &routev3.RouteAction_HashPolicy_Cookie_{Cookie: c}
	default:
		return nil
	}
	return []*routev3.RouteAction_HashPolicy{p}
}

// What is tried again if nobody says otherwise.
const (
	defaultRetryOn  = "connect-failure,refused-stream,unavailable,cancelled"
	defaultAttempts = 2
	defaultBackOff  = 25 * time.Millisecond
)

// retryPolicy reads retries; nil: the defaults. It returns nil for none.
func retryPolicy(r *networking.HTTPRetry) *routev3.RetryPolicy {
	out := &routev3.RetryPolicy{
		RetryOn: defaultRetryOn, NumRetries: u32(defaultAttempts),
		RetryHostPredicate:            []*routev3.RetryPolicy_RetryHostPredicate{{Name: "envoy.retry_host_predicates.previous_hosts"}},
		HostSelectionRetryMaxAttempts: 5,
		RetryBackOff:                  &routev3.RetryPolicy_RetryBackOff{BaseInterval: durationpb.New(defaultBackOff)},
	}
	if r == nil {
		return out
	}
	if r.GetAttempts() <= 0 {
		return nil
	}
	out.NumRetries = u32(int(r.GetAttempts()))
	if r.GetRetryOn() != "" {
		out.RetryOn, out.RetriableStatusCodes = splitRetryOn(r.GetRetryOn())
	}
	if t := r.GetPerTryTimeout(); t != nil {
		out.PerTryTimeout = durationpb.New(t.AsDuration())
	}
	if b := r.GetBackoff(); b != nil {
		out.RetryBackOff.BaseInterval = durationpb.New(b.AsDuration())
	}
	if v := r.GetRetryIgnorePreviousHosts(); v != nil && !v.GetValue() {
		out.RetryHostPredicate, out.HostSelectionRetryMaxAttempts = nil, 0
	}
	return out
}

func routeMetadata(v *config.VirtualService) map[string]*structpb.Value {
	return map[string]*structpb.Value{mesh.MetadataConfig: text("/apis/networking.istio.io/v1/namespaces/" + v.Namespace + "/virtual-service/" + v.Name)}
}
