package proxy

import (
	"log/slog"
	"net/netip"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/linux/conntrack"
)

// StaleFlows are the UDP flows that changes of endpoints made wrong: the kernel
// keeps sending them where they went first.
type StaleFlows struct {
	// By where clients send to; node ports have no address.
	fronts map[netip.AddrPort]*staleFront
}

type staleFront struct {
	gone   []netip.AddrPort // endpoints that no longer answer here
	opened bool             // there was no endpoint: flows that went nowhere
}

// Add compares a port before and after a change; either may be nil.
func (s *StaleFlows) Add(old, new *Port) {
	if old == nil || old.Name.Protocol != v1.ProtocolUDP {
		if old != nil || new == nil || new.Name.Protocol != v1.ProtocolUDP {
			return
		}
	}
	f := staleFront{opened: (old == nil || len(old.Cluster) == 0) && new != nil && len(new.Cluster) > 0}
	if old != nil {
		for _, e := range old.Cluster {
			if new == nil || !contains(new.Cluster, e) {
				f.gone = append(f.gone, e)
			}
		}
	}
	if len(f.gone) == 0 && !f.opened {
		return
	}
	if s.fronts == nil {
		s.fronts = map[netip.AddrPort]*staleFront{}
	}
	for _, p := range []*Port{old, new} {
		if p == nil {
			continue
		}
		for _, a := range slices.Concat([]netip.Addr{p.ClusterIP}, p.External, p.LoadBalancer) {
			s.fronts[netip.AddrPortFrom(a, p.Port)] = &f
		}
		if p.NodePort != 0 {
			s.fronts[netip.AddrPortFrom(netip.Addr{}, p.NodePort)] = &f
		}
	}
}

func contains(sorted []netip.AddrPort, e netip.AddrPort) bool {
	_, ok := slices.BinarySearchFunc(sorted, e, netip.AddrPort.Compare)
	return ok
}

func (s *StaleFlows) match(f conntrack.Flow) bool {
	if f.Proto != 17 {
		return false
	}
	front := s.fronts[f.Original]
	if front == nil {
		front = s.fronts[netip.AddrPortFrom(netip.Addr{}, f.Original.Port())]
	}
	return front != nil && (front.opened && f.Reply == f.Original || slices.Contains(front.gone, f.Reply))
}

// Remove removes them from the kernel and forgets them.
func (s *StaleFlows) Remove(track *conntrack.Conn, ipv6 bool, log *slog.Logger) {
	if len(s.fronts) == 0 {
		return
	}
	if _, err := track.Remove(ipv6, s.match); err != nil {
		log.Warn("UDP clients may keep sending to an endpoint that has gone", base.KeyError, err)
	}
	s.fronts = nil
}
