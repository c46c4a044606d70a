package local

import (
	"sync"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/periplus/periplus/csi"
)

// A Server is the driver: Identity, Controller and Node service of one node.
type Server struct {
	csipb.UnimplementedIdentityServer
	csipb.UnimplementedControllerServer
	csipb.UnimplementedNodeServer

	config Config
	disk   store

	mu   sync.Mutex // guards busy
	busy map[string]*lock
}

var _ csi.Server = (*Server)(nil)

// lock is held by who works on one volume; the last one to leave drops it.
type lock struct {
	sync.Mutex
	users int
}

// Open returns the driver of a directory, making it if needed and removing what
// a crash has left half made.
func Open(c Config) (*Server, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	s := &Server{config: c, disk: store{c.Dir}, busy: map[string]*lock{}}
	return s, s.disk.open()
}

// hold serialises the work on one volume or name.
func (s *Server) hold(id string) (release func()) {
	s.mu.Lock()
	l := s.busy[id]
	if l == nil {
		l = &lock{}
		s.busy[id] = l
	}
	l.users++
	s.mu.Unlock()
	l.Lock()
	return func() {
		l.Unlock()
		s.mu.Lock()
		defer s.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(s.busy, id)
		}
	}
}

func (s *Server) topology() []*csipb.Topology {
	return []*csipb.Topology{{Segments: map[string]string{TopologyKey: s.config.Node}}}
}
