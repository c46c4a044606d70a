package gateway

import (
	"fmt"
	"net"
	"reflect"
	"strconv"

	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/l7/filter/trace"
)

// listening is what a port keeps over builds: its listener, which stays the same, and
// its certificates, which are replaced.
type listening struct {
	listener     *l7.Listener
	certificates *certificates
}

// snapshot makes the configuration of a build. What equals the one before is taken
// from it.
func (s *Server) snapshot(b *Build, before *l7.Snapshot) *l7.Snapshot {
	out := &l7.Snapshot{
		Version: strconv.Itoa(s.builds), Routes: map[string]*l7.RouteConfiguration{},
		Clusters: b.clusters, Endpoints: b.endpoints,
	}
	for name, c := range out.Clusters {
		if old := before.Clusters[name]; old != nil && reflect.DeepEqual(old, c) {
			out.Clusters[name] = old
		}
	}
	for name, e := range out.Endpoints {
		if old := before.Endpoints[name]; reflect.DeepEqual(old, e) {
			out.Endpoints[name] = old
		}
	}
	for number, p := range b.ports {
		name := "port-" + strconv.Itoa(number)
		l := s.listening[number]
		if l == nil || (l.certificates != nil) != p.TLS {
			l = s.newListening(name, p)
			s.listening[number] = l
		}
		if p.TLS {
			l.certificates.replace(p)
		}
		out.Listeners = append(out.Listeners, l.listener)
		out.Routes[name] = &l7.RouteConfiguration{VirtualHosts: p.virtualHosts()}
	}
	for number := range s.listening {
		if b.ports[number] == nil {
			delete(s.listening, number)
		}
	}
	return out
}

func (s *Server) newListening(name string, p *Port) *listening {
	out := &listening{}
	chain := &l7.FilterChain{Name: name, HTTP: &l7.HTTPConnectionManager{
		RouteConfig: name, ForwardedFor: l7.ForwardedForReplace, Upgrades: []string{"websocket"},
		Filters:   []l7.Filter{&trace.Filter{}},
		Observers: s.cfg.Observers,
		// Paths are matched as they are meant: /a/../admin is /admin.
		NormalizePath: true,
	}}
	if p.TLS {
		out.certificates = &certificates{}
		chain.TLS = &l7.DownstreamTLS{Certificates: out.certificates}
	}
	out.listener = &l7.Listener{
		Name: fmt.Sprintf("%s-%t", name, p.TLS), Address: net.JoinHostPort(s.cfg.Address, strconv.Itoa(p.Number)), Direction: "gateway",
		Chains: []*l7.FilterChain{chain},
	}
	return out
}
