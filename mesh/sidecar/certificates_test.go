package sidecar

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/periplus/periplus/mesh"
	"github.com/periplus/periplus/mesh/ca"
)

// A certificate is replaced when half of its life is over, and again soon if that fails.
func TestRotation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, err := ca.New()
		if err != nil {
			t.Fatal(err)
		}
		id := mesh.Identity{TrustDomain: "cluster.local", Namespace: "shop", ServiceAccount: "web"}
		var calls []time.Duration
		start := time.Now()
		away := false
		c := &Certificates{id: id, log: slog.New(slog.DiscardHandler), first: make(chan struct{}), sign: func(_ context.Context, csr string) ([]string, error) {
			calls = append(calls, time.Since(start))
			if away {
				return nil, errors.New("nobody there")
			}
			return a.Sign([]byte(csr), id, 24*time.Hour)
		}}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.Run(ctx) }()
		<-c.first
		before, err := c.Certificate("")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(11 * time.Hour) // the bubble's clock
		synctest.Wait()
		if len(calls) != 1 {
			t.Errorf("after 11 hours: asked at %v", calls)
		}
		away = true
		time.Sleep(time.Hour + time.Minute)
		synctest.Wait()
		if now, _ := c.Certificate(""); now != before || len(calls) < 3 {
			t.Errorf("while the authority is away: asked at %v", calls)
		}
		away = false
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if now, _ := c.Certificate(""); now == before || !now.Leaf.NotAfter.After(before.Leaf.NotAfter) {
			t.Error("the certificate was not replaced")
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// A certificate for somebody else is not taken.
func TestWrongIdentity(t *testing.T) {
	t.Parallel()
	a, err := ca.New()
	if err != nil {
		t.Fatal(err)
	}
	id := mesh.Identity{TrustDomain: "cluster.local", Namespace: "shop", ServiceAccount: "web"}
	c := &Certificates{id: id, log: slog.New(slog.DiscardHandler), first: make(chan struct{}), sign: func(_ context.Context, csr string) ([]string, error) {
		return a.Sign([]byte(csr), mesh.Identity{TrustDomain: "cluster.local", Namespace: "shop", ServiceAccount: "other"}, 0)
	}}
	if _, err := c.renew(t.Context()); err == nil {
		t.Error("it was taken")
	}
	if _, err := c.Certificate(""); !errors.Is(err, ErrNoCertificate) {
		t.Errorf("%v", err)
	}
}
