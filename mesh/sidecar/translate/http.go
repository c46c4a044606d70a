package translate

import (
	"fmt"
	"strings"
	"time"

	httprbac "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/mesh/telemetry"
)

func (s *State) http(e *listenerEntry, c *l7.FilterChain, body *anypb.Any, inbound bool) (*l7.HTTPConnectionManager, error) {
	m := &hcm.HttpConnectionManager{}
	if err := unmarshal(body, m); err != nil {
		return nil, err
	}
	out := &l7.HTTPConnectionManager{
		Observers: []l7.Observer{s.o.Observers(inbound)}, NormalizePath: m.GetNormalizePath().GetValue(), MergeSlashes: m.GetMergeSlashes(),
		IdleTimeout: m.GetCommonHttpProtocolOptions().GetIdleTimeout().AsDuration(), StreamIdleTimeout: -1,
	}
	if d := m.GetStreamIdleTimeout().AsDuration(); d > time.Duration(0) {
		out.StreamIdleTimeout = d
	}
	switch m.GetCodecType() {
	case hcm.HttpConnectionManager_HTTP1:
		out.Codec = l7.CodecHTTP1
	case hcm.HttpConnectionManager_HTTP2:
		out.Codec = l7.CodecHTTP2
	}
	for _, u := range m.GetUpgradeConfigs() {
		out.Upgrades = append(out.Upgrades, u.GetUpgradeType())
	}
	// Who the other side is, before anything can refuse: refusals are counted too.
	if inbound {
		out.Filters = append(out.Filters, s.peers.InboundPeer())
	} else {
		out.Filters = append(out.Filters, telemetry.OutboundPeer(s.o.Self, s.o.NodeID))
	}
	out.Filters = append(out.Filters, s.trace)
	for _, f := range m.GetHttpFilters() {
		switch strings.TrimPrefix(f.GetTypedConfig().GetTypeUrl(), prefixType) {
		case "envoy.extensions.filters.http.rbac.v3.RBAC":
			r := &httprbac.RBAC{}
			if err := unmarshal(f.GetTypedConfig(), r); err != nil {
				return nil, err
			}
			filter, err := access(r.GetRules())
			if err != nil {
				return nil, err
			}
			if filter != nil {
				out.Filters = append(out.Filters, filter)
			}
		case "envoy.extensions.filters.http.router.v3.Router",
			// These act where a route says so.
			"envoy.extensions.filters.http.fault.v3.HTTPFault", "envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit",
			"envoy.extensions.filters.http.cors.v3.Cors":
		default:
			return nil, fmt.Errorf("HTTP filter %s (%s) is not supported", f.GetName(), f.GetTypedConfig().GetTypeUrl())
		}
	}
	if r := m.GetRouteConfig(); r != nil {
		// Chains for the same port share the name: the chain makes it its own.
		name := "inline|" + e.listener.Name + "|" + c.Name
		made, err := s.routeConfiguration(r)
		if err != nil {
			return nil, err
		}
		e.inline[name] = made
		out.RouteConfig = name
		return out, nil
	}
	out.RouteConfig = m.GetRds().GetRouteConfigName()
	e.rds = append(e.rds, out.RouteConfig)
	return out, nil
}
