package sidecar

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/mesh"
)

// A status answers the kubelet and Prometheus.
type status struct {
	sidecar *Sidecar
	probers map[string]prober
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	client  *http.Client
	servers []*server
}

type server struct {
	listener net.Listener
	http     *http.Server
}

// A prober is a probe of the application, as injection has found it.
type prober struct {
	HTTPGet *struct {
		Path    string          `json:"path"`
		Port    json.RawMessage `json:"port"`
		Scheme  string          `json:"scheme"`
		Headers []struct {
			Name  string `json:"name"`
			Value string `json:"value"`
		} `json:"httpHeaders"`
	} `json:"httpGet"`
	TCPSocket *struct {
		Port json.RawMessage `json:"port"`
	} `json:"tcpSocket"`
	TimeoutSeconds int `json:"timeoutSeconds"`
}

const requestTimeout = 10 * time.Second

func newStatus(s *Sidecar) (*status, error) {
	st := &status{sidecar: s, probers: map[string]prober{}}
	if s.cfg.Probers != "" {
		if err := json.Unmarshal([]byte(s.cfg.Probers), &st.probers); err != nil {
			return nil, fmt.Errorf("ISTIO_KUBE_APP_PROBERS: %w", err)
		}
	}
	// As what the proxy hands to the application: the rules let it pass.
	d := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(mesh.PassthroughAddress)}}
	if strings.Contains(s.cfg.Address, ":") {
		d.LocalAddr = nil
	}
	st.dial = d.DialContext
	st.client = &http.Client{
		Transport: &http.Transport{
			DialContext: d.DialContext, DisableKeepAlives: true,
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // as the kubelet: probes verify nothing
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	health, full, metrics := http.NewServeMux(), http.NewServeMux(), http.NewServeMux()
	health.HandleFunc("/healthz/ready", st.ready)
	full.HandleFunc("/healthz/ready", st.ready)
	full.HandleFunc("/stats/prometheus", st.metrics)
	full.HandleFunc("/app-health/", st.appHealth)
	metrics.HandleFunc("/stats/prometheus", st.metrics)
	p := s.cfg.Ports
	for _, e := range []struct {
		port    int
		handler http.Handler
	}{{p.Health, health}, {p.Status, full}, {p.Metrics, metrics}} {
		l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", ":"+strconv.Itoa(e.port))
		if err != nil {
			st.close()
			return nil, err
		}
		st.servers = append(st.servers, &server{l, &http.Server{Handler: e.handler, ReadHeaderTimeout: requestTimeout}})
	}
	return st, nil
}

func (s *status) close() {
	for _, v := range s.servers {
		_ = v.listener.Close()
	}
}

// Run serves until ctx ends.
func (s *status) Run(ctx context.Context) error {
	components := make([]base.Component, 0, len(s.servers))
	for _, v := range s.servers {
		components = append(components, base.Component{Name: v.listener.Addr().String(), Run: func(ctx context.Context) error {
			stop := context.AfterFunc(ctx, func() { _ = v.http.Close() })
			defer stop()
			if err := v.http.Serve(v.listener); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		}})
	}
	return base.RunAll(ctx, components...)
}

// readyWait is how long a probe is held until the proxy becomes ready, so that the
// pod does not wait for the next one.
const readyWait = 2 * time.Second

func (s *status) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyWait)
	defer cancel()
	if err := s.sidecar.Wait(ctx); err != nil {
		http.Error(w, "the proxy has no configuration or no certificate yet", http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusOK)
}

func (s *status) metrics(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_ = s.sidecar.metrics.Write(w) // the client has gone
}

// appHealth makes a probe of the application in place of the kubelet, which has no
// certificate of the mesh.
func (s *status) appHealth(w http.ResponseWriter, r *http.Request) {
	p, ok := s.probers[r.URL.Path]
	if !ok {
		http.Error(w, fmt.Sprintf("no probe is known for %s", r.URL.Path), http.StatusBadRequest)
		return
	}
	timeout := max(time.Duration(p.TimeoutSeconds), 1) * time.Second
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	switch {
	case p.HTTPGet != nil:
		s.probeHTTP(ctx, w, r, &p)
	case p.TCPSocket != nil:
		c, err := s.dial(ctx, "tcp", net.JoinHostPort(s.sidecar.cfg.Address, strings.Trim(string(p.TCPSocket.Port), `"`)))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = c.Close()
		w.WriteHeader(http.StatusOK)
	}
}

func (s *status) probeHTTP(ctx context.Context, w http.ResponseWriter, r *http.Request, p *prober) {
	g := p.HTTPGet
	scheme := "http"
	if strings.EqualFold(g.Scheme, "HTTPS") {
		scheme = "https"
	}
	path := g.Path
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	url := scheme + "://" + net.JoinHostPort(s.sidecar.cfg.Address, strings.Trim(string(g.Port), `"`)) + path
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	q.Header.Set("User-Agent", r.Header.Get("User-Agent"))
	for _, h := range g.Headers {
		if strings.EqualFold(h.Name, "Host") {
			q.Host = h.Value
		} else {
			q.Header.Add(h.Name, h.Value)
		}
	}
	resp, err := s.client.Do(q)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer resp.Body.Close()
	w.WriteHeader(resp.StatusCode)
	_, _ = io.CopyN(w, resp.Body, 10<<10) // as much as the kubelet reads
}
