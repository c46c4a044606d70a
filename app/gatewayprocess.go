package app

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	restclient "k8s.io/client-go/rest"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/base/pki"
	"github.com/periplus/periplus/client"
	"github.com/periplus/periplus/gateway"
	gatewayall "github.com/periplus/periplus/gateway/all"
	"github.com/periplus/periplus/gateway/process"
	"github.com/periplus/periplus/kubelet/bootstrap"
	"github.com/periplus/periplus/mesh/edge"
)

func (c *Config) gatewaySocket() string { return filepath.Join(c.RunDir, "gateway.sock") }
func (c *Config) gatewayConfig() string { return filepath.Join(c.RunDir, "gateway.json") }
func (c *Config) gatewayOutput() string { return filepath.Join(c.StateDir, "logs", "gateway.log") }

// gatewaySettings are what the gateway's process is started with: as little as it needs,
// so that it lives on when something else is changed.
func (c *Config) gatewaySettings() ([]byte, error) {
	g := Defaults()
	g.StateDir, g.RunDir, g.NodeName, g.NodeIP, g.APIPort, g.KubeletPort = c.StateDir, c.RunDir, c.NodeName, c.NodeIP, c.APIPort, c.KubeletPort
	g.IngressHTTPPort, g.IngressHTTPSPort, g.LogLevel, g.LogFormat = c.IngressHTTPPort, c.IngressHTTPSPort, c.LogLevel, c.LogFormat
	return json.Marshal(g)
}

// gatewayFingerprint tells whether a gateway that runs is of this program and configuration.
func (c *Config) gatewayFingerprint() (string, error) {
	settings, err := c.gatewaySettings()
	if err != nil {
		return "", err
	}
	program, err := os.Stat("/proc/self/exe")
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(fmt.Appendf(settings, "\n%s %d %d", Release, program.Size(), program.ModTime().UnixNano()))
	return hex.EncodeToString(sum[:]), nil
}

// gatewayKeeper has the process run while there is something to serve. The zero value
// is for nodes that serve nothing.
type gatewayKeeper struct {
	keeper  *process.Keeper
	changed func()

	mu    sync.Mutex // guards taken
	taken map[int]error
}

// gatewayKeeper returns the keeper of this node's gateway. changed is called when its
// process could open more or fewer ports than before.
func (w *worker) gatewayKeeper(log *slog.Logger, changed func()) *gatewayKeeper {
	k := &gatewayKeeper{changed: changed}
	c := w.config
	if c.DisableAgent || c.IngressHTTPPort == 0 {
		return k
	}
	fingerprint, err := c.gatewayFingerprint()
	if err != nil {
		log.Error("The gateway cannot be run", base.KeyError, err)
		return k
	}
	k.keeper = process.NewKeeper(process.KeeperConfig{
		Socket: c.gatewaySocket(), Fingerprint: fingerprint, Output: c.gatewayOutput(), Taken: k.took, Log: log,
		Command: func() (*exec.Cmd, error) {
			settings, err := c.gatewaySettings()
			if err != nil {
				return nil, err
			}
			if err := pki.WriteFile(c.gatewayConfig(), settings, 0o600); err != nil {
				return nil, err
			}
			cmd := exec.Command("/proc/self/exe", "gateway", "--config", c.gatewayConfig()) //nolint:noctx // it outlives this process
			cmd.Args[0] = "peri"
			return cmd, nil
		},
	})
	return k
}

func (k *gatewayKeeper) want(yes bool) {
	if k.keeper != nil {
		k.keeper.Want(yes)
	}
}

func (k *gatewayKeeper) took(taken map[int]error) {
	k.mu.Lock()
	same := maps.EqualFunc(k.taken, taken, func(a, b error) bool { return a.Error() == b.Error() })
	k.taken = taken
	k.mu.Unlock()
	if !same {
		k.changed()
	}
}

func (k *gatewayKeeper) ports() map[int]error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.taken
}

