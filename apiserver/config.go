package apiserver

import (
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/periplus/periplus/apiserver/admission"
	admissionall "github.com/periplus/periplus/apiserver/admission/all"
	"github.com/periplus/periplus/apiserver/aggregator"
	"github.com/periplus/periplus/apiserver/audit"
	authnall "github.com/periplus/periplus/apiserver/authn/all"
	authzall "github.com/periplus/periplus/apiserver/authz/all"
	"github.com/periplus/periplus/apiserver/encryption"
	"github.com/periplus/periplus/journey"
	"github.com/periplus/periplus/store"
)

// Config is what a Server is made of.
type Config struct {
	// Store keeps the objects. The caller closes it after Run has returned.
	Store store.Store
	// Version is the Kubernetes version that is served, "v1.37.2".
	Version string
	// Advertise is the address and port under which other machines and pods reach
	// this server: the endpoint of the Service default/kubernetes.
	Advertise netip.AddrPort
	// ServiceCIDRs are the ranges of cluster IPs, at most one a family. The first
	// address of the first is that of default/kubernetes.
	ServiceCIDRs []netip.Prefix
	// NodePortLow and NodePortHigh bound node ports, both included. Default 30000-32767.
	NodePortLow, NodePortHigh int32
	// Certificate authenticates the server; it is asked for each connection.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// ClientCAs verify client certificates.
	ClientCAs *x509.CertPool
	// KubeletTLS is used towards kubelets.
	KubeletTLS *tls.Config
	// Trust is what extension API servers are told of this server, and what it believes
	// itself of front proxies. ProxyClient is the certificate by which they know it.
	Trust       aggregator.Trust
	ProxyClient func(*tls.CertificateRequestInfo) (*tls.Certificate, error)
	// AggregateByClusterIP reaches extension API servers at cluster IPs instead of endpoints.
	AggregateByClusterIP bool
	// ServiceAccountKey signs service account tokens, Issuer names it in them.
	ServiceAccountKey *ecdsa.PrivateKey
	Issuer            string
	// Encryption says what is kept encrypted; nothing by default.
	Encryption encryption.Config
	// Authentication says how senders are known besides.
	Authentication authnall.Options
	// Authorization says who decides what they may do; default: the modes Node and RBAC.
	Authorization authzall.Options
	// RuntimeConfig turns versions of the API on and off ("api/beta": true,
	// "resource.k8s.io/v1beta2": true); by default GA versions are on.
	RuntimeConfig map[string]bool
	// EventTTL is how long events are kept after they were last seen; default an hour.
	EventTTL time.Duration
	// Shared says that other API servers use the same store: each keeps a lease by
	// which default/kubernetes gets the endpoints of those that live.
	Shared bool
	// Journey records steps; default journey.Discard.
	Journey journey.Recorder
	// Components say how the parts of the cluster are, for component statuses; one
	// that is not named here is judged by the lease that it holds.
	Components map[string]func(context.Context) error
	// LogDir is shown below /logs; "" shows none.
	LogDir string
	// Extra serves further paths, by prefix, to whoever is authorized for them.
	Extra map[string]http.Handler
	// Metrics are those of other components in this process, shown together with the server's.
	Metrics prometheus.Gatherer
	// MaxInFlight is how many requests that read are served at once, MaxMutatingInFlight how
	// many that write; their sum is divided among the priority levels. Default: 400 and 200.
	MaxInFlight, MaxMutatingInFlight int
	// NoFairness switches priority and fairness off: only the two limits hold.
	NoFairness bool
	// RequestTimeout bounds requests that do not last, default a minute. MinRequestTimeout is
	// for how long watches last at least that do not say so, default 30 minutes.
	RequestTimeout, MinRequestTimeout time.Duration
	// Tracing is the path of a TracingConfiguration; "": nothing is traced.
	Tracing string
	// Audit says which requests are logged, and where; the zero value: none.
	Audit audit.Options
	// Admission says which plug-ins of the server's own are asked, and how they are configured.
	Admission admissionall.Options
	// DisableAdmission names plug-ins of the server's own that are not asked.
	DisableAdmission []string
	// Plugins are admission plug-ins that are asked after the server's own.
	Plugins []admission.Plugin
	Log     *slog.Logger
}

func (c *Config) validate() error {
	switch {
	case c.Store == nil:
		return errors.New("apiserver: config: Store is missing")
	case c.ServiceAccountKey == nil:
		return errors.New("apiserver: config: ServiceAccountKey is missing")
	case len(c.ServiceCIDRs) == 0 || len(c.ServiceCIDRs) > 2:
		return fmt.Errorf("apiserver: config: ServiceCIDRs has %d ranges, want 1 or 2", len(c.ServiceCIDRs))
	}
	if c.NodePortLow == 0 && c.NodePortHigh == 0 {
		c.NodePortLow, c.NodePortHigh = 30000, 32767
	}
	if c.NodePortLow < 1 || c.NodePortHigh > 65535 || c.NodePortLow > c.NodePortHigh {
		return fmt.Errorf("apiserver: config: node ports %d-%d, want a range within 1-65535", c.NodePortLow, c.NodePortHigh)
	}
	if c.Journey == nil {
		c.Journey = journey.Discard
	}
	if c.MaxInFlight == 0 && c.MaxMutatingInFlight == 0 {
		c.MaxInFlight, c.MaxMutatingInFlight = 400, 200
	}
	if c.RequestTimeout == 0 {
		c.RequestTimeout = time.Minute
	}
	if c.MinRequestTimeout == 0 {
		c.MinRequestTimeout = 30 * time.Minute
	}
	if c.EventTTL == 0 {
		c.EventTTL = time.Hour
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if err := runtimeConfig(c.RuntimeConfig).validate(); err != nil {
		return err
	}
	if c.Issuer == "" {
		c.Issuer = "https://kubernetes.default.svc.cluster.local"
	}
	return nil
}
