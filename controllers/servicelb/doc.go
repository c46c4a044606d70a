// Package servicelb gives Services of type LoadBalancer addresses without a cloud:
// those of the nodes, where the service proxy answers on the Service's own ports.
//
//	externalTrafficPolicy Cluster: every ready node
//	externalTrafficPolicy Local:   ready nodes with a ready endpoint
//
// Two Services cannot have the same port of the same node: the older one keeps it,
// the other says so in an event until the port is free. Services with a
// loadBalancerClass other than ours are left to whoever has it.
package servicelb
