package app

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/periplus/periplus/base/garbage"
	"github.com/periplus/periplus/client"
	"github.com/periplus/periplus/journey"
)

// A Daemon runs one part of the cluster in a process of its own.
type Daemon struct {
	Name  string
	Short string
	Run   func(ctx context.Context, c *Config, log *slog.Logger, progress Progress) error
}

// Daemons lists the parts that can run alone.
func Daemons() []Daemon {
	return []Daemon{
		{"etcd", "run etcd alone", runEtcd},
		{"apiserver", "run the API server alone, with an embedded etcd or --etcd-servers", runAPIServer},
		{"controller-manager", "run the controllers alone", runControllers},
		{"scheduler", "run the scheduler alone", runScheduler},
		{"kubelet", "run the kubelet alone, with the embedded container runtime or --container-runtime-endpoint", runKubelet},
		{"containers", "run the container runtime alone", runContainers},
		{"gateway", "run the gateway of a node alone, as peri does when there is an Ingress or a Gateway", runGateway},
		{"proxy", "run the Service proxy and DNS alone", runProxy},
	}
}

func begin(c *Config, log *slog.Logger) (*controlPlane, error) {
	garbage.Tune()
	ip, err := nodeIP(c)
	if err != nil {
		return nil, err
	}
	return &controlPlane{config: c, log: log, nodeIP: ip, record: journey.Discard, metrics: newProcessMetrics()}, nil
}

func runEtcd(ctx context.Context, c *Config, log *slog.Logger, progress Progress) error {
	release, err := openState(c.StateDir)
	if err != nil {
		return err
	}
	defer release()
	s, err := begin(c, log)
	if err != nil {
		return err
	}
	return runStages(ctx, []stage{s.etcdStage()}, progress)
}

func runAPIServer(ctx context.Context, c *Config, log *slog.Logger, progress Progress) error {
	release, err := openState(c.StateDir)
	if err != nil {
		return err
	}
	defer release()
	s, err := begin(c, log)
	if err != nil {
		return err
	}
	if s.id, err = openIdentities(c, s.nodeIP); err != nil {
		return err
	}
	if err := writeKubeconfigs(c, s.id); err != nil {
		return err
	}
	s.spans = journey.NewLog()
	s.record = s.spans
	return runStages(ctx, []stage{s.etcdStage(), s.apiStage(), s.addonsStage(), renewalStage(s.id)}, progress)
}

// componentKubeconfig is where a component finds its identity: the one given,
// else the one that the API server wrote into the state directory.
func (c *Config) componentKubeconfig(component string) (string, error) {
	if c.ComponentKubeconfig != "" {
		return c.ComponentKubeconfig, nil
	}
	path := filepath.Join(c.pkiDir(), component+".kubeconfig")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("no kubeconfig for the %s: start peri apiserver with the same --state-dir first, or give --kubeconfig", component)
	}
	return path, nil
}

// beginRemote prepares a process that reaches the API over TLS.
func beginRemote(c *Config, log *slog.Logger, component string) (*controlPlane, stage, error) {
	s, err := begin(c, log)
	if err != nil {
		return nil, stage{}, err
	}
	path, err := c.componentKubeconfig(component)
	if err != nil {
		return nil, stage{}, err
	}
	s.connect = func(name string) (*restclient.Config, error) { return remote(path, name) }
	config, err := s.connect(component)
	if err != nil {
		return nil, stage{}, err
	}
	spans, err := remoteJourney(config)
	if err != nil {
		return nil, stage{}, err
	}
	s.record = spans
	cs, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, stage{}, err
	}
	s.shared = client.NewFactory(cs, nil)
	return s, stage{name: "journey", run: func(ctx context.Context, ready func()) error {
		ready()
		return spans.Run(ctx)
	}}, nil
}

// alone drops what a stage waits for: other processes run it.
func alone(s stage) stage {
	s.after = nil
	return s
}

func runControllers(ctx context.Context, c *Config, log *slog.Logger, progress Progress) error {
	s, spans, err := beginRemote(c, log, "controller-manager")
	if err != nil {
		return err
	}
	if s.id, err = openIdentities(c, s.nodeIP); err != nil {
		return err
	}
	return runStages(ctx, []stage{spans, alone(s.controllersStage())}, progress)
}

func runScheduler(ctx context.Context, c *Config, log *slog.Logger, progress Progress) error {
	s, spans, err := beginRemote(c, log, "scheduler")
	if err != nil {
		return err
	}
	return runStages(ctx, []stage{spans, alone(s.schedulerStage())}, progress)
}

func (s *controlPlane) worker() *worker {
	name := s.config.NodeName
	w := &worker{
		config: s.config, log: s.log, nodeIP: s.nodeIP, record: s.record, connect: s.connect,
		shared: func() informers.SharedInformerFactory { return s.shared },
		pods: func(c kubernetes.Interface) cache.SharedIndexInformer {
			return single(c, "pods", &corev1.Pod{}, fields.OneTermEqualSelector("spec.nodeName", name))
		},
		nodes: func(c kubernetes.Interface) cache.SharedIndexInformer {
			return single(c, "nodes", &corev1.Node{}, fields.OneTermEqualSelector("metadata.name", name))
		},
		objectInformers: func(informers.SharedInformerFactory) informers.SharedInformerFactory { return nil },
	}
	if s.id != nil {
		w.serving, w.clientCAs = s.id.kubelet.Server, s.id.ca.Pool
	}
	return w
}

// single returns an informer of the objects that a field selector picks.
func single(c kubernetes.Interface, resource string, example runtime.Object, s fields.Selector) cache.SharedIndexInformer {
	lw := cache.NewListWatchFromClient(c.CoreV1().RESTClient(), resource, metav1.NamespaceAll, s)
	return cache.NewSharedIndexInformer(lw, example, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
}

func runKubelet(ctx context.Context, c *Config, log *slog.Logger, progress Progress) error {
	s, spans, err := beginRemote(c, log, "kubelet")
	if err != nil {
		return err
	}
	if s.id, err = openIdentities(c, s.nodeIP); err != nil {
		return err
	}
	w := s.worker()
	return runStages(ctx, []stage{spans, w.runtimeStage(), w.kubeletStage(), w.answersStage("kubelet"), renewalStage(s.id)}, progress)
}

func runContainers(ctx context.Context, c *Config, log *slog.Logger, progress Progress) error {
	s, err := begin(c, log)
	if err != nil {
		return err
	}
	return runStages(ctx, []stage{s.worker().runtimeStage()}, progress)
}

func runProxy(ctx context.Context, c *Config, log *slog.Logger, progress Progress) error {
	s, spans, err := beginRemote(c, log, "proxy")
	if err != nil {
		return err
	}
	w := s.worker()
	return runStages(ctx, []stage{spans, w.proxyStage(), w.dnsStage(), w.networkStage(), w.policyStage()}, progress)
}
