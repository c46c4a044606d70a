// Package iptables is the proxy backend over iptables, with the chains that
// people know from kube-proxy:
//
//	nat     PREROUTING, OUTPUT ─▶ KUBE-SERVICES ─ cluster IP ────────────▶ KUBE-SVC-…
//	                                   ├─ external, load balancer IP ─▶ KUBE-EXT-… ─▶ KUBE-SVC-… or KUBE-SVL-… (local)
//	                                   └─ local address ─▶ KUBE-NODEPORTS ─▶ KUBE-EXT-…
//	        KUBE-SVC-… ─ statistic, probability 1/n ─▶ KUBE-SEP-… ─▶ DNAT
//	        POSTROUTING ─▶ KUBE-POSTROUTING: masquerade what KUBE-MARK-MASQ marked (0x4000)
//	filter  INPUT, FORWARD, OUTPUT ─▶ KUBE-PROXY-FIREWALL, KUBE-EXTERNAL-SERVICES, KUBE-SERVICES, KUBE-FORWARD:
//	        source ranges, ports without endpoints
//
// The names of the chains are upstream's: a hash of the port's name and protocol,
// and of the endpoint for KUBE-SEP. A port is one block of chains (port.go, pure);
// a change rewrites the blocks that changed and the chains that name all ports,
// in one transaction a table.
//
// A connection to a Service passes one rule a Service until its own is found, so
// nftables is the better choice unless other software expects these chains.
package iptables
