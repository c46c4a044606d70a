package openapi_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"log/slog"
	"net/netip"
	"testing"

	restclient "k8s.io/client-go/rest"

	"github.com/periplus/periplus/apiserver"
	"github.com/periplus/periplus/store/mem"
)

// start runs a server over a store in memory and returns how its administrator reaches it.
func start(t *testing.T) (*apiserver.Server, *restclient.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s, err := apiserver.New(apiserver.Config{
		Store: mem.New(), Version: "v1.37.2", ServiceAccountKey: key,
		ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.43.0.0/16")},
		Advertise:    netip.MustParseAddrPort("192.0.2.1:6443"), Log: slog.New(slog.DiscardHandler),
	})
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
	return s, s.ClientConfig("test", "system:masters")
}
