package app

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/base/garbage"
	"github.com/periplus/periplus/base/jointoken"
	"github.com/periplus/periplus/base/pki"
	"github.com/periplus/periplus/client"
	"github.com/periplus/periplus/client/checkpoint"
	"github.com/periplus/periplus/journey"
	"github.com/periplus/periplus/kubelet/bootstrap"
)

func (c *Config) agentDir() string    { return filepath.Join(c.StateDir, "agent") }
func (c *Config) serversFile() string { return filepath.Join(c.agentDir(), "servers.json") }

// Agent runs a node of a cluster whose servers are elsewhere, until ctx ends. The
// first time it joins with the token; later it needs none.
func Agent(ctx context.Context, c *Config, log *slog.Logger, progress Progress) error {
	garbage.Tune()
	if os.Geteuid() != 0 {
		return errors.New("peri agent needs root, to make containers and networks: run it with sudo")
	}
	if err := preflightAgent(c); err != nil {
		return err
	}
	id, err := member(ctx, c)
	if err != nil {
		return err
	}
	if id.expired {
		log.Warn("The certificate of this node has expired while it was away: pods run, but the server does not know this node any more. Start it with --server and --token to join again")
	}
	release, err := openState(c.StateDir)
	if err != nil {
		return err
	}
	defer release()
	if id.fresh != nil {
		if err := bootstrap.Save(c.agentDir(), id.fresh); err != nil {
			return err
		}
	}
	if err := writePid(c); err != nil {
		return err
	}
	defer os.Remove(c.PidFile())
	kept, err := openCheckpoints(c, log)
	if err != nil {
		return err
	}
	a, err := newAgent(c, id.servers, kept, log)
	if err != nil {
		return errors.Join(err, kept.store.Close())
	}
	return runStages(ctx, a.stages(), progress)
}

// membership is a machine's place in a cluster, new or old.
type membership struct {
	fresh   *bootstrap.Membership // nil: it is in the state directory
	servers []string
	expired bool // the certificate is of no use any more
}

// member joins the cluster, unless this machine has done so before.
func member(ctx context.Context, c *Config) (*membership, error) {
	known, _, err := bootstrap.Open(c.agentDir(), c.NodeName)
	switch {
	case errors.Is(err, bootstrap.ErrNoMember):
	case err != nil:
		return nil, err
	case !known.Expired():
		return &membership{servers: c.knownServers()}, nil
	}
	if known != nil && (c.Server == "" || c.Token == "") && checkpoint.Exists(c.checkpointFile()) {
		// Its pods run all the same.
		return &membership{servers: c.knownServers(), expired: true}, nil
	}
	if c.Server == "" || c.Token == "" {
		what := "this machine has not joined a cluster yet"
		if known != nil {
			what = "the certificate of this node has expired while it was away"
		}
		return nil, fmt.Errorf("%s: give --server https://HOST:6443 and --token TOKEN, as \"peri token create --print-join-command\" prints them on a server", what)
	}
	server, err := bootstrap.ParseServer(c.Server)
	if err != nil {
		return nil, err
	}
	token, err := c.joinToken()
	if err != nil {
		return nil, err
	}
	fresh, err := bootstrap.Join(ctx, bootstrap.Options{Server: server, Token: token, Node: c.NodeName})
	if err != nil {
		return nil, err
	}
	return &membership{fresh: fresh, servers: []string{server.Host}}, nil
}

// joinToken reads the token from the flag, or from the file that it names.
func (c *Config) joinToken() (jointoken.Token, error) {
	text := c.Token
	if path, ok := strings.CutPrefix(text, "@"); ok {
		data, err := os.ReadFile(path)
		if err != nil {
			return jointoken.Token{}, fmt.Errorf("token: %w", err)
		}
		text = string(data)
	}
	t, err := jointoken.Parse(text)
	if err != nil {
		return t, fmt.Errorf("token: %w", err)
	}
	return t, nil
}

// knownServers are those that the cluster had when it was last seen, and the one
// that was given.
func (c *Config) knownServers() []string {
	var list []string
	if data, err := os.ReadFile(c.serversFile()); err == nil {
		_ = json.Unmarshal(data, &list) // damaged: the flag has one
	}
	if u, err := url.Parse(c.Server); err == nil && u.Host != "" {
		if u, err := bootstrap.ParseServer(c.Server); err == nil {
			list = append(list, u.Host)
		}
	}
	return list
}

// agent is a node without a server.
type agent struct {
	worker   *worker
	identity *bootstrap.Identity
	servers  *client.Servers
	client   *kubernetes.Clientset
	spans    *journey.Remote
}

func newAgent(c *Config, servers []string, kept *checkpoints, log *slog.Logger) (*agent, error) {
	id, settings, err := bootstrap.Open(c.agentDir(), c.NodeName)
	if err != nil {
		return nil, err
	}
	if len(servers) == 0 {
		return nil, errors.New("server: the cluster's servers are not known any more: give --server https://HOST:6443")
	}
	if err := c.adopt(settings); err != nil {
		return nil, err
	}
	ip, err := nodeIP(c)
	if err != nil {
		return nil, err
	}
	a := &agent{identity: id, servers: client.NewServers(servers...)}
	transport := a.servers.Transport(&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: id.Pool(), GetClientCertificate: id.Client})
	connect := func(component string) (*restclient.Config, error) {
		return client.ServersConfig(transport, component), nil
	}
	config, err := connect("agent")
	if err != nil {
		return nil, err
	}
	if a.client, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	if a.spans, err = remoteJourney(config); err != nil {
		return nil, err
	}
	s := &controlPlane{config: c, log: log, nodeIP: ip, record: a.spans, connect: connect}
	a.worker = s.worker()
	shared := kept.wire(a.worker, a.client)
	a.worker.serving, a.worker.clientCAs = id.Server, id.Pool
	a.worker.shared = func() informers.SharedInformerFactory { return shared }
	return a, nil
}

func (a *agent) stages() []stage {
	w := a.worker
	return append(w.stages("checkpoints"), w.kept.stage(),
		stage{name: "journey", run: func(ctx context.Context, ready func()) error {
			ready()
			return a.spans.Run(ctx)
		}},
		stage{name: "certificates", run: func(ctx context.Context, ready func()) error {
			ready()
			return a.identity.Run(ctx, bootstrap.Renewal{
				Client: a.client, IPs: []net.IP{w.nodeIP.AsSlice()}, OnClient: a.servers.CloseAll, Log: w.log.With(base.KeyComponent, "certificates"),
			})
		}},
		a.serversStage(),
	)
}

// stages are the parts of a node.
func (w *worker) stages(after ...string) []stage {
	gateway := []string{ReadyNode}
	if w.together {
		gateway = append(gateway, "addons") // which make its rights
	}
	return []stage{
		w.runtimeStage(), w.kubeletStage(after...), w.proxyStage(after...), w.dnsStage(after...), w.answersStage(after...),
		w.networkStage(after...), w.policyStage(after...), w.readyStage(), w.gatewayStage(gateway...),
		settleStage(w.log, ReadyNode),
	}
}

// preflightAgent finds what could only fail, before the cluster hears of it.
func preflightAgent(c *Config) error {
	server := *c
	server.APIPort = 0
	return preflight(&server)
}

// saveServers keeps the list for the next start.
func (c *Config) saveServers(list []string) error {
	data, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return pki.WriteFile(c.serversFile(), data, 0o644)
}
