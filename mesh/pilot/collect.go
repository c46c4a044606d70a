package pilot

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"

	"github.com/periplus/periplus/mesh"
	"github.com/periplus/periplus/mesh/config"
)

// sources are the listers that worlds are collected from.
type sources struct {
	domain   string
	services corelisters.ServiceLister
	slices   discoverylisters.EndpointSliceLister
	pods     corelisters.PodLister
	nodes    corelisters.NodeLister
	store    *store
}

// collect makes a whole world.
func (s *sources) collect(version uint64) (*World, error) {
	w := &World{
		version: version, domain: s.domain, byHost: map[string]*service{}, endpoints: map[portKey][]*endpoint{},
		views: &views{made: map[string]*view{}}, assignments: &sync.Map{},
	}
	list, err := s.services.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	all, err := s.slices.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	byService := map[string][]*discoveryv1.EndpointSlice{}
	for _, e := range all {
		key := e.Namespace + "/" + e.Labels[discoveryv1.LabelServiceName]
		byService[key] = append(byService[key], e)
	}
	for _, k := range list {
		svc := s.service(k)
		if svc == nil {
			continue
		}
		w.services = append(w.services, svc)
		w.byHost[svc.host] = svc
		s.endpointsOf(w, svc, byService[k.Namespace+"/"+k.Name])
	}
	slices.SortFunc(w.services, func(a, b *service) int { return cmp.Compare(a.host, b.host) })
	s.config(w)
	return w, nil
}

// config adds Istio's resources.
func (s *sources) config(w *World) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	w.virtualServices = slices.SortedFunc(maps.Values(s.store.virtualServices), func(a, b *config.VirtualService) int { return a.Older(b.Meta) })
	w.destinationRules = slices.SortedFunc(maps.Values(s.store.destinationRules), func(a, b *config.DestinationRule) int { return a.Older(b.Meta) })
	w.peers = slices.SortedFunc(maps.Values(s.store.peers), func(a, b *config.PeerAuthentication) int { return a.Older(b.Meta) })
	w.policies = slices.SortedFunc(maps.Values(s.store.policies), func(a, b *config.AuthorizationPolicy) int { return a.Older(b.Meta) })
	for _, v := range w.virtualServices {
		for _, r := range v.Spec.GetHttp() {
			for _, m := range r.GetMatch() {
				w.bySourceLabels = w.bySourceLabels || len(m.GetSourceLabels()) > 0
			}
		}
	}
}

// withEndpoints is old with the endpoints of some services anew, or nil if more than
// endpoints has changed by it.
func (s *sources) withEndpoints(old *World, version uint64, changed map[string]bool) *World {
	w := *old
	w.version = version
	w.endpoints = maps.Clone(old.endpoints)
	w.assignments = &sync.Map{}
	old.assignments.Range(func(name, value any) bool {
		cluster, _, _ := strings.Cut(name.(string), "\x00")
		if _, _, _, host, err := mesh.ParseClusterName(cluster); err == nil && !changed[host] {
			w.assignments.Store(name, value)
		}
		return true
	})
	for host := range changed {
		svc := old.byHost[host]
		if svc == nil {
			continue // its service is on its way: that will be a whole world
		}
		if svc.headless {
			return nil // listeners depend on its endpoints
		}
		fresh := *svc
		for _, p := range svc.ports {
			delete(w.endpoints, portKey{host, p.number})
		}
		list, err := s.slices.EndpointSlices(svc.namespace).List(labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: svc.name}))
		if err != nil {
			return nil
		}
		s.endpointsOf(&w, &fresh, list)
		if !slices.Equal(fresh.accounts, svc.accounts) {
			return nil // clients verify others from now on
		}
	}
	return &w
}

