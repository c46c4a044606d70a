package proxy

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/periplus/periplus/base"
)

// healthTimeout bounds a request of a load balancer.
const healthTimeout = 5 * time.Second

// A healthServer answers load balancers outside of the cluster whether this node
// has endpoints of a Service with external traffic policy Local, on the Service's
// healthCheckNodePort: 200 or 503, as upstream's kube-proxy. While no Service has
// such a port it holds nothing.
type healthServer struct {
	log *slog.Logger

	mu       sync.Mutex // guards what follows
	ports    map[types.NamespacedName]map[PortName]*Port
	services map[types.NamespacedName]*healthService
}

type healthService struct {
	port   uint16
	server *http.Server // nil when the port could not be opened
	local  int          // guarded by healthServer.mu
}

func newHealthServer(log *slog.Logger) *healthServer {
	return &healthServer{log: log, ports: map[types.NamespacedName]map[PortName]*Port{}, services: map[types.NamespacedName]*healthService{}}
}

// update takes changes of ports.
func (h *healthServer) update(updates []Update) {
	h.mu.Lock()
	defer h.mu.Unlock()
	touched := map[types.NamespacedName]bool{}
	for _, u := range updates {
		key := types.NamespacedName{Namespace: u.Name.Namespace, Name: u.Name.Name}
		known := h.ports[key]
		checked := u.Port != nil && u.Port.HealthCheckNodePort != 0
		switch {
		case checked && known == nil:
			h.ports[key] = map[PortName]*Port{u.Name: u.Port}
		case checked:
			known[u.Name] = u.Port
		case known == nil:
			continue
		default:
			delete(known, u.Name)
		}
		touched[key] = true
	}
	for key := range touched {
		h.settleLocked(key)
	}
}

// settleLocked makes what is served of a Service what its ports say.
func (h *healthServer) settleLocked(key types.NamespacedName) {
	number, local := uint16(0), 0
	for _, p := range h.ports[key] {
		number, local = p.HealthCheckNodePort, max(local, len(p.OnNode))
	}
	s := h.services[key]
	if s != nil && s.port != number {
		s.close()
		delete(h.services, key)
		s = nil
	}
	if number == 0 {
		delete(h.ports, key)
		return
	}
	if s == nil {
		s = &healthService{port: number}
		h.services[key] = s
		h.listenLocked(key, s)
	}
	s.local = local
}

func (h *healthServer) listenLocked(key types.NamespacedName, s *healthService) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", ":"+strconv.Itoa(int(s.port)))
	if err != nil {
		h.log.Error("a Service's health check port cannot be opened: load balancers will take this node for one without endpoints",
			base.KeyKey, key.String(), "port", s.port, base.KeyError, err)
		return
	}
	s.server = &http.Server{
		ReadHeaderTimeout: healthTimeout, ReadTimeout: healthTimeout, WriteTimeout: healthTimeout, IdleTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { h.answer(w, key, s) }),
	}
	server := s.server
	go func() { _ = server.Serve(l) }() // it ends when it is closed
}

func (h *healthServer) answer(w http.ResponseWriter, key types.NamespacedName, s *healthService) {
	h.mu.Lock()
	local := s.local
	h.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("X-Load-Balancing-Endpoint-Weight", strconv.Itoa(local))
	if local == 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{ // the client is gone: nobody to tell
		"service":        map[string]string{"namespace": key.Namespace, "name": key.Name},
		"localEndpoints": local, "serviceProxyHealthy": true,
	})
}

func (s *healthService) close() {
	if s.server != nil {
		_ = s.server.Close()
	}
}

// close ends all servers.
func (h *healthServer) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.services {
		s.close()
	}
	clear(h.services)
}
