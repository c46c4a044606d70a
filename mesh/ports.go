package mesh

// Ports of a sidecar and of the control plane.
const (
	// OutboundPort gets what the application sends.
	OutboundPort = 15001
	// InboundPort gets what is sent to the application.
	InboundPort = 15006
	// TunnelPort is that of HBONE; reserved.
	TunnelPort = 15008
	// DiscoveryPort is the control plane: xDS and certificates over TLS.
	DiscoveryPort = 15012
	// WebhookPort serves injection and validation to the API server of this machine.
	WebhookPort = 15017
	// StatusPort serves /stats/prometheus, /app-health/… and /healthz/ready.
	StatusPort = 15020
	// HealthPort serves /healthz/ready.
	HealthPort = 15021
	// DNSPort is where a sidecar would answer DNS; reserved.
	DNSPort = 15053
	// MetricsPort serves /stats/prometheus of the proxy alone.
	MetricsPort = 15090
)

// ProxyID is the user and the group of a sidecar: what it sends is not redirected.
const ProxyID = 1337

// PassthroughAddress is the source of what a sidecar hands to its application, so
// that it is told apart from what the application sends to itself.
const PassthroughAddress = "127.0.0.6"
