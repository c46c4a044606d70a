package policy

import (
	"cmp"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Objects are what policies are compiled from. Nothing in them is changed.
type Objects struct {
	Node       string // whose pods are judged
	IPv6       bool   // which addresses count
	Policies   []*networkingv1.NetworkPolicy
	Pods       []*corev1.Pod // of the whole cluster
	Namespaces []*corev1.Namespace
}

// Compile says what the node's kernel has to hold. Same input, same output.
func Compile(o Objects) *Layout {
	c := compiler{Objects: o, namespaces: map[string]labels.Set{}, layout: &Layout{
		Ingress: map[netip.Addr]string{}, Egress: map[netip.Addr]string{}, Chains: map[string][]Match{}, Sets: map[string]*Set{}}}
	for _, n := range o.Namespaces {
		c.namespaces[n.Name] = n.Labels
	}
	c.Pods = nil
	for _, p := range o.Pods {
		if !p.Spec.HostNetwork && !finished(p) && len(c.addresses(p)) > 0 {
			c.Pods = append(c.Pods, p)
		}
	}
	c.Policies = slices.SortedFunc(slices.Values(o.Policies), func(a, b *networkingv1.NetworkPolicy) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for _, p := range c.Pods {
		if p.Spec.NodeName == o.Node {
			c.pod(p)
		}
	}
	return c.layout
}

type compiler struct {
	Objects
	namespaces map[string]labels.Set
	layout     *Layout
}

func finished(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

func (c *compiler) addresses(p *corev1.Pod) []netip.Addr {
	var out []netip.Addr
	for _, ip := range p.Status.PodIPs {
		if a, err := netip.ParseAddr(ip.IP); err == nil && a.Is6() == c.IPv6 {
			out = append(out, a)
		}
	}
	return out
}

// pod judges one pod by all policies that select it: what any allows is allowed.
func (c *compiler) pod(p *corev1.Pod) {
	var in, out []Match
	var isolatedIn, isolatedOut bool
	for _, policy := range c.Policies {
		if policy.Namespace != p.Namespace || !matches(&policy.Spec.PodSelector, p.Labels) {
			continue
		}
		if slices.Contains(policy.Spec.PolicyTypes, networkingv1.PolicyTypeIngress) || len(policy.Spec.PolicyTypes) == 0 {
			isolatedIn = true
			for _, r := range policy.Spec.Ingress {
				in = append(in, c.rule(policy.Namespace, r.From, r.Ports, p)...)
			}
		}
		if slices.Contains(policy.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) || len(policy.Spec.PolicyTypes) == 0 && len(policy.Spec.Egress) > 0 {
			isolatedOut = true
			for _, r := range policy.Spec.Egress {
				out = append(out, c.rule(policy.Namespace, r.To, r.Ports, nil)...)
			}
		}
	}
	for _, a := range c.addresses(p) {
		if isolatedIn {
			c.layout.Ingress[a] = c.chain("in-", in)
		}
		if isolatedOut {
			c.layout.Egress[a] = c.chain("out-", out)
		}
	}
}

func (c *compiler) chain(prefix string, rules []Match) string {
	name := chainName(prefix, rules)
	c.layout.Chains[name] = rules
	return name
}

// rule multiplies peers by ports. local is the pod that listens on the ports; nil
// when the peers do.
func (c *compiler) rule(namespace string, peers []networkingv1.NetworkPolicyPeer, ports []networkingv1.NetworkPolicyPort, local *corev1.Pod) []Match {
	if len(peers) == 0 {
		return c.ports(namespace, nil, Match{}, ports, local)
	}
	var out []Match
	for i := range peers {
		p := &peers[i]
		if p.IPBlock != nil {
			if m, ok := c.block(p.IPBlock); ok {
				out = append(out, c.ports(namespace, p, m, ports, local)...)
			}
			continue
		}
		out = append(out, c.ports(namespace, p, Match{Set: c.peers(namespace, p)}, ports, local)...)
	}
	return out
}

func (c *compiler) block(b *networkingv1.IPBlock) (m Match, ok bool) {
	block, err := netip.ParsePrefix(b.CIDR)
	if err != nil || block.Addr().Is6() != c.IPv6 {
		return m, false
	}
	m.Block = block.Masked()
	for _, e := range b.Except {
		if p, err := netip.ParsePrefix(e); err == nil && p.Addr().Is6() == c.IPv6 {
			m.Except = append(m.Except, p.Masked())
		}
	}
	return m, true
}

func (c *compiler) ports(namespace string, peer *networkingv1.NetworkPolicyPeer, from Match, ports []networkingv1.NetworkPolicyPort, local *corev1.Pod) []Match {
	if len(ports) == 0 {
		return []Match{from}
	}
	var out []Match
	for _, p := range ports {
		m := from
		m.Protocol = number(p.Protocol)
		switch {
		case p.Port == nil:
		case p.Port.StrVal == "":
			m.Port, m.End = uint16(p.Port.IntVal), uint16(p.Port.IntVal) //nolint:gosec // validated: 1-65535
			if p.EndPort != nil {
				m.End = uint16(*p.EndPort) //nolint:gosec // validated: 1-65535
			}
		case local != nil:
			port := named(local, p.Port.StrVal, m.Protocol)
			if port == 0 {
				continue // nothing listens under that name
			}
			m.Port, m.End = port, port
		default:
			if m.Block.IsValid() {
				continue // addresses outside of the cluster have no names of ports
			}
			m = Match{Set: c.endpoints(namespace, peer, p.Port.StrVal, m.Protocol), Endpoints: true}
		}
		out = append(out, m)
	}
	return out
}

func number(p *corev1.Protocol) uint8 {
	switch {
	case p == nil || *p == corev1.ProtocolTCP:
		return 6
	case *p == corev1.ProtocolUDP:
		return 17
	default:
		return 132
	}
}

// named is the port of that name; 0: there is none.
func named(p *corev1.Pod, name string, protocol uint8) uint16 {
	for _, list := range [][]corev1.Container{p.Spec.Containers, p.Spec.InitContainers} {
		for i := range list {
			for _, port := range list[i].Ports {
				if port.Name == name && number(&port.Protocol) == protocol {
					return uint16(port.ContainerPort) //nolint:gosec // validated: 1-65535
				}
			}
		}
	}
	return 0
}

// selects says whether a peer, nil for all pods, means a pod.
func (c *compiler) selects(namespace string, peer *networkingv1.NetworkPolicyPeer, p *corev1.Pod) bool {
	if peer == nil {
		return true
	}
	if peer.NamespaceSelector == nil && p.Namespace != namespace {
		return false
	}
	if peer.NamespaceSelector != nil {
		l, ok := c.namespaces[p.Namespace]
		if !ok || !matches(peer.NamespaceSelector, l) {
			return false
		}
	}
	return peer.PodSelector == nil || matches(peer.PodSelector, p.Labels)
}

// peerKey is the same for peers that mean the same pods.
func peerKey(namespace string, peer *networkingv1.NetworkPolicyPeer) string {
	if peer == nil {
		return "all"
	}
	key := "in " + namespace
	if peer.NamespaceSelector != nil {
		key = "in namespaces " + metav1.FormatLabelSelector(peer.NamespaceSelector)
	}
	if peer.PodSelector != nil {
		key += " pods " + metav1.FormatLabelSelector(peer.PodSelector)
	}
	return key
}

// peers is the set of the addresses of the pods that a peer means.
func (c *compiler) peers(namespace string, peer *networkingv1.NetworkPolicyPeer) string {
	name := "pods-" + hash(peerKey(namespace, peer))
	if c.layout.Sets[name] != nil {
		return name
	}
	s := &Set{Members: map[Member]bool{}}
	for _, p := range c.Pods {
		if c.selects(namespace, peer, p) {
			for _, a := range c.addresses(p) {
				s.Members[Member{Address: a}] = true
			}
		}
	}
	c.layout.Sets[name] = s
	return name
}

// endpoints is the set of what a peer's pods listen on under a name.
func (c *compiler) endpoints(namespace string, peer *networkingv1.NetworkPolicyPeer, port string, protocol uint8) string {
	name := "ports-" + hash(peerKey(namespace, peer)+" "+port+" "+protocolNames[protocol])
	if c.layout.Sets[name] != nil {
		return name
	}
	s := &Set{Endpoints: true, Members: map[Member]bool{}}
	for _, p := range c.Pods {
		if !c.selects(namespace, peer, p) {
			continue
		}
		if n := named(p, port, protocol); n != 0 {
			for _, a := range c.addresses(p) {
				s.Members[Member{a, protocol, n}] = true
			}
		}
	}
	c.layout.Sets[name] = s
	return name
}

func matches(s *metav1.LabelSelector, l map[string]string) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && selector.Matches(labels.Set(l))
}
