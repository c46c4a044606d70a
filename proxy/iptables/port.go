package iptables

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/proxy"
)

// A block is what one port contributes. It depends on the port and on the
// backend's configuration only.
type block struct {
	chains   []string // its own chains in nat, sorted
	rules    []string // of those chains
	services []string // of KUBE-SERVICES in nat
	nodePort []string // of KUBE-NODEPORTS in nat
	refused  []string // of KUBE-SERVICES in filter
	external []string // of KUBE-EXTERNAL-SERVICES in filter
	firewall []string // of KUBE-PROXY-FIREWALL in filter
}

// render is a port's block.
func render(c proxy.BackendConfig, p *proxy.Port) *block {
	r := renderer{config: c, port: p, name: portName(p.Name), block: &block{}}
	r.clusterIP()
	r.external()
	slices.Sort(r.block.chains)
	r.block.chains = slices.Compact(r.block.chains)
	return r.block
}

type renderer struct {
	config proxy.BackendConfig
	port   *proxy.Port
	name   string
	block  *block
}

// rule is one line: "-A chain", a comment, matches and the verdict.
func rule(chain, comment string, rest ...string) string {
	return fmt.Sprintf("-A %s -m comment --comment %q %s", chain, comment, strings.Join(rest, " "))
}

func (r *renderer) own(chain, comment string, rest ...string) {
	r.block.chains = append(r.block.chains, chain)
	r.block.rules = append(r.block.rules, rule(chain, comment, rest...))
}

// to matches packets for an address and the port, to matches any address if it is not valid.
func (r *renderer) to(a netip.Addr, port uint16) string {
	proto := protocol(r.port.Name.Protocol)
	s := fmt.Sprintf("-m %s -p %s", proto, proto)
	if a.IsValid() {
		s += " -d " + netip.PrefixFrom(a, a.BitLen()).String()
	}
	return fmt.Sprintf("%s --dport %d", s, port)
}

// policy is the chain and the endpoints of one traffic policy.
func (r *renderer) policy(local bool) (string, []netip.AddrPort) {
	if local {
		return chain(prefixLocal, r.port.Name), r.port.Local
	}
	return chain(prefixCluster, r.port.Name), r.port.Cluster
}

// reject refuses at once: the kernel sends few ICMP errors a second, but any
// number of resets.
func (r *renderer) reject() string {
	if r.port.Name.Protocol == v1.ProtocolTCP {
		return "-j REJECT --reject-with tcp-reset"
	}
	return "-j REJECT"
}

func (r *renderer) clusterIP() {
	p := r.port
	target, endpoints := r.policy(p.InternalLocal)
	if !p.ClusterIP.IsValid() {
		return
	}
	to := r.to(p.ClusterIP, p.Port)
	switch {
	case len(endpoints) > 0:
		r.block.services = append(r.block.services, rule(chainServices, r.name+" cluster IP", to, "-j", target))
		// Clients that are not pods come back through this node.
		if len(r.config.PodCIDRs) == 1 {
			r.own(target, r.name+" cluster IP", to, "! -s", r.config.PodCIDRs[0].String(), "-j", chainMarkMasq)
		}
		r.balance(target, endpoints)
	case p.InternalLocal && len(p.Cluster) > 0:
		r.block.refused = append(r.block.refused, rule(chainServices, r.name+" has no local endpoints", to, "-j DROP"))
	default:
		r.block.refused = append(r.block.refused, rule(chainServices, r.name+" has no endpoints", to, r.reject()))
	}
}

// balance chooses one of the endpoints: each rule takes its share of what the
// ones before it have left.
func (r *renderer) balance(from string, endpoints []netip.AddrPort) {
	affinity := r.port.Affinity
	for _, e := range endpoints {
		sep := endpointChain(r.port.Name, e)
		if affinity > 0 {
			r.own(from, fmt.Sprintf("%s -> %s", r.name, e),
				fmt.Sprintf("-m recent --name %s --rcheck --seconds %d --reap -j %s", sep, affinity/time.Second, sep))
		}
	}
	for i, e := range endpoints {
		sep := endpointChain(r.port.Name, e)
		share := ""
		if left := len(endpoints) - i; left > 1 {
			share = fmt.Sprintf("-m statistic --mode random --probability %.10f", 1/float64(left))
		}
		r.own(from, fmt.Sprintf("%s -> %s", r.name, e), share, "-j", sep)
		r.endpoint(sep, e)
	}
}

