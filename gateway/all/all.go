package all

import (
	"log/slog"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/record"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/gateway"
	"github.com/periplus/periplus/gateway/gatewayapi"
	"github.com/periplus/periplus/gateway/ingress"
)

// Config is what sources need.
type Config struct {
	Client    kubernetes.Interface
	Informers informers.SharedInformerFactory
	// Dynamic and Metadata are for the Gateway API; nil: without it.
	Dynamic  dynamic.Interface
	Metadata metadata.Interface
	// MakeClasses makes the default classes.
	MakeClasses bool
	// Namespaces says that namespaces may be listed.
	Namespaces bool
	Events     record.EventRecorder
	Log        *slog.Logger
}

// Sources are all sources of configuration.
func Sources(c Config) []gateway.Source {
	out := []gateway.Source{
		ingress.New(ingress.Config{Client: c.Client, Informers: c.Informers, Events: c.Events, Log: c.Log.With(base.KeyComponent, "ingress")}),
	}
	if c.Dynamic != nil {
		g := gatewayapi.Config{Client: c.Dynamic, Metadata: c.Metadata, MakeClass: c.MakeClasses, Events: c.Events, Log: c.Log.With(base.KeyComponent, "gateway-api")}
		if c.Namespaces {
			g.Informers = c.Informers
		}
		out = append(out, gatewayapi.New(g))
	}
	return out
}
