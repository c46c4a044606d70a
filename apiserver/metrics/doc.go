// Package metrics answers metrics.k8s.io/v1beta1, what nodes and pods use at the
// moment, in the place of metrics-server: for kubectl top and for autoscaling.
//
//	get, list ── which nodes? ── kubelets: GET /metrics/resource, in parallel ── two readings ── rates
//
// Nothing is collected while nobody asks. The first who asks waits a second, for a
// rate of processor time takes two readings; whoever asks again within two minutes
// gets the rate since the last reading, and within ten seconds the same answer. Only
// the kubelets of the nodes that the answer is about are asked. A node that does not
// answer is missing from it, as are its pods.
//
// A cluster may bring a metrics-server of its own: when an APIService hands the
// group to a Service, whoever serves APIServices removes these resources from the
// server (rest.Server.Remove of what Resources made) and adds them when it has gone.
// The rules about figures (which pods, what times, which window) are metrics-server's.
package metrics
