// Package crds installs the custom resource definitions of projects that many clusters
// have, as their modules bring them: cert-manager, the Gateway API and the Prometheus
// operator. All must be established and published, the projects' own examples accepted,
// and those that are wrong refused, by schemas and by rules in CEL.
//
// It is a Go module of its own, and fetches the others with the Go command when it
// runs: make crds.
package crds
