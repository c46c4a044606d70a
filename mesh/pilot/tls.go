package pilot

import (
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"

	"github.com/periplus/periplus/mesh"
)

// Names of secrets: the proxy's own certificate, and the authority's.
const (
	secretOwn  = "default"
	secretRoot = "ROOTCA"
)

const (
	socketTLS = "envoy.transport_sockets.tls"
	socketRaw = "envoy.transport_sockets.raw_buffer"
)

func transport(m proto.Message) *core.TransportSocket {
	return &core.TransportSocket{Name: socketTLS, ConfigType: &core.TransportSocket_TypedConfig{TypedConfig: pack(m)}}
}

// sds names a secret that the proxy's own agent has: ours holds both in memory.
func sds(name string) *tlsv3.SdsSecretConfig {
	return &tlsv3.SdsSecretConfig{Name: name, SdsConfig: &core.ConfigSource{
		ResourceApiVersion: core.ApiVersion_V3,
		ConfigSourceSpecifier: &core.ConfigSource_ApiConfigSource{ApiConfigSource: &core.ApiConfigSource{
			ApiType: core.ApiConfigSource_GRPC, TransportApiVersion: core.ApiVersion_V3, SetNodeOnFirstMessageOnly: true,
			GrpcServices: []*core.GrpcService{{TargetSpecifier: &core.GrpcService_EnvoyGrpc_{EnvoyGrpc: &core.GrpcService_EnvoyGrpc{ClusterName: "sds-grpc"}}}},
		}},
	}}
}

// common is mutual TLS with the mesh's authority. names are those that the other side may have.
func common(alpn []string, names []*tlsv3.SubjectAltNameMatcher) *tlsv3.CommonTlsContext {
	return &tlsv3.CommonTlsContext{
		TlsParams:                      &tlsv3.TlsParameters{TlsMinimumProtocolVersion: tlsv3.TlsParameters_TLSv1_2},
		TlsCertificateSdsSecretConfigs: []*tlsv3.SdsSecretConfig{sds(secretOwn)},
		ValidationContextType: &tlsv3.CommonTlsContext_CombinedValidationContext{CombinedValidationContext: &tlsv3.CommonTlsContext_CombinedCertificateValidationContext{
			DefaultValidationContext:         &tlsv3.CertificateValidationContext{MatchTypedSubjectAltNames: names},
			ValidationContextSdsSecretConfig: sds(secretRoot),
		}},
		AlpnProtocols: alpn,
	}
}

// upstreamMutual is mutual TLS with the endpoints of a service.
func upstreamMutual(s *service, port int, subset string, proto protocol) *core.TransportSocket {
	alpn := []string{mesh.ALPNPeerExchange, mesh.ALPNTCP}
	switch proto {
	case protocolHTTP:
		alpn = []string{mesh.ALPNHTTP1}
	case protocolHTTP2:
		alpn = []string{mesh.ALPNHTTP2}
	}
	names := make([]*tlsv3.SubjectAltNameMatcher, 0, len(s.accounts))
	for _, a := range s.accounts {
		names = append(names, &tlsv3.SubjectAltNameMatcher{SanType: tlsv3.SubjectAltNameMatcher_URI, Matcher: exact(a)})
	}
	return transport(&tlsv3.UpstreamTlsContext{CommonTlsContext: common(alpn, names), Sni: mesh.ServerName(port, subset, s.host)})
}

// upstreamSimple is TLS as with any server of the Internet.
func upstreamSimple(sni string, names []string, insecure bool, proto protocol) *core.TransportSocket {
	validation := &tlsv3.CertificateValidationContext{}
	if insecure {
		validation.TrustChainVerification = tlsv3.CertificateValidationContext_ACCEPT_UNTRUSTED
	} else {
		validation.SystemRootCerts = &tlsv3.CertificateValidationContext_SystemRootCerts{}
	}
	for _, n := range names {
		validation.MatchTypedSubjectAltNames = append(validation.MatchTypedSubjectAltNames, &tlsv3.SubjectAltNameMatcher{SanType: tlsv3.SubjectAltNameMatcher_DNS, Matcher: exact(n)})
	}
	c := &tlsv3.CommonTlsContext{ValidationContextType: &tlsv3.CommonTlsContext_ValidationContext{ValidationContext: validation}}
	switch proto {
	case protocolHTTP:
		c.AlpnProtocols = []string{"http/1.1"}
	case protocolHTTP2:
		c.AlpnProtocols = []string{"h2"}
	}
	return transport(&tlsv3.UpstreamTlsContext{CommonTlsContext: c, Sni: sni})
}

// inboundALPN is what a server of the mesh agrees to.
var inboundALPN = []string{mesh.ALPNHTTP2, mesh.ALPNHTTP1, mesh.ALPNHTTP10, mesh.ALPNTCP, mesh.ALPNPeerExchange, "h2", "http/1.1", "http/1.0"}

// downstreamMutual is mutual TLS with any workload of the mesh.
func downstreamMutual() *core.TransportSocket {
	names := []*tlsv3.SubjectAltNameMatcher{{SanType: tlsv3.SubjectAltNameMatcher_URI, Matcher: prefix("spiffe://" + mesh.TrustDomain + "/")}}
	return transport(&tlsv3.DownstreamTlsContext{CommonTlsContext: common(inboundALPN, names), RequireClientCertificate: yes(true)})
}
