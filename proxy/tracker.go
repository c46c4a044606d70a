package proxy

import (
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A tracker holds what the informers said and works out what that changes. It
// has no goroutine and no lock.
type tracker struct {
	node string
	ipv6 bool

	services map[types.NamespacedName]*tracked
	dirty    map[types.NamespacedName]struct{}
}

// tracked is one Service with its slices and the ports that were last handed out.
type tracked struct {
	service *v1.Service
	slices  map[string]*discoveryv1.EndpointSlice
	ports   []*Port

	// The first event since the last take, and the slice that it was about: for
	// the journey.
	since time.Time
	slice *discoveryv1.EndpointSlice
}

// A round is what one take gives: updates, and the objects that caused them.
type round struct {
	updates []Update
	causes  []cause
}

type cause struct {
	service *v1.Service // nil when it has gone
	slice   *discoveryv1.EndpointSlice
	since   time.Time
	ready   int // endpoints after it
}

func newTracker(node string, ipv6 bool) *tracker {
	return &tracker{
		node: node, ipv6: ipv6,
		services: map[types.NamespacedName]*tracked{},
		dirty:    map[types.NamespacedName]struct{}{},
	}
}

func (t *tracker) get(key types.NamespacedName, now time.Time) *tracked {
	s := t.services[key]
	if s == nil {
		s = &tracked{slices: map[string]*discoveryv1.EndpointSlice{}}
		t.services[key] = s
	}
	if s.since.IsZero() {
		s.since = now
	}
	t.dirty[key] = struct{}{}
	return s
}

func (t *tracker) setService(svc *v1.Service, now time.Time) {
	t.get(types.NamespacedName{Namespace: svc.Namespace, Name: svc.Name}, now).service = svc
}

func (t *tracker) deleteService(key types.NamespacedName, now time.Time) {
	t.get(key, now).service = nil
}

// owner returns the Service that a slice belongs to.
func owner(s *discoveryv1.EndpointSlice) (types.NamespacedName, bool) {
	name := s.Labels[discoveryv1.LabelServiceName]
	return types.NamespacedName{Namespace: s.Namespace, Name: name}, name != ""
}

func (t *tracker) setSlice(s *discoveryv1.EndpointSlice, now time.Time) {
	key, ok := owner(s)
	if !ok {
		return
	}
	tr := t.get(key, now)
	tr.slices[s.Name] = s
	tr.slice = s
}

func (t *tracker) deleteSlice(s *discoveryv1.EndpointSlice, now time.Time) {
	key, ok := owner(s)
	if !ok {
		return
	}
	delete(t.get(key, now).slices, s.Name)
}

// take compiles the Services that were touched and returns what has changed.
func (t *tracker) take() round {
	var r round
	for key := range t.dirty {
		s := t.services[key]
		list := make([]*discoveryv1.EndpointSlice, 0, len(s.slices))
		for _, sl := range s.slices {
			list = append(list, sl)
		}
		slices.SortFunc(list, func(a, b *discoveryv1.EndpointSlice) int { return strings.Compare(a.Name, b.Name) })
		ports := Compile(s.service, list, t.node, t.ipv6)
		if n := len(r.updates); len(diff(&r, s.ports, ports)) > n {
			c := cause{service: s.service, slice: s.slice, since: s.since}
			for _, p := range ports {
				c.ready = max(c.ready, len(p.Cluster))
			}
			r.causes = append(r.causes, c)
		}
		s.ports, s.since, s.slice = ports, time.Time{}, nil
		if s.service == nil && len(s.slices) == 0 {
			delete(t.services, key)
		}
	}
	clear(t.dirty)
	return r
}

// diff appends to r what leads from old to new.
func diff(r *round, old, new []*Port) []Update {
	for _, o := range old {
		if byName(new, o.Name) == nil {
			r.updates = append(r.updates, Update{Name: o.Name})
		}
	}
	for _, n := range new {
		if !n.Equal(byName(old, n.Name)) {
			r.updates = append(r.updates, Update{Name: n.Name, Port: n})
		}
	}
	return r.updates
}

func byName(ports []*Port, name PortName) *Port {
	for _, p := range ports {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// all returns every port as of the last take.
func (t *tracker) all() []*Port {
	var out []*Port
	for _, s := range t.services {
		out = append(out, s.ports...)
	}
	return out
}