func (r *renderer) endpoint(sep string, e netip.AddrPort) {
	if slices.Contains(r.block.chains, sep) {
		return // of the other policy
	}
	proto := protocol(r.port.Name.Protocol)
	r.own(sep, r.name, "-s", netip.PrefixFrom(e.Addr(), e.Addr().BitLen()).String(), "-j", chainMarkMasq)
	recent := ""
	if r.port.Affinity > 0 {
		recent = "-m recent --name " + sep + " --set"
	}
	r.own(sep, r.name, fmt.Sprintf("-m %s -p %s", proto, proto), recent, "-j DNAT --to-destination", e.String())
}

func (r *renderer) external() {
	p := r.port
	if !p.IsExternal() {
		return
	}
	target, endpoints := r.policy(p.ExternalLocal)
	ext := chain(prefixExternal, p.Name)
	if len(p.Cluster) == 0 || len(endpoints) == 0 {
		r.refuseExternal()
	}
	if len(p.Cluster) == 0 {
		return
	}
	r.externalChain(ext, target, endpoints)
	for _, a := range p.External {
		r.block.services = append(r.block.services, rule(chainServices, r.name+" external IP", r.to(a, p.Port), "-j", ext))
	}
	for _, a := range p.LoadBalancer {
		r.loadBalancer(a, ext)
	}
	if p.NodePort != 0 {
		r.block.nodePort = append(r.block.nodePort, rule(chainNodePorts, r.name, r.to(netip.Addr{}, p.NodePort), "-j", ext))
	}
}

// externalChain treats clients by where they are.
func (r *renderer) externalChain(ext, target string, endpoints []netip.AddrPort) {
	cluster, all := r.policy(false)
	if !r.port.ExternalLocal {
		r.own(ext, "masquerade traffic for "+r.name+" external destinations", "-j", chainMarkMasq)
		r.own(ext, r.name, "-j", cluster)
	} else {
		for _, pods := range r.config.PodCIDRs {
			r.own(ext, "pod traffic for "+r.name+" external destinations", "-s", pods.String(), "-j", cluster)
		}
		r.own(ext, "masquerade LOCAL traffic for "+r.name+" external destinations", "-m addrtype --src-type LOCAL -j", chainMarkMasq)
		r.own(ext, "route LOCAL traffic for "+r.name+" external destinations", "-m addrtype --src-type LOCAL -j", cluster)
		if len(endpoints) > 0 {
			r.own(ext, r.name, "-j", target)
		}
	}
	if !slices.Contains(r.block.chains, cluster) {
		r.balance(cluster, all)
	}
	if !slices.Contains(r.block.chains, target) && len(endpoints) > 0 {
		r.balance(target, endpoints)
	}
}

// loadBalancer lets in whom the source ranges name; the filter table drops others.
func (r *renderer) loadBalancer(a netip.Addr, ext string) {
	to := r.to(a, r.port.Port)
	if len(r.port.SourceRanges) == 0 {
		r.block.services = append(r.block.services, rule(chainServices, r.name+" loadbalancer IP", to, "-j", ext))
		return
	}
	sources := chain(prefixSources, r.port.Name)
	r.block.services = append(r.block.services, rule(chainServices, r.name+" loadbalancer IP", to, "-j", sources))
	if !slices.Contains(r.block.chains, sources) {
		for _, from := range r.port.SourceRanges {
			if from.Addr().Is6() == r.config.IPv6 {
				r.own(sources, r.name+" loadbalancer IP", "-s", from.Masked().String(), "-j", ext)
			}
		}
		r.own(sources, "other traffic to "+r.name+" will be dropped by "+chainFirewall)
	}
	r.block.firewall = append(r.block.firewall, rule(chainFirewall, r.name+" traffic not accepted by "+sources, to, "-j DROP"))
}

// refuseExternal answers clients from outside when nothing can serve them: with
// the policy Local, silently, since another node may.
func (r *renderer) refuseExternal() {
	p := r.port
	verdict, why := r.reject(), r.name+" has no endpoints"
	if len(p.Cluster) > 0 {
		verdict, why = "-j DROP", r.name+" has no local endpoints"
	}
	for _, a := range slices.Concat(p.External, p.LoadBalancer) {
		r.block.external = append(r.block.external, rule(chainExternal, why, r.to(a, p.Port), verdict))
	}
	if p.NodePort != 0 {
		r.block.external = append(r.block.external, rule(chainExternal, why, "-m addrtype --dst-type LOCAL", r.to(netip.Addr{}, p.NodePort), verdict))
	}
}
