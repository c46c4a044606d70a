package proxy

import (
	"errors"
	"log/slog"

	"k8s.io/client-go/informers"

	"github.com/periplus/periplus/journey"
)

// Config says whose Services and where to.
type Config struct {
	// Informers gives the Services and EndpointSlices; the caller starts it.
	Informers informers.SharedInformerFactory
	// Node is the name of this node: endpoints on it are local.
	Node string
	// Backends, at least one and at most one a family.
	Backends []Backend
	// Journey gets "service rules programmed" spans; default: none.
	Journey journey.Recorder
	// OnSynced is called once, when all rules are in the kernel for the first time.
	OnSynced func()
	// Log; default slog.Default().
	Log *slog.Logger
}

func (c *Config) validate() error {
	if c.Informers == nil {
		return errors.New("proxy: Informers: is missing")
	}
	if c.Node == "" {
		return errors.New("proxy: Node: is empty, must be this node's name")
	}
	if len(c.Backends) == 0 {
		return errors.New("proxy: Backends: is empty, at least one is needed")
	}
	if c.Journey == nil {
		c.Journey = journey.Discard
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return nil
}
