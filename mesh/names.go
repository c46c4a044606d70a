package mesh

import (
	"fmt"
	"strconv"
	"strings"
)

// Where the control plane lives.
const (
	// RootNamespace holds the authority, and the policies that are for all.
	RootNamespace = "istio-system"
	// ControlPlane is the Service that proxies connect to, in RootNamespace.
	ControlPlane = "istiod"
	// RootConfigMap has the authority's certificate, under RootKey, in each namespace of the mesh.
	RootConfigMap = "istio-ca-root-cert"
	RootKey       = "root-cert.pem"
	// Audience of the tokens with which a workload shows who it is.
	Audience = "istio-ca"
	// TrustDomain is the beginning of all identities.
	TrustDomain = "cluster.local"
)

// Labels and annotations.
const (
	// LabelInjection, with "enabled" or "disabled", is a namespace's.
	LabelInjection = "istio-injection"
	// LabelMesh, with "enabled", is another one for the same.
	LabelMesh = "periplus.io/mesh"
	// LabelInject, with "true" or "false", is a pod's; it may be an annotation too.
	LabelInject = "sidecar.istio.io/inject"
	// LabelTLS is "istio" on pods that can speak mutual TLS.
	LabelTLS = "security.istio.io/tlsMode"
	// TLSModeIstio is the value of LabelTLS, and of endpoints' metadata.
	TLSModeIstio = "istio"
	// LabelCanonicalName and LabelCanonicalRevision name a workload's service in metrics.
	LabelCanonicalName     = "service.istio.io/canonical-name"
	LabelCanonicalRevision = "service.istio.io/canonical-revision"
	// AnnotationStatus is on pods that have been given a sidecar.
	AnnotationStatus = "sidecar.istio.io/status"
)

// Clusters that exist in every proxy.
const (
	// PassthroughCluster goes where the client wanted to go.
	PassthroughCluster = "PassthroughCluster"
	// BlackHoleCluster goes nowhere.
	BlackHoleCluster = "BlackHoleCluster"
	// InboundPassthroughCluster is the application on a port of no Service.
	InboundPassthroughCluster = "InboundPassthroughCluster"
)

// Directions of a cluster.
const (
	Inbound  = "inbound"
	Outbound = "outbound"
)

// Images that sidecars are made of; the version is added.
const (
	// ProxyImage is the sidecar alone.
	ProxyImage = "periplus.io/sidecar"
	// WholeImage is all of peri, which can be a sidecar too, with more memory.
	WholeImage = "periplus.io/peri"
)

// Application protocols (ALPN) of mutual TLS between proxies.
const (
	ALPNTCP          = "istio"
	ALPNPeerExchange = "istio-peer-exchange"
	ALPNHTTP1        = "istio-http/1.1"
	ALPNHTTP10       = "istio-http/1.0"
	ALPNHTTP2        = "istio-h2"
)

// Metadata of clusters, endpoints and chains, for the sidecar's metrics.
const (
	// MetadataIstio is the filter metadata under which the following are.
	MetadataIstio = "istio"
	// MetadataWorkload of an endpoint is Workload.Short.
	MetadataWorkload = "workload"
	// MetadataTransport is the filter metadata that transport socket matches look at.
	MetadataTransport = "envoy.transport_socket_match"
	// MetadataTLSMode is the key in MetadataTransport.
	MetadataTLSMode = "tlsMode"
	// MetadataServices of a cluster is a list of host, name and namespace.
	MetadataServices = "services"
	// MetadataConfig of a route names the object that it comes from.
	MetadataConfig = "config"
)

// ClusterName is the name of a cluster: "outbound|80|v1|reviews.shop.svc.cluster.local".
func ClusterName(direction string, port int, subset, host string) string {
	return direction + "|" + strconv.Itoa(port) + "|" + subset + "|" + host
}

// ParseClusterName takes a ClusterName apart.
func ParseClusterName(name string) (direction string, port int, subset, host string, err error) {
	parts := strings.Split(name, "|")
	if len(parts) != 4 {
		return "", 0, "", "", fmt.Errorf("cluster name %q must be direction|port|subset|host", name)
	}
	port, err = strconv.Atoi(parts[1])
	if err != nil || port < 0 || port > 65535 {
		return "", 0, "", "", fmt.Errorf("cluster name %q: port %q must be a number up to 65535", name, parts[1])
	}
	return parts[0], port, parts[2], parts[3], nil
}

// ServerName is the server name (SNI) under which a cluster is asked for over mutual TLS.
func ServerName(port int, subset, host string) string {
	return "outbound_." + strconv.Itoa(port) + "_." + subset + "_." + host
}
