package pilot

import (
	"maps"
	"time"

	"github.com/periplus/periplus/mesh"
)

// A session is what one stream has asked for and been sent. It is used by the
// stream's goroutine alone.
type session struct {
	pilot *Pilot
	proxy *proxy
	subs  map[string]*subscription

	caller   *mesh.Caller // nil: not asked for
	began    time.Time    // of the stream
	accepted bool         // the journey of the pod knows
	hops     int          // how many it has told of

	// inbound is what was made for this proxy alone, from the views and labels of then.
	inbound struct {
		views     *views
		labels    string
		clusters  resources
		listeners resources
	}
}

// A subscription is one type.
type subscription struct {
	wildcard bool
	names    map[string]bool
	sent     map[string]string // versions by name
	nonce    string
}

func (s *session) subscription(typ string) *subscription {
	sub := s.subs[typ]
	if sub == nil {
		sub = &subscription{names: map[string]bool{}, sent: map[string]string{}}
		s.subs[typ] = sub
	}
	return sub
}

// resources returns what of a type a proxy sees now: all of it, or what it has named.
func (s *session) resources(w *World, typ string, sub *subscription) resources {
	if s.proxy.proxyless {
		return s.proxylessResources(w, typ, sub)
	}
	var all resources
	switch typ {
	case typeCluster:
		own, _ := s.own(w)
		all = merge(w.viewFor(s.proxy).clusters, own)
	case typeListener:
		_, own := s.own(w)
		all = merge(w.viewFor(s.proxy).listeners, own)
	case typeRoute:
		all = w.viewFor(s.proxy).routes
	case typeEndpoint:
		out := resources{}
		for name := range sub.names {
			out[name] = w.assignmentFor(name, s.proxy.namespace)
		}
		return out
	}
	if sub.wildcard {
		return all
	}
	out := resources{}
	for name := range sub.names {
		if r := all[name]; r != nil {
			out[name] = r
		}
	}
	return out
}

// own makes the inbound side anew if what it is made from has changed.
func (s *session) own(w *World) (clusters, listeners resources) {
	labels := canonical(s.proxy.labels)
	if s.inbound.views != w.views || s.inbound.labels != labels {
		s.inbound.views, s.inbound.labels = w.views, labels
		s.inbound.clusters = w.inboundClusters(s.proxy)
		s.inbound.listeners = resources{}
		s.inbound.listeners.add(virtualInbound, w.inbound(s.proxy))
	}
	return s.inbound.clusters, s.inbound.listeners
}

func merge(a, b resources) resources {
	out := make(resources, len(a)+len(b))
	maps.Copy(out, a)
	maps.Copy(out, b)
	return out
}

func (s *session) proxylessResources(w *World, typ string, sub *subscription) resources {
	g := &generator{world: w, namespace: s.proxy.namespace, labels: s.proxy.labels, proxyless: true}
	out := resources{}
	for name := range sub.names {
		var r *resource
		switch typ {
		case typeListener:
			r = w.proxylessListener(name, s.proxy.namespace)
		case typeRoute:
			r = w.proxylessRoute(g, name)
		case typeCluster:
			r = w.proxylessCluster(g, name)
		case typeEndpoint:
			r = w.assignmentFor(name, s.proxy.namespace)
		}
		if r != nil {
			out[name] = r
		}
	}
	return out
}

// diff is what differs from what was sent. It is taken as sent.
func (s *session) diff(w *World, typ string, sub *subscription) (all, changed resources, removed []string) {
	all = s.resources(w, typ, sub)
	changed = resources{}
	for name, r := range all {
		if sub.sent[name] != r.version {
			changed[name] = r
			sub.sent[name] = r.version
		}
	}
	for name := range sub.sent {
		if all[name] == nil {
			removed = append(removed, name)
			delete(sub.sent, name)
		}
	}
	if typ == typeCluster {
		// A cluster that has changed waits for endpoints before it is used.
		if e := s.subs[typeEndpoint]; e != nil {
			for name := range changed {
				delete(e.sent, name)
			}
		}
	}
	return all, changed, removed
}
