package translate

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	netrbac "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/rbac/v3"
	tcpproxy "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"

	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/mesh/telemetry"
)

const prefixType = "type.googleapis.com/"

// everywhere makes a chain one that asks for the original destination.
var everywhere = []netip.Prefix{netip.PrefixFrom(netip.IPv4Unspecified(), 0), netip.PrefixFrom(netip.IPv6Unspecified(), 0)}

func (s *State) listener(m *listener.Listener) (*listenerEntry, error) {
	address := m.GetAddress().GetSocketAddress()
	if address == nil {
		return nil, fmt.Errorf("listener %s has no socket address", m.GetName())
	}
	l := &l7.Listener{
		Name: m.GetName(), Address: net.JoinHostPort(address.GetAddress(), strconv.Itoa(int(address.GetPortValue()))),
		Virtual: m.GetBindToPort() != nil && !m.GetBindToPort().GetValue(), HandOff: m.GetUseOriginalDst().GetValue(),
		Direction: "outbound",
	}
	inbound := m.GetTrafficDirection() == core.TrafficDirection_INBOUND
	if inbound {
		l.Direction = "inbound"
	}
	e := &listenerEntry{listener: l, inline: map[string]*l7.RouteConfiguration{}}
	for _, c := range m.GetFilterChains() {
		made, err := s.chain(e, c, inbound)
		if err != nil {
			return nil, fmt.Errorf("filter chain %s: %w", c.GetName(), err)
		}
		if inbound && made.Match.DestinationPort == 0 && len(made.Match.Destinations) == 0 {
			made.Match.Destinations = everywhere
		}
		l.Chains = append(l.Chains, made)
	}
	if c := m.GetDefaultFilterChain(); c != nil {
		made, err := s.chain(e, c, inbound)
		if err != nil {
			return nil, fmt.Errorf("default filter chain: %w", err)
		}
		l.Default = made
	}
	return e, nil
}

func (s *State) chain(e *listenerEntry, m *listener.FilterChain, inbound bool) (*l7.FilterChain, error) {
	out := &l7.FilterChain{Name: m.GetName()}
	fm := m.GetFilterChainMatch()
	out.Match = l7.ChainMatch{
		DestinationPort: uint16(fm.GetDestinationPort().GetValue()), ServerNames: fm.GetServerNames(),
		Transport: fm.GetTransportProtocol(), ApplicationProtocols: fm.GetApplicationProtocols(),
	}
	var err error
	if out.Match.Destinations, err = prefixes(fm.GetPrefixRanges()); err != nil {
		return nil, err
	}
	if out.Match.Sources, err = prefixes(fm.GetSourcePrefixRanges()); err != nil {
		return nil, err
	}
	if out.TLS, err = s.downstream(m.GetTransportSocket()); err != nil {
		return nil, err
	}
	for _, f := range m.GetFilters() {
		body := f.GetTypedConfig()
		switch strings.TrimPrefix(body.GetTypeUrl(), prefixType) {
		case "envoy.extensions.filters.network.rbac.v3.RBAC":
			r := &netrbac.RBAC{}
			if err := unmarshal(body, r); err != nil {
				return nil, err
			}
			filter, err := access(r.GetRules())
			if err != nil {
				return nil, err
			}
			if filter != nil {
				out.Connection = append(out.Connection, filter)
			}
		case "envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy":
			t := &tcpproxy.TcpProxy{}
			if err := unmarshal(body, t); err != nil {
				return nil, err
			}
			out.TCP = s.tcp(e, t, inbound)
		case "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager":
			if out.HTTP, err = s.http(e, out, body, inbound); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("network filter %s (%s) is not supported", f.GetName(), body.GetTypeUrl())
		}
	}
	return out, nil
}

func (s *State) tcp(e *listenerEntry, t *tcpproxy.TcpProxy, inbound bool) *l7.TCPProxy {
	out := &l7.TCPProxy{
		IdleTimeout: t.GetIdleTimeout().AsDuration(), ConnectAttempts: int(t.GetMaxConnectAttempts().GetValue()),
		Observers: []l7.ConnectionObserver{s.o.Observers(inbound)},
	}
	if name := t.GetCluster(); name != "" {
		e.tcp = append(e.tcp, name)
		out.Cluster = telemetry.TCPPrefix + name
	}
	for _, w := range t.GetWeightedClusters().GetClusters() {
		e.tcp = append(e.tcp, w.GetName())
		out.Weighted = append(out.Weighted, l7.WeightedCluster{Name: telemetry.TCPPrefix + w.GetName(), Weight: w.GetWeight()})
	}
	return out
}

func prefixes(list []*core.CidrRange) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, r := range list {
		p, err := prefixOf(r)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

func prefixOf(r *core.CidrRange) (netip.Prefix, error) {
	a, err := netip.ParseAddr(r.GetAddressPrefix())
	if err != nil {
		return netip.Prefix{}, err
	}
	return a.Prefix(int(r.GetPrefixLen().GetValue()))
}
