package iptables

import (
	"crypto/sha256"
	"encoding/base32"
	"net/netip"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/proxy"
)

// Chains that are always there.
const (
	chainServices    = "KUBE-SERVICES"
	chainNodePorts   = "KUBE-NODEPORTS"
	chainPostrouting = "KUBE-POSTROUTING"
	chainMarkMasq    = "KUBE-MARK-MASQ"
	chainExternal    = "KUBE-EXTERNAL-SERVICES"
	chainForward     = "KUBE-FORWARD"
	chainFirewall    = "KUBE-PROXY-FIREWALL"
)

// Prefixes of the chains of ports and endpoints.
const (
	prefixCluster  = "KUBE-SVC-" // endpoints anywhere
	prefixLocal    = "KUBE-SVL-" // endpoints on this node
	prefixExternal = "KUBE-EXT-" // clients from outside
	prefixSources  = "KUBE-FW-"  // clients of a load balancer's address
	prefixEndpoint = "KUBE-SEP-"
)

// portName is a port as comments and hashes have it: namespace/name:port.
func portName(n proxy.PortName) string {
	if n.Port == "" {
		return n.Namespace + "/" + n.Name
	}
	return n.Namespace + "/" + n.Name + ":" + n.Port
}

func protocol(p v1.Protocol) string { return strings.ToLower(string(p)) }

// chain names a port's chain.
func chain(prefix string, n proxy.PortName) string {
	return prefix + hash(portName(n)+protocol(n.Protocol))
}

func endpointChain(n proxy.PortName, e netip.AddrPort) string {
	return prefixEndpoint + hash(portName(n)+protocol(n.Protocol)+e.String())
}

// hash is short enough for a chain's name, which may have 28 characters.
func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return base32.StdEncoding.EncodeToString(sum[:])[:16]
}
