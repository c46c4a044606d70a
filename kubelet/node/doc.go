// Package node keeps a node's own object and lease in the API.
//
//	register ─► podCIDR arrives ─► UpdateRuntimeConfig ─► runtime ready ─► Ready=True
//	   │
//	   └─ lease every 10 s; status when something changed, else every 5 min
//
// Everything is driven by the node's informer, the runtime's answers and Changed;
// only while the runtime is not ready is it asked again, ever more rarely.
package node
