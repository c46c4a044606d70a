package dns

import (
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/tools/cache"
)

// An index holds the Services and their EndpointSlices by the names that are
// asked for. Events change it one object at a time; a query takes a read lock
// for one map access.
//
//	services["web.default"] ── service ─┬─ object, slices   (shared with the informers)
//	                                    └─ view             (records; nil after a change)
//	clusterIPs[10.43.0.7]   ── service
//	endpoints[10.42.1.3]    ── slice of a service           (only once reverse lookups ask)
type index struct {
	zone string // with a dot at the end

	serial atomic.Uint32 // seconds of the last change, for the SOA record

	mu         sync.RWMutex // guards what follows
	services   map[string]*service
	namespaces map[string]int // Services in each namespace
	clusterIPs map[netip.Addr]*service
	// endpoints is nil until the first reverse lookup of an address that is no
	// cluster IP: most clusters never do one, and it has an entry per pod.
	endpoints map[netip.Addr][]*slice
}

// service is one Service name: the object, its slices, or both.
type service struct {
	namespace, name string
	object          *v1.Service // nil while there are only slices
	slices          map[string]*slice
	view            atomic.Pointer[view] // nil after each change
}

// slice is one EndpointSlice; object is replaced by updates.
type slice struct {
	of     *service
	object *discoveryv1.EndpointSlice
}

func newIndex(zone string) *index {
	return &index{
		zone:       zone,
		services:   map[string]*service{},
		namespaces: map[string]int{},
		clusterIPs: map[netip.Addr]*service{},
	}
}

// get returns the records of "name.namespace", nil when there is no such Service.
func (x *index) get(key string) *view {
	x.mu.RLock()
	defer x.mu.RUnlock()
	s := x.services[key]
	if s == nil || s.object == nil {
		return nil
	}
	return x.viewLocked(s)
}

// viewLocked returns a service's records. Two queries may make them at the same
// time; they are the same.
func (x *index) viewLocked(s *service) *view {
	v := s.view.Load()
	if v == nil {
		ends := make([]*discoveryv1.EndpointSlice, 0, len(s.slices))
		for _, sl := range s.slices {
			ends = append(ends, sl.object)
		}
		v = newView(x.zone, s.object, ends)
		s.view.Store(v)
	}
	return v
}

// hasNamespace says whether a namespace has a Service.
func (x *index) hasNamespace(name string) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.namespaces[name] > 0
}

// names returns what an address is called: the Service with this cluster IP,
// else the ready endpoints.
func (x *index) names(a netip.Addr) []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if s := x.clusterIPs[a]; s != nil {
		return []string{x.viewLocked(s).fqdn}
	}
	if x.endpoints == nil {
		x.mu.RUnlock()
		x.indexEndpoints()
		x.mu.RLock()
	}
	var out []string
	for _, sl := range x.endpoints[a] {
		if sl.of.object == nil {
			continue
		}
		for e := range readyEndpoints(sl.object) {
			if e.addr != a {
				continue
			}
			name := e.host + "." + x.viewLocked(sl.of).fqdn
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	slices.Sort(out)
	return out
}

func (x *index) indexEndpoints() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.endpoints != nil {
		return
	}
	x.endpoints = map[netip.Addr][]*slice{}
	for _, s := range x.services {
		for _, sl := range s.slices {
			x.addEndpointsLocked(sl)
		}
	}
}

func (x *index) addEndpointsLocked(sl *slice) {
	if x.endpoints == nil {
		return
	}
	for a := range addresses(sl.object) {
		if list := x.endpoints[a]; !slices.Contains(list, sl) {
			x.endpoints[a] = append(list, sl)
		}
	}
}

func (x *index) removeEndpointsLocked(sl *slice) {
	if x.endpoints == nil {
		return
	}
	for a := range addresses(sl.object) {
		list := slices.DeleteFunc(x.endpoints[a], func(o *slice) bool { return o == sl })
		if len(list) == 0 {
			delete(x.endpoints, a)
		} else {
			x.endpoints[a] = list
		}
	}
}

