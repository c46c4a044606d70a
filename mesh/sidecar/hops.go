package sidecar

import (
	"encoding/json"
	"sync"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/mesh"
	"github.com/periplus/periplus/mesh/telemetry"
)

// hops tells the control plane of the first requests that were answered from each
// workload and to each service. Telemetry calls it for the first few of a series of
// its metrics, so that it costs later requests nothing. While the control plane is away
// what there is to tell waits.
type hops struct {
	mu      sync.Mutex     // guards what follows
	told    map[string]int // by pair of workloads
	count   int
	waiting []string
	send    func(*discovery.DeltaDiscoveryRequest) error // nil: there is no stream
}

// ofPair is how many requests of a pair of workloads are told: the two sidecars may
// disagree about which was the first.
const ofPair = 4

// early notes one of the first requests with its labels.
func (h *hops) early(x *l7.Exchange, l *telemetry.Labels, inbound bool) {
	if x.Attempts == 0 || x.Response.Local || l.Code == 0 || l.Code >= 500 {
		return
	}
	peer, key := l.Destination.Name, "to "+l.Service+" "+l.Destination.Name
	if inbound {
		peer = l.Source.Name
		key = "from " + l.SourcePrincipal + " " + l.Source.Namespace + "/" + l.Source.Name
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.told[key] >= ofPair || h.count >= mesh.MaxHops {
		return
	}
	text, err := json.Marshal(mesh.Hop{
		Inbound: inbound, Peer: peer, Service: l.Service, Request: x.Request.Header.Get("x-request-id"), Method: x.Request.Method,
		Path: x.Request.PathOnly(), Status: l.Code, Security: l.Security,
		Start: x.Start, Duration: x.Duration, Upstream: x.UpstreamTime.Round(time.Microsecond),
	})
	if err != nil {
		return
	}
	if h.told == nil {
		h.told = map[string]int{}
	}
	h.told[key]++
	h.count++
	h.waiting = append(h.waiting, string(text))
	h.flushLocked()
}

// connected tells what waits, and from now on at once.
func (h *hops) connected(send func(*discovery.DeltaDiscoveryRequest) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.send = send
	h.flushLocked()
}

// disconnected makes the rest wait.
func (h *hops) disconnected() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.send = nil
}

func (h *hops) flushLocked() {
	for h.send != nil && len(h.waiting) > 0 {
		if h.send(&discovery.DeltaDiscoveryRequest{TypeUrl: mesh.TypeHop, ResourceNamesSubscribe: h.waiting[:1]}) != nil {
			h.send = nil // the stream has ended; its reader notices
			return
		}
		h.waiting = h.waiting[1:]
	}
}

// A lockedStream can be sent to by several goroutines.
type lockedStream struct {
	discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesClient
	mu sync.Mutex
}

// Send sends one request after the other.
func (s *lockedStream) Send(r *discovery.DeltaDiscoveryRequest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.AggregatedDiscoveryService_DeltaAggregatedResourcesClient.Send(r)
}