func (k *gatewayKeeper) run(ctx context.Context) error {
	if k.keeper == nil {
		return nil
	}
	return k.keeper.Run(ctx)
}

// errDrained says that another gateway has taken this one's place, or that there is
// nothing to serve any more.
var errDrained = errors.New("the gateway is not needed any more")

// runGateway is the process: it reads the API as this node, on servers as on agents,
// and serves until it is told to drain.
func runGateway(ctx context.Context, c *Config, log *slog.Logger, progress Progress) error {
	log = log.With(base.KeyComponent, "gateway")
	fingerprint, err := c.gatewayFingerprint()
	if err != nil {
		return err
	}
	s, spans, err := beginNode(c, log)
	if err != nil {
		return err
	}
	child := process.NewChild(c.gatewaySocket(), fingerprint, log)
	err = runStages(ctx, []stage{spans, s.worker().servingStage(child), settleStage(log, "gateway")}, progress)
	if errors.Is(err, errDrained) {
		return nil
	}
	return err
}

// beginNode prepares a process that reaches the API as this node.
func beginNode(c *Config, log *slog.Logger) (*controlPlane, stage, error) {
	id, _, err := bootstrap.Open(c.agentDir(), c.NodeName)
	if errors.Is(err, bootstrap.ErrNoMember) {
		return beginRemote(c, log, "kubelet")
	}
	if err != nil {
		return nil, stage{}, err
	}
	s, err := begin(c, log)
	if err != nil {
		return nil, stage{}, err
	}
	servers := client.NewServers(c.knownServers()...)
	transport := servers.Transport(&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: id.Pool(), GetClientCertificate: id.Renewed})
	s.connect = func(component string) (*restclient.Config, error) {
		return client.ServersConfig(transport, component), nil
	}
	config, err := s.connect("gateway")
	if err != nil {
		return nil, stage{}, err
	}
	cs, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, stage{}, err
	}
	record, err := remoteJourney(config)
	if err != nil {
		return nil, stage{}, err
	}
	s.record, s.shared = record, client.NewFactory(cs, nil)
	return s, stage{name: "journey", run: func(ctx context.Context, ready func()) error {
		ready()
		return record.Run(ctx)
	}}, nil
}

// servingStage is the gateway in its own process.
func (w *worker) servingStage(child *process.Child) stage {
	return stage{name: "gateway", run: func(ctx context.Context, ready func()) error {
		config, err := w.connect("gateway")
		if err != nil {
			return err
		}
		c, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		sources := gatewayall.Config{Client: c, Informers: w.shared(), Log: w.log}
		if sources.Dynamic, err = dynamic.NewForConfig(config); err != nil {
			return err
		}
		if sources.Metadata, err = metadata.NewForConfig(config); err != nil {
			return err
		}
		follower := edge.NewFollower(c, w.log)
		server, err := gateway.New(gateway.Config{
			Sources: gatewayall.Sources(sources), Informers: w.shared(), HTTPPort: w.config.IngressHTTPPort, HTTPSPort: w.config.IngressHTTPSPort,
			SecretClient: c, Mesh: follower, Listen: child.Listen, OnApplied: child.Applied,
			Journey: w.record, Node: w.config.NodeName, Began: child.Began(), Log: w.log,
		})
		if err != nil {
			return err
		}
		w.shared().StartWithContext(ctx)
		return base.RunAll(ctx,
			base.Component{Name: "gateway", Run: server.Run},
			base.Component{Name: "edge of the mesh", Run: func(ctx context.Context) error { return follower.Run(ctx, server.Refresh) }},
			base.Component{Name: "socket", Run: func(ctx context.Context) error {
				return child.Run(ctx, func() {
					process.Announce()
					ready()
				})
			}},
			base.Component{Name: "end", Run: func(ctx context.Context) error {
				select {
				case <-child.Drained():
					return errDrained
				case <-ctx.Done():
					return nil
				}
			}},
		)
	}}
}
