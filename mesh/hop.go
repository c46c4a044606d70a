package mesh

import "time"

// TypeHop is the type of a message that a sidecar sends on its stream of
// configuration about one of the first requests that were answered between two
// workloads: its one resource name is a Hop as JSON. Other control planes do not know the type and answer nothing.
const TypeHop = "type.periplus.io/mesh.Hop"

// A Hop is what a sidecar saw of a request. A sidecar sends at most MaxHops of them.
type Hop struct {
	// Inbound says that the request was for the pod itself.
	Inbound bool `json:"inbound,omitempty"`
	// Peer is the workload on the other side, Service what was called.
	Peer    string `json:"peer,omitempty"`
	Service string `json:"service,omitempty"`
	// Request is the X-Request-ID.
	Request  string `json:"request,omitempty"`
	Method   string `json:"method,omitempty"`
	Path     string `json:"path,omitempty"`
	Status   int    `json:"status"`
	Security string `json:"security,omitempty"` // mutual_tls, none, unknown

	Start    time.Time     `json:"start"`
	Duration time.Duration `json:"duration"`
	// Upstream is how long the endpoint took: of an inbound request the application.
	Upstream time.Duration `json:"upstream,omitempty"`
}

// MaxHops bounds what one sidecar tells of.
const MaxHops = 64
