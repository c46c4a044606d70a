package translate

import (
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/periplus/periplus/l7"
)

// ErrPeer is returned for a peer whose identity is not of the mesh.
var ErrPeer = errors.New("the peer's identity is not accepted")

// secure sets the TLS of a cluster.
func (s *State) secure(c *l7.Cluster, m *cluster.Cluster) error {
	var err error
	if c.TLS, err = s.upstream(m.GetTransportSocket()); err != nil {
		return err
	}
	for _, t := range m.GetTransportSocketMatches() {
		match := l7.TransportMatch{Metadata: texts(t.GetMatch())}
		if match.TLS, err = s.upstream(t.GetTransportSocket()); err != nil {
			return fmt.Errorf("transport socket match %s: %w", t.GetName(), err)
		}
		c.TransportMatches = append(c.TransportMatches, match)
	}
	return nil
}

func typed(t *core.TransportSocket) bool {
	return t != nil && t.GetTypedConfig() != nil && !strings.HasSuffix(t.GetTypedConfig().GetTypeUrl(), ".RawBuffer")
}

func (s *State) upstream(t *core.TransportSocket) (*l7.UpstreamTLS, error) {
	if !typed(t) {
		return nil, nil
	}
	m := &tlsv3.UpstreamTlsContext{}
	if err := unmarshal(t.GetTypedConfig(), m); err != nil {
		return nil, err
	}
	common := m.GetCommonTlsContext()
	out := &l7.UpstreamTLS{ServerName: m.GetSni(), ALPN: common.GetAlpnProtocols()}
	if len(common.GetTlsCertificateSdsSecretConfigs()) > 0 {
		out.Certificates = s.o.Certificates
	}
	validation := common.GetValidationContext()
	if combined := common.GetCombinedValidationContext(); combined != nil {
		validation = combined.GetDefaultValidationContext()
		out.Roots = s.o.Roots
		// Of the mesh: without an identity that may be met, none is.
		out.SubjectAltNames = []string{"spiffe://none.invalid"}
	}
	out.Insecure = validation.GetTrustChainVerification() == tlsv3.CertificateValidationContext_ACCEPT_UNTRUSTED
	if names := validation.GetMatchTypedSubjectAltNames(); len(names) > 0 {
		out.SubjectAltNames = nil
		for _, n := range names {
			if v := n.GetMatcher().GetExact(); v != "" {
				out.SubjectAltNames = append(out.SubjectAltNames, v)
			}
		}
	}
	return out, nil
}

func (s *State) downstream(t *core.TransportSocket) (*l7.DownstreamTLS, error) {
	if !typed(t) {
		return nil, nil
	}
	m := &tlsv3.DownstreamTlsContext{}
	if err := unmarshal(t.GetTypedConfig(), m); err != nil {
		return nil, err
	}
	common := m.GetCommonTlsContext()
	out := &l7.DownstreamTLS{
		Certificates: s.o.Certificates, ALPN: common.GetAlpnProtocols(), RequireClient: m.GetRequireClientCertificate().GetValue(),
	}
	combined := common.GetCombinedValidationContext()
	if combined == nil {
		return out, nil
	}
	out.ClientRoots = rootsOf{s.o.Roots}
	var accepted []l7.StringMatch
	for _, n := range combined.GetDefaultValidationContext().GetMatchTypedSubjectAltNames() {
		match, err := stringMatch(n.GetMatcher())
		if err != nil {
			return nil, err
		}
		accepted = append(accepted, match)
	}
	if len(accepted) > 0 {
		out.Accept = func(p *l7.Peer) error {
			for i := range accepted {
				if accepted[i].Matches(p.URI) {
					return nil
				}
			}
			return fmt.Errorf("%w: %q", ErrPeer, p.URI)
		}
	}
	return out, nil
}

// rootsOf keeps nil out of an interface.
type rootsOf struct{ l7.RootSource }

// Roots implements l7.RootSource.
func (r rootsOf) Roots() (*x509.CertPool, error) { return r.RootSource.Roots() }
