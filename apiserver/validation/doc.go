// Package validation holds the rules that several kinds share: names, ports,
// labels, quantities, pods and pod templates. Rules of a single kind are in its
// file below apiserver/registry.
//
// Errors carry upstream's field paths and wording, which people search for and
// tools match on; even its odd paths are kept. What is checked by generic code
// for every kind (ValidateObjectMeta) is not repeated here.
//
//	pod.go        what may change in a pod, statuses
//	podspec.go    the pod spec from the top
//	container.go  containers, ports, mounts; with env.go and probe.go
//	volumes*.go   volume sources; claims.go those of persistent volumes
//	resources.go  requests, limits, quantities
//	security.go   security contexts
//	scheduling.go affinity, tolerations, topology spread
package validation
