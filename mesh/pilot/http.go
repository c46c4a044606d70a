package pilot

import (
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	corsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	faultv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/local_ratelimit/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Names of HTTP filters: the keys of what a route says to them.
const (
	filterCORS      = "envoy.filters.http.cors"
	filterFault     = "envoy.filters.http.fault"
	filterRateLimit = "envoy.filters.http.local_ratelimit"
	filterRBAC      = "envoy.filters.http.rbac"
	filterRouter    = "envoy.filters.http.router"
)

// httpFilterChain is an HTTP connection manager with the routes of that name, or with
// routes of its own, and with filters before the usual ones.
func httpFilterChain(stat, routes string, own *routev3.RouteConfiguration, first []*hcm.HttpFilter) *listenerv3.Filter {
	m := &hcm.HttpConnectionManager{
		StatPrefix:        stat,
		CodecType:         hcm.HttpConnectionManager_AUTO,
		StreamIdleTimeout: durationpb.New(0),
		UseRemoteAddress:  yes(false),
		GenerateRequestId: yes(true),
		UpgradeConfigs:    []*hcm.HttpConnectionManager_UpgradeConfig{{UpgradeType: "websocket"}},
		NormalizePath:     yes(true),
	}
	m.HttpFilters = append(m.HttpFilters, first...)
	if own != nil {
		m.RouteSpecifier = &hcm.HttpConnectionManager_RouteConfig{RouteConfig: own}
	} else {
		m.RouteSpecifier = &hcm.HttpConnectionManager_Rds{Rds: &hcm.Rds{ConfigSource: ads(), RouteConfigName: routes}}
		m.HttpFilters = append(m.HttpFilters, httpFilter(filterCORS, &corsv3.Cors{}), httpFilter(filterFault, &faultv3.HTTPFault{}), httpFilter(filterRateLimit, &ratelimitv3.LocalRateLimit{StatPrefix: "http_local_rate_limiter"}))
	}
	m.HttpFilters = append(m.HttpFilters, httpFilter(filterRouter, &routerv3.Router{}))
	return networkFilter("envoy.filters.network.http_connection_manager", m)
}

func httpFilter(name string, m proto.Message) *hcm.HttpFilter {
	return &hcm.HttpFilter{Name: name, ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: pack(m)}}
}
