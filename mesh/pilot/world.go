package pilot

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/periplus/periplus/mesh"
	"github.com/periplus/periplus/mesh/config"
)

// A World is all that configuration is made from, at one time. It is immutable,
// but for the cache of what has been made from it.
type World struct {
	// version counts worlds, for people.
	version uint64
	domain  string

	services  []*service // by host
	byHost    map[string]*service
	endpoints map[portKey][]*endpoint

	virtualServices  []*config.VirtualService // the oldest first
	destinationRules []*config.DestinationRule
	peers            []*config.PeerAuthentication
	policies         []*config.AuthorizationPolicy
	// bySourceLabels says that some route asks for labels of the client.
	bySourceLabels bool

	// views are shared with worlds that differ only in endpoints.
	views *views
	// assignments are endpoints as resources, by the name of their cluster.
	assignments *sync.Map
}

// A portKey is one port of a service.
type portKey struct {
	host string
	port int
}

// A service is one of Kubernetes.
type service struct {
	name, namespace string
	host            string
	addresses       []string // cluster IPs; none for a headless one
	headless        bool
	ports           []*port
	selector        map[string]string
	// accounts are the identities of its endpoints: whom a client may meet.
	accounts []string
}

type port struct {
	name     string
	number   int
	target   string // a number, or the name of a container's port
	protocol protocol
}

func (s *service) port(number int) *port {
	for _, p := range s.ports {
		if p.number == number {
			return p
		}
	}
	return nil
}

// An endpoint is one address behind a port of a service.
type endpoint struct {
	address  string
	port     int
	labels   map[string]string
	tls      bool // its pod has a sidecar
	draining bool
	unready  bool
	account  string // SPIFFE ID
	workload string // mesh.Workload.Short
	region   string
	zone     string
	hostname string
}

// views caches what has been made for namespaces.
type views struct {
	mu   sync.Mutex // guards made
	made map[string]*view
}

// A view is the outbound configuration that proxies with the same key see.
type view struct {
	once sync.Once

	clusters  resources
	listeners resources
	routes    resources
}

// viewFor returns the outbound configuration for a proxy.
func (w *World) viewFor(p *proxy) *view {
	key := p.namespace
	if w.bySourceLabels {
		key += "\x00" + canonical(p.labels)
	}
	w.views.mu.Lock()
	v := w.views.made[key]
	if v == nil {
		v = &view{}
		w.views.made[key] = v
	}
	w.views.mu.Unlock()
	v.once.Do(func() {
		g := &generator{world: w, namespace: p.namespace, labels: p.labels}
		v.clusters, v.listeners, v.routes = g.outbound()
	})
	return v
}

// canonical is a map as one string.
func canonical(m map[string]string) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(m)) {
		b.WriteString(k + "=" + m[k] + "\x00")
	}
	return b.String()
}

// subsetOf says whether labels have all of a selector; an empty selector matches.
func subsetOf(selector, labels map[string]string) bool {
	for k, v := range selector {
		if have, ok := labels[k]; !ok || have != v {
			return false
		}
	}
	return true
}

// selecting returns the services whose pods have such labels.
func (w *World) selecting(namespace string, labels map[string]string) []*service {
	var out []*service
	for _, s := range w.services {
		if s.namespace == namespace && len(s.selector) > 0 && subsetOf(s.selector, labels) {
			out = append(out, s)
		}
	}
	return out
}

// rule returns the destination rule that counts for a host and a client's namespace:
// the client's own, then the service's, then that of the root namespace.
func (w *World) rule(host, serviceNamespace, clientNamespace string) *config.DestinationRule {
	for _, ns := range []string{clientNamespace, serviceNamespace, mesh.RootNamespace} {
		var best *config.DestinationRule
		bestLen := -1
		for _, d := range w.destinationRules {
			if d.Namespace != ns || !config.Exported(d.Spec.GetExportTo(), d.Namespace, clientNamespace) {
				continue
			}
			pattern := config.FullHost(d.Spec.GetHost(), d.Namespace, w.domain)
			if config.HostMatches(pattern, host) && specificity(pattern) > bestLen {
				best, bestLen = d, specificity(pattern)
			}
		}
		if best != nil {
			return best
		}
	}
	return nil
}

// specificity orders hosts: exact ones before longer wildcards before shorter ones.
func specificity(pattern string) int {
	if strings.HasPrefix(pattern, "*") {
		return len(pattern)
	}
	return 1<<16 + len(pattern)
}
