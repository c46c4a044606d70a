package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"

	"github.com/periplus/periplus/test/netlab"
)

const (
	mediaJSON     = "application/json"
	mediaProtobuf = "application/vnd.kubernetes.protobuf"
)

// A server is one that has no node, with clients that send bytes and look at nothing
// that they receive, each over a connection of its own with TLS and HTTP/2: what is
// measured is the server.
type server struct {
	*bench
	machine *netlab.Machine
	up      *netlab.Peri
	clients []*http.Client
	base    string // URL
}

// A raw request is one of many that are sent.
type raw struct {
	method, path, media string
	accept              string // "": as media
	body                []byte
}

// openServer starts a server in a machine of its own.
func (b *bench) openServer(ctx context.Context) (*server, error) {
	m, err := b.newMachine()
	if err != nil {
		return nil, err
	}
	s := &server{bench: b, machine: m}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return s, nil
}

func (s *server) start(ctx context.Context) error {
	var err error
	if s.up, err = s.machine.Server(ctx, "--disable-agent"); err != nil {
		return err
	}
	s.clients = nil
	for range s.bench.clients {
		config, err := s.machine.ClientConfig()
		if err != nil {
			return err
		}
		c, err := restclient.HTTPClientFor(config)
		if err != nil {
			return err
		}
		s.clients, s.base = append(s.clients, c), config.Host
		if _, err := s.do(ctx, c, raw{method: http.MethodGet, path: "/version", media: mediaJSON}); err != nil {
			return err
		}
	}
	return nil
}

func (s *server) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	for _, c := range s.clients {
		c.CloseIdleConnections()
	}
	return s.up.Stop(ctx)
}

func (s *server) close() error { return errors.Join(s.stop(), s.machine.Close()) }

// cluster is the server for those who need a client.
func (s *server) cluster() (*cluster, error) {
	c := &cluster{machine: s.machine, up: s.up}
	config, err := s.machine.ClientConfig()
	if err != nil {
		return nil, err
	}
	c.client, err = kubernetes.NewForConfig(config)
	return c, err
}

// usage measures the server.
func (s *server) usage() (usage, error) {
	pid, err := s.up.PID()
	if err != nil {
		return usage{}, err
	}
	return measure([]int{pid})
}

// do sends a request and returns the size of the answer.
func (s *server) do(ctx context.Context, c *http.Client, r raw) (int64, error) {
	var n int64
	err := s.ask(ctx, c, r, func(body io.Reader) (err error) {
		n, err = io.Copy(io.Discard, body)
		return err
	})
	return n, err
}

func (s *server) ask(ctx context.Context, c *http.Client, r raw, read func(io.Reader) error) error {
	q, err := http.NewRequestWithContext(ctx, r.method, s.base+r.path, bytes.NewReader(r.body))
	if err != nil {
		return err
	}
	if len(r.body) > 0 {
		q.Header.Set("Content-Type", r.media)
	}
	q.Header.Set("Accept", r.media)
	if r.accept != "" {
		q.Header.Set("Accept", r.accept)
	}
	q.Header.Set("Accept-Encoding", "identity")
	q.Header.Set("User-Agent", "bench")
	a, err := c.Do(q)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	if a.StatusCode >= 300 {
		text, _ := io.ReadAll(io.LimitReader(a.Body, 1000))
		return fmt.Errorf("%s %s: %s: %s", r.method, r.path, a.Status, text)
	}
	return read(a.Body)
}

// A rate is how fast many requests were answered.
type rate struct {
	perSecond float64
	cpu       time.Duration // of the server, each
	p50, p99  time.Duration
}

// profiled is how long a profile is taken of a load.
const profiled = 2 * time.Second

// profile begins to take a profile of the server; the result waits for it.
func (s *server) profile(ctx context.Context, name string) func() error {
	if s.profiles == "" {
		return func() error { return nil }
	}
	done := make(chan error, 1)
	go func() {
		path := filepath.Join(s.profiles, strings.NewReplacer(" ", "-", ",", "").Replace(name)+".pprof")
		r := raw{method: http.MethodGet, path: fmt.Sprintf("/debug/pprof/profile?seconds=%.0f", profiled.Seconds()), media: "*/*"}
		done <- s.ask(ctx, s.clients[0], r, func(body io.Reader) error {
			text, err := io.ReadAll(body)
			if err != nil {
				return err
			}
			return os.WriteFile(path, text, 0o600)
		})
	}()
	return func() error { return <-done }
}

// flood sends requests 0 to total, each client the next until all are done.
func (s *server) flood(ctx context.Context, name string, total int, request func(i int) raw) (_ rate, err error) {
	profile := s.profile(ctx, name)
	defer func() { err = errors.Join(err, profile()) }()
	before, err := s.usage()
	if err != nil {
		return rate{}, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	latencies := make([]time.Duration, total)
	var all sync.WaitGroup
	begin := time.Now()
	for _, c := range s.clients {
		all.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= total || ctx.Err() != nil {
					return
				}
				sent := time.Now()
				if _, err := s.do(ctx, c, request(i)); err != nil {
					cancel(err)
					return
				}
				latencies[i] = time.Since(sent)
			}
		})
	}
	all.Wait()
	took := time.Since(begin)
	if err := context.Cause(ctx); err != nil {
		return rate{}, err
	}
	after, err := s.usage()
	if err != nil {
		return rate{}, err
	}
	slices.Sort(latencies)
	return rate{float64(total) / took.Seconds(), (after.CPU - before.CPU) / time.Duration(total), quantile(latencies, 0.5), quantile(latencies, 0.99)}, nil
}

// rate adds a rate; own is etcd's own rate with as many writers, 0 for reads.
func (s *server) rate(name string, r rate, own float64) {
	note := fmt.Sprintf("%d µs of CPU each", r.cpu.Microseconds())
	if own > 0 {
		note += fmt.Sprintf("; %.0f %% of etcd's own rate", 100*r.perSecond/own)
	}
	s.results.add(figure{Name: fmt.Sprintf("%s, %d clients", name, len(s.clients)), Unit: "/s", Value: r.perSecond, Note: note + fmt.Sprintf("; p50 %.1f ms, p99 %.1f ms", ms(r.p50), ms(r.p99))})
}
