package pilot

import (
	"encoding/json"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/client/conditions"
	"github.com/periplus/periplus/journey"
	"github.com/periplus/periplus/mesh"
)

// maxHop bounds the message about a hop, in bytes.
const maxHop = 8 << 10

// pod is the pod of a stream; nil: there is none of its name.
func (p *Pilot) pod(s *session) *corev1.Pod {
	if s.proxy.pod == "" {
		return nil
	}
	pod, err := p.sources.pods.Pods(s.proxy.namespace).Get(s.proxy.pod)
	if err != nil {
		return nil
	}
	return pod
}

// accepted records that a proxy has taken its first configuration: once a stream,
// when it has acknowledged listeners, which come after clusters and endpoints.
func (p *Pilot) accepted(s *session, typ string) {
	if s.accepted || typ != typeListener || p.cfg.Journey == nil {
		return
	}
	s.accepted = true
	if pod := p.pod(s); pod != nil && !conditions.PodReady(pod) {
		p.cfg.Journey.Record(journey.Step("mesh", "xDS configuration accepted", "Pod", pod, s.began).With("proxy", s.proxy.id))
	}
}

// hop records what a sidecar says about the first request of a kind.
func (p *Pilot) hop(s *session, names []string) {
	if p.cfg.Journey == nil || len(names) != 1 || len(names[0]) > maxHop || s.hops >= mesh.MaxHops {
		return
	}
	s.hops++
	if s.caller != nil && s.caller.Pod != "" && s.caller.Pod != s.proxy.pod {
		return // nobody tells of others
	}
	var h mesh.Hop
	if err := json.Unmarshal([]byte(names[0]), &h); err != nil {
		p.cfg.Log.Debug("what a proxy says about a request cannot be read", base.KeyID, s.proxy.id, base.KeyError, err)
		return
	}
	pod := p.pod(s)
	if pod == nil || h.Start.IsZero() || h.Duration < 0 {
		return
	}
	// The sidecar's clock is its node's.
	var shift time.Duration
	if p.cfg.Shift != nil {
		shift = p.cfg.Shift(pod.Spec.NodeName)
	}
	step, hop, application := journey.FirstAnswer+" to "+h.Service, journey.HopClient, ""
	if h.Inbound {
		step, hop, application = journey.FirstAnswer+" from "+h.Peer, journey.HopServer, h.Upstream.String()
	}
	span := journey.Moment("sidecar", step, "Pod", pod, h.Start.Add(shift)).On(pod.Spec.NodeName).With(
		journey.AttrHop, hop, journey.AttrStatus, strconv.Itoa(h.Status), journey.AttrRequest, h.Request, "method", h.Method, "path", h.Path,
		"peer", h.Peer, "host", h.Service, "security", h.Security, journey.AttrApplication, application,
	)
	span.End, span.Skew = span.Start.Add(h.Duration), shift
	p.cfg.Journey.Record(span)
}
