package sidecar

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"strings"

	"github.com/periplus/periplus/mesh"
)

// Config is what a sidecar is told by its environment and its flags.
type Config struct {
	// Pod, Namespace, Address, ServiceAccount and Workload say for whom it works.
	Pod, Namespace, Address, ServiceAccount, Workload string
	Labels                                            map[string]string
	// ControlPlane is host:port of the control plane.
	ControlPlane string
	// RootFile has the authority's certificate, TokenFile the token that shows who we are.
	RootFile, TokenFile string
	// ServerName is that in the control plane's certificate.
	ServerName string
	// AccessLog is "", "text" or "json".
	AccessLog string
	// Probers are the application's probes (ISTIO_KUBE_APP_PROBERS).
	Probers string
	// Output gets the access log.
	Output io.Writer
	Log    *slog.Logger

	// Ports; nil: the usual ones. Tests choose others; 0 is any that is free.
	Ports *Ports
	// Network is how connections come and go; nil: as in a pod with redirect rules.
	Network Network
}

// Ports are what a sidecar listens on.
type Ports struct{ Outbound, Inbound, Health, Status, Metrics int }

// Defaults for what was not set.
const (
	defaultRoot  = "/var/run/secrets/istio/root-cert.pem"
	defaultToken = "/var/run/secrets/tokens/istio-token" //nolint:gosec // a path
	labelsFile   = "/etc/istio/pod/labels"
)

// FromEnvironment reads the variables that injection sets, and flags.
func FromEnvironment(args []string, env func(string) string, out io.Writer) (Config, error) {
	flags := flag.NewFlagSet("mesh-proxy", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	level := flags.String("log-level", "warning", "debug, info, warning or error")
	access := flags.String("access-log", "", "text or json: a line for each request")
	if err := flags.Parse(args); err != nil {
		return Config{}, err
	}
	c := Config{
		Pod: env("POD_NAME"), Namespace: env("POD_NAMESPACE"), Address: env("INSTANCE_IP"), ServiceAccount: env("SERVICE_ACCOUNT"),
		Workload: env("ISTIO_META_WORKLOAD_NAME"), ControlPlane: env("CA_ADDR"), Probers: env("ISTIO_KUBE_APP_PROBERS"),
		RootFile: defaultRoot, TokenFile: defaultToken, AccessLog: *access, Output: out,
	}
	var l slog.Level
	switch *level {
	case "debug":
		l = slog.LevelDebug
	case "info":
		l = slog.LevelInfo
	case "error", "critical":
		l = slog.LevelError
	default:
		l = slog.LevelWarn
	}
	c.Log = slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: l}))
	if b, err := os.ReadFile(labelsFile); err == nil {
		c.Labels = parseLabels(string(b))
	}
	return c, c.validate()
}

func (c *Config) validate() error {
	var errs []error
	need := func(name, value string) {
		if value == "" {
			errs = append(errs, fmt.Errorf("%s is not set: the sidecar is started by injection, which sets it", name))
		}
	}
	need("POD_NAME", c.Pod)
	need("POD_NAMESPACE", c.Namespace)
	need("INSTANCE_IP", c.Address)
	need("CA_ADDR", c.ControlPlane)
	if c.Address != "" {
		if _, err := netip.ParseAddr(c.Address); err != nil {
			errs = append(errs, fmt.Errorf("INSTANCE_IP: %w", err))
		}
	}
	return errors.Join(errs...)
}

func (c *Config) defaults() {
	if c.ServiceAccount == "" {
		c.ServiceAccount = "default"
	}
	if c.ServerName == "" {
		c.ServerName = mesh.ControlPlane + "." + mesh.RootNamespace + ".svc"
	}
	if c.Ports == nil {
		c.Ports = &Ports{mesh.OutboundPort, mesh.InboundPort, mesh.HealthPort, mesh.StatusPort, mesh.MetricsPort}
	}
	if c.Network == nil {
		c.Network = kernel{}
	}
	if c.Output == nil {
		c.Output = io.Discard
	}
	if c.Log == nil {
		c.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
}

// parseLabels reads what the downward API writes: key="value", one a line.
func parseLabels(s string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(s) {
		k, v, ok := strings.Cut(strings.TrimSpace(line), "=")
		if ok {
			out[k] = strings.Trim(v, `"`)
		}
	}
	return out
}

func (c *Config) identity() mesh.Identity {
	return mesh.Identity{TrustDomain: mesh.TrustDomain, Namespace: c.Namespace, ServiceAccount: c.ServiceAccount}
}

func (c *Config) workload() mesh.Workload { return mesh.WorkloadOf(c.Workload, c.Namespace, c.Labels) }

// nodeID is how the control plane knows this proxy.
func (c *Config) nodeID() string {
	return "sidecar~" + c.Address + "~" + c.Pod + "." + c.Namespace + "~" + c.Namespace + ".svc.cluster.local"
}