// changedLocked makes the next query make records anew.
func (x *index) changedLocked(s *service) {
	s.view.Store(nil)
	x.serial.Store(uint32(time.Now().Unix()))
}

func (x *index) serviceLocked(namespace, name string) *service {
	key := name + "." + namespace
	s := x.services[key]
	if s == nil {
		s = &service{namespace: namespace, name: name, slices: map[string]*slice{}}
		x.services[key] = s
	}
	return s
}

func (x *index) forgetLocked(s *service) {
	if s.object == nil && len(s.slices) == 0 {
		delete(x.services, s.name+"."+s.namespace)
	}
}

func (x *index) setService(o *v1.Service) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.serviceLocked(o.Namespace, o.Name)
	if s.object == nil {
		x.namespaces[o.Namespace]++
	} else {
		x.removeClusterIPsLocked(s)
	}
	s.object = o
	for a := range clusterIPs(o) {
		x.clusterIPs[a] = s
	}
	x.changedLocked(s)
}

func (x *index) deleteService(namespace, name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.services[name+"."+namespace]
	if s == nil || s.object == nil {
		return
	}
	x.removeClusterIPsLocked(s)
	s.object = nil
	if x.namespaces[namespace]--; x.namespaces[namespace] == 0 {
		delete(x.namespaces, namespace)
	}
	x.changedLocked(s)
	x.forgetLocked(s)
}

// removeClusterIPsLocked leaves an address alone that another Service has got in
// the meantime.
func (x *index) removeClusterIPsLocked(s *service) {
	for a := range clusterIPs(s.object) {
		if x.clusterIPs[a] == s {
			delete(x.clusterIPs, a)
		}
	}
}

func (x *index) setSlice(o *discoveryv1.EndpointSlice) {
	owner := o.Labels[discoveryv1.LabelServiceName]
	if owner == "" {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.serviceLocked(o.Namespace, owner)
	sl := s.slices[o.Name]
	if sl == nil {
		sl = &slice{of: s}
		s.slices[o.Name] = sl
	} else {
		x.removeEndpointsLocked(sl)
	}
	sl.object = o
	x.addEndpointsLocked(sl)
	x.changedLocked(s)
}

func (x *index) deleteSlice(o *discoveryv1.EndpointSlice) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.services[o.Labels[discoveryv1.LabelServiceName]+"."+o.Namespace]
	if s == nil || s.slices[o.Name] == nil {
		return
	}
	x.removeEndpointsLocked(s.slices[o.Name])
	delete(s.slices, o.Name)
	x.changedLocked(s)
	x.forgetLocked(s)
}

func (x *index) serviceHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { x.setService(o.(*v1.Service)) },
		UpdateFunc: func(_, o any) { x.setService(o.(*v1.Service)) },
		DeleteFunc: func(o any) {
			if s, ok := deleted(o).(*v1.Service); ok {
				x.deleteService(s.Namespace, s.Name)
			}
		},
	}
}

func (x *index) sliceHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { x.setSlice(o.(*discoveryv1.EndpointSlice)) },
		UpdateFunc: func(old, o any) {
			before, after := old.(*discoveryv1.EndpointSlice), o.(*discoveryv1.EndpointSlice)
			if before.Labels[discoveryv1.LabelServiceName] != after.Labels[discoveryv1.LabelServiceName] {
				x.deleteSlice(before)
			}
			x.setSlice(after)
		},
		DeleteFunc: func(o any) {
			if s, ok := deleted(o).(*discoveryv1.EndpointSlice); ok {
				x.deleteSlice(s)
			}
		},
	}
}

// deleted unwraps an object whose deletion was missed.
func deleted(o any) any {
	if t, ok := o.(cache.DeletedFinalStateUnknown); ok {
		return t.Obj
	}
	return o
}
