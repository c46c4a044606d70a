package main

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/periplus/periplus/test/netlab"
)

// pace is how often what cannot be watched is asked again. Asking takes processor
// time from what is measured: with 1 ms a start takes a third longer.
const pace = 5 * time.Millisecond

// A startup is the time from exec to each step. Entering the machine's namespaces
// is part of it and takes a few milliseconds.
type startup struct {
	readyz    time.Duration // /readyz answers 200
	nodeReady time.Duration // a client sees the node Ready
	announced time.Duration // peri has printed that the cluster is ready
}

// measureStarts starts peri on an empty state directory, stops it, and starts it
// on the same directory again; each time in another machine.
func measureStarts(ctx context.Context, b *bench) error {
	var first, second []startup
	for range b.starts {
		if err := b.startTwice(ctx, &first, &second); err != nil {
			return err
		}
	}
	pick := func(s []startup, f func(startup) time.Duration) []time.Duration {
		var d []time.Duration
		for _, x := range s {
			d = append(d, f(x))
		}
		return d
	}
	readyz := func(s startup) time.Duration { return s.readyz }
	announced := func(s startup) time.Duration { return s.announced }
	b.results.durations("cold start → /readyz", pick(first, readyz), "< 500 ms", "4300 ms")
	b.results.durations("cold start → node Ready", pick(first, func(s startup) time.Duration { return s.nodeReady }), "< 1000 ms", "4700-6500 ms")
	b.results.durations("cold start → announced", pick(first, announced), "", "")
	b.results.durations("second start → /readyz", pick(second, readyz), "< 500 ms", "")
	b.results.durations("second start → announced", pick(second, announced), "< 1000 ms", "")
	return nil
}

func (b *bench) startTwice(ctx context.Context, first, second *[]startup) (err error) {
	m, err := b.newMachine()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	for _, to := range []*[]startup{first, second} {
		s, p, err := timeStart(ctx, m)
		if err != nil {
			return err
		}
		*to = append(*to, s)
		if err := p.Stop(ctx); err != nil {
			return err
		}
	}
	return nil
}

// timeStart starts peri and asks it from outside at once.
func timeStart(ctx context.Context, m *netlab.Machine) (startup, *netlab.Peri, error) {
	type upped struct {
		p   *netlab.Peri
		err error
		at  time.Duration
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	begin := time.Now()
	up := make(chan upped, 1)
	go func() {
		p, err := m.Up(ctx)
		if err != nil {
			cancel() // those who wait for it
		}
		up <- upped{p, err, time.Since(begin)}
	}()
	var s startup
	err := awaitReadyz(ctx, m)
	s.readyz = time.Since(begin)
	if err == nil {
		err = awaitNode(ctx, m)
		s.nodeReady = time.Since(begin)
	}
	u := <-up
	s.announced = u.at
	if u.err != nil {
		err = u.err
	}
	return s, u.p, err
}

// awaitReadyz returns when the API server says that it is ready.
func awaitReadyz(ctx context.Context, m *netlab.Machine) error {
	transport := &http.Transport{
		DialContext:     m.Dial,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // asks for nothing but a status
	}
	defer transport.CloseIdleConnections()
	return retry(ctx, pace, func() bool {
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+net.JoinHostPort(netlab.Address, "6443")+"/readyz", nil)
		if err != nil {
			return false
		}
		r, err := transport.RoundTrip(q)
		if err != nil {
			return false
		}
		_ = r.Body.Close()
		return r.StatusCode == http.StatusOK
	})
}

// awaitNode returns when the node is Ready.
func awaitNode(ctx context.Context, m *netlab.Machine) error {
	config, err := m.ClientConfig()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	return retry(ctx, pace, func() bool {
		w, err := client.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{})
		if err != nil {
			return false
		}
		defer w.Stop()
		for e := range w.ResultChan() {
			n, ok := e.Object.(*corev1.Node)
			for i := 0; ok && i < len(n.Status.Conditions); i++ {
				if c := n.Status.Conditions[i]; c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
					return true
				}
			}
		}
		return false
	})
}

// retry calls try until it succeeds.
func retry(ctx context.Context, pace time.Duration, try func() bool) error {
	t := time.NewTicker(pace)
	defer t.Stop()
	for !try() {
		select {
		case <-t.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
