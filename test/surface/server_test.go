package surface_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"log/slog"
	"net/http"
	"net/netip"
	"testing"

	restclient "k8s.io/client-go/rest"

	"github.com/periplus/periplus/apiserver"
	"github.com/periplus/periplus/store/mem"
)

// start runs a server over a store in memory that serves beta versions, too, and
// returns the configuration of a client that may do everything.
func start(t testing.TB, set ...func(*apiserver.Config)) *restclient.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	config := apiserver.Config{
		Store: mem.New(), Version: "v1.37.2", ServiceAccountKey: key,
		ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.43.0.0/16")},
		Advertise:    netip.MustParseAddrPort("192.0.2.1:6443"), Log: slog.New(slog.DiscardHandler),
		RuntimeConfig: map[string]bool{"api/beta": true},
	}
	for _, f := range set {
		f(&config)
	}
	s, err := apiserver.New(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-s.Ready():
	case err := <-done:
		done <- err
		t.Fatal(err)
	}
	c := s.ClientConfig("test", "system:masters")
	c.ContentConfig = restclient.ContentConfig{}
	return c
}

// httpClient sends requests to the server.
func httpClient(t testing.TB, c *restclient.Config) *http.Client {
	t.Helper()
	h, err := restclient.HTTPClientFor(c)
	if err != nil {
		t.Fatal(err)
	}
	return h
}