// service reads a Service; nil: no proxy has to do with it.
func (s *sources) service(k *corev1.Service) *service {
	if k.Spec.Type == corev1.ServiceTypeExternalName {
		return nil
	}
	svc := &service{
		name: k.Name, namespace: k.Namespace, host: k.Name + "." + k.Namespace + ".svc." + s.domain,
		headless: k.Spec.ClusterIP == corev1.ClusterIPNone, selector: k.Spec.Selector,
	}
	if !svc.headless {
		svc.addresses = k.Spec.ClusterIPs
		if len(svc.addresses) == 0 && k.Spec.ClusterIP != "" {
			svc.addresses = []string{k.Spec.ClusterIP}
		}
	}
	for i := range k.Spec.Ports {
		p := &k.Spec.Ports[i]
		proto := protocolOf(p)
		if proto == protocolUDP {
			continue
		}
		target := p.TargetPort.String()
		if target == "" || target == "0" {
			target = strconv.Itoa(int(p.Port))
		}
		svc.ports = append(svc.ports, &port{name: p.Name, number: int(p.Port), target: target, protocol: proto})
	}
	return svc
}

// endpointsOf adds the endpoints of a service.
func (s *sources) endpointsOf(w *World, svc *service, list []*discoveryv1.EndpointSlice) {
	accounts := map[string]bool{}
	seen := map[portKey]map[string]bool{}
	slices.SortFunc(list, func(a, b *discoveryv1.EndpointSlice) int { return cmp.Compare(a.Name, b.Name) })
	for _, e := range list {
		for _, p := range e.Ports {
			own := portNamed(svc, p.Name)
			if own == nil || p.Port == nil {
				continue
			}
			key := portKey{svc.host, own.number}
			if seen[key] == nil {
				seen[key] = map[string]bool{}
			}
			for i := range e.Endpoints {
				for _, address := range e.Endpoints[i].Addresses {
					if seen[key][address] {
						continue
					}
					seen[key][address] = true
					made := s.endpoint(svc, &e.Endpoints[i], address, int(*p.Port))
					w.endpoints[key] = append(w.endpoints[key], made)
					if made.account != "" {
						accounts[made.account] = true
					}
				}
			}
		}
	}
	svc.accounts = slices.Sorted(maps.Keys(accounts))
}

func portNamed(s *service, name *string) *port {
	want := ""
	if name != nil {
		want = *name
	}
	for _, p := range s.ports {
		if p.name == want {
			return p
		}
	}
	return nil
}

func (s *sources) endpoint(svc *service, e *discoveryv1.Endpoint, address string, port int) *endpoint {
	out := &endpoint{address: address, port: port}
	c := e.Conditions
	ready := c.Ready == nil || *c.Ready
	serving := c.Serving == nil && ready || c.Serving != nil && *c.Serving
	terminating := c.Terminating != nil && *c.Terminating
	out.draining = terminating && serving
	out.unready = !ready && !out.draining
	if e.Hostname != nil {
		out.hostname = *e.Hostname
	}
	if e.Zone != nil {
		out.zone = *e.Zone
	}
	if e.NodeName != nil && s.nodes != nil {
		if n, err := s.nodes.Get(*e.NodeName); err == nil {
			out.region = n.Labels[corev1.LabelTopologyRegion]
		}
	}
	if e.TargetRef == nil || e.TargetRef.Kind != "Pod" {
		return out
	}
	pod, err := s.pods.Pods(svc.namespace).Get(e.TargetRef.Name)
	if err != nil {
		return out
	}
	out.labels = pod.Labels
	out.tls = pod.Labels[mesh.LabelTLS] == mesh.TLSModeIstio
	account := pod.Spec.ServiceAccountName
	if account == "" {
		account = "default"
	}
	out.account = mesh.Identity{TrustDomain: mesh.TrustDomain, Namespace: pod.Namespace, ServiceAccount: account}.String()
	out.workload = mesh.WorkloadOf(podOwner(pod), pod.Namespace, pod.Labels).Short()
	return out
}

func podOwner(p *corev1.Pod) string {
	if c := metav1.GetControllerOfNoCopy(p); c != nil {
		return mesh.OwnerName(c.Kind, c.Name, p.Name)
	}
	return p.Name
}
