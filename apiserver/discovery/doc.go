// Package discovery tells clients which groups, versions and resources are
// served: the classic documents (/api, /apis, /apis/<group>, …/<version>) and
// the aggregated one (apidiscovery.k8s.io/v2). Documents are made on demand
// from the resources of the moment, and from a Table that the aggregation layer
// keeps: the order of groups and what extension API servers serve.
package discovery
