package validate

import (
	networking "istio.io/api/networking/v1alpha3"

	"github.com/periplus/periplus/mesh/config"
)

// DestinationRule checks policies for a host.
func DestinationRule(d *config.DestinationRule) error {
	var m mistakes
	m.add(wildcardHost(d.Spec.GetHost()))
	trafficPolicy(&m, d.Spec.GetTrafficPolicy())
	seen := map[string]bool{}
	for _, s := range d.Spec.GetSubsets() {
		if s == nil {
			m.addf("subset may not be null")
			continue
		}
		m.add(subset(s.GetName()))
		if seen[s.GetName()] {
			m.addf("duplicate subset names: %s", s.GetName())
		}
		seen[s.GetName()] = true
		m.add(labels(s.GetLabels()))
		trafficPolicy(&m, s.GetTrafficPolicy())
	}
	return m.err()
}

func trafficPolicy(m *mistakes, p *networking.TrafficPolicy) {
	if p == nil {
		return
	}
	if p.OutlierDetection == nil && p.ConnectionPool == nil && p.LoadBalancer == nil && p.Tls == nil && p.PortLevelSettings == nil && p.Tunnel == nil && p.ProxyProtocol == nil {
		m.addf("traffic policy must have at least one field")
		return
	}
	outlierDetection(m, p.GetOutlierDetection())
	connectionPool(m, p.GetConnectionPool())
	loadBalancer(m, p.GetLoadBalancer())
	clientTLS(m, p.GetTls())
	for _, l := range p.GetPortLevelSettings() {
		if l.GetPort() == nil {
			m.addf("portTrafficPolicy must have valid port")
		} else {
			m.add(port(l.GetPort().GetNumber()))
		}
		outlierDetection(m, l.GetOutlierDetection())
		connectionPool(m, l.GetConnectionPool())
		loadBalancer(m, l.GetLoadBalancer())
		clientTLS(m, l.GetTls())
	}
}

func outlierDetection(m *mistakes, o *networking.OutlierDetection) {
	if o == nil {
		return
	}
	m.add(duration(o.GetBaseEjectionTime()))
	if !o.GetSplitExternalLocalOriginErrors() && o.GetConsecutiveLocalOriginFailures().GetValue() > 0 {
		m.addf("outlier detection consecutive local origin failures is specified, but split external local origin errors is set to false")
	}
	m.add(duration(o.GetInterval()))
	m.add(percent(o.GetMaxEjectionPercent()))
	m.add(percent(o.GetMinHealthPercent()))
}

func connectionPool(m *mistakes, c *networking.ConnectionPoolSettings) {
	if c == nil {
		return
	}
	if c.GetHttp() == nil && c.GetTcp() == nil {
		m.addf("connection pool must have at least one field")
		return
	}
	for _, n := range []struct {
		value int32
		name  string
	}{
		{c.GetHttp().GetHttp1MaxPendingRequests(), "http1 max pending requests"}, {c.GetHttp().GetHttp2MaxRequests(), "http2 max requests"},
		{c.GetHttp().GetMaxRequestsPerConnection(), "max requests per connection"}, {c.GetHttp().GetMaxRetries(), "max retries"},
		{c.GetTcp().GetMaxConnections(), "max connections"},
	} {
		if n.value < 0 {
			m.addf("%s must be non-negative", n.name)
		}
	}
	m.add(duration(c.GetHttp().GetIdleTimeout()))
	m.add(duration(c.GetTcp().GetConnectTimeout()))
	m.add(duration(c.GetTcp().GetIdleTimeout()))
}

func loadBalancer(m *mistakes, l *networking.LoadBalancerSettings) {
	if c := l.GetConsistentHash().GetHttpCookie(); c != nil && c.GetName() == "" {
		m.addf("name required for HttpCookie")
	}
}

func clientTLS(m *mistakes, t *networking.ClientTLSSettings) {
	if t == nil {
		return
	}
	switch t.GetMode() {
	case networking.ClientTLSSettings_MUTUAL:
		if t.GetCredentialName() == "" && t.GetClientCertificate() == "" {
			m.addf("client certificate required for mutual tls")
		}
		if t.GetCredentialName() == "" && t.GetPrivateKey() == "" {
			m.addf("private key required for mutual tls")
		}
	case networking.ClientTLSSettings_ISTIO_MUTUAL:
		if t.GetClientCertificate() != "" || t.GetPrivateKey() != "" || t.GetCaCertificates() != "" {
			m.addf("mode ISTIO_MUTUAL: certificates must not be set")
		}
	}
}
