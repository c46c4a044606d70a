package pilot

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// A protocol is what is spoken on a port.
type protocol int

const (
	// protocolAuto looks at the first bytes.
	protocolAuto protocol = iota
	protocolTCP
	protocolHTTP
	protocolHTTP2
	protocolUDP
)

func (p protocol) http() bool { return p == protocolHTTP || p == protocolHTTP2 }

// serverFirst are ports on which clients wait for the server to speak: looking at
// the first bytes would only cost time.
var serverFirst = map[int32]bool{25: true, 587: true, 3306: true, 27017: true}

// protocolOf chooses by appProtocol, then by the name's part before the dash.
func protocolOf(p *corev1.ServicePort) protocol {
	if p.Protocol == corev1.ProtocolUDP || p.Protocol == corev1.ProtocolSCTP {
		return protocolUDP
	}
	name := p.Name
	if !strings.HasPrefix(name, "grpc-web") {
		name, _, _ = strings.Cut(name, "-")
	}
	if p.AppProtocol != nil && *p.AppProtocol != "" {
		name = *p.AppProtocol
	}
	switch strings.ToLower(name) {
	case "http", "grpc-web", "kubernetes.io/ws": // grpc-web is HTTP/1.1
		return protocolHTTP
	case "http2", "grpc", "kubernetes.io/h2c":
		return protocolHTTP2
	case "tcp", "tls", "https", "mongo", "mysql", "redis", "postgres", "kubernetes.io/wss":
		return protocolTCP
	case "udp":
		return protocolUDP
	}
	if serverFirst[p.Port] {
		return protocolTCP
	}
	return protocolAuto
}
