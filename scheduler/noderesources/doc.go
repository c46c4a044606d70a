// Package noderesources has the plug-ins about requests and what nodes can offer:
//
//   - NodeResourcesFit (fit.go) filters nodes that lack what a pod requests, and
//     prefers those with the greatest share left (strategy.go; also MostAllocated and
//     RequestedToCapacityRatio);
//   - NodeResourcesBalancedAllocation (balanced.go) prefers nodes whose CPU and memory
//     are used to the same degree once the pod is there.
package noderesources
