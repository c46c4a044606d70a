package kubelet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/periplus/periplus/cri"
	"github.com/periplus/periplus/journey"
	"github.com/periplus/periplus/kubelet/affinity"
	"github.com/periplus/periplus/kubelet/eviction"
	"github.com/periplus/periplus/kubelet/imagegc"
	"github.com/periplus/periplus/kubelet/node"
	"github.com/periplus/periplus/kubelet/shutdown"
)

// Config is everything a Kubelet needs. Fields without a default are required.
type Config struct {
	NodeName string
	Client   kubernetes.Interface

	// Pods holds the pods with spec.nodeName = NodeName. The caller runs it.
	Pods cache.SharedIndexInformer
	// PodsLive waits until the API itself has been asked for Pods, which may first come
	// from a checkpoint, and returns the pods that it had then: before that no pod counts
	// as deleted. Nil: what Pods holds when it has synced is what the API has.
	PodsLive func(context.Context) ([]types.UID, error)
	// Statuses keeps what the API could not be told. Nil: a later life does without.
	Statuses Statuses
	// NodeInformer holds (at least) this node's own object. The caller runs it.
	NodeInformer cache.SharedIndexInformer
	// Services feeds the service environment variables. Nil: there are none.
	Services corelisters.ServiceLister
	// ServicesSynced is closed when Services is complete; pods wait for it. Nil: no wait.
	ServicesSynced <-chan struct{}
	// Objects reads ConfigMaps and Secrets. Default: the client, live.
	Objects Objects

	Runtime cri.Runtime
	Images  cri.Images
	// Volumes mounts the pods' volumes. Nil: pods with volumes wait for ever.
	Volumes Volumes
	// Cgroups makes the pods' cgroups. Nil: the runtime chooses.
	Cgroups Cgroups

	Events  record.EventRecorder // default: events are dropped
	Journey journey.Recorder     // default: journey.Discard
	Log     *slog.Logger         // default: slog.Default

	// Node configures the node's own object. Name, Client, Informer, Runtime,
	// Images, Log and MaxPods are filled in from this Config.
	Node node.Config

	// RootDir holds pods/<uid>/… Default /var/lib/kubelet.
	RootDir string
	// LogDir holds <namespace>_<name>_<uid>/<container>/<n>.log. Default /var/log/pods.
	LogDir string
	// StaticPodPath is a directory of manifests of static pods. Empty: none.
	StaticPodPath string

	// ClusterDNS is the name servers of pods with dnsPolicy ClusterFirst.
	ClusterDNS []string
	// ClusterDomain defaults to cluster.local.
	ClusterDomain string
	// ResolvConf is the host's resolver configuration. Default /etc/resolv.conf.
	ResolvConf string
	// HostsFile is the host's /etc/hosts, for pods on the host network.
	HostsFile string

	// Eviction says when the node is short of something; nil: never. ImageGC says
	// which images are removed when; nil: none.
	Eviction *eviction.Config
	ImageGC  *imagegc.Policy
	// ShutdownPeriods are how long pods have to end when the machine goes down, which
	// Login tells. None: they end when the machine does.
	ShutdownPeriods []shutdown.Period
	Login           func() (shutdown.Login, error)
	// Affinity gives containers processors and memory of their own; nil: none.
	Affinity *affinity.Policies
	// Observe replaces what is read of the machine, for tests.
	Observe func() eviction.Observations

	// MaxPods is how many pods run here at most. Default 110.
	MaxPods int
	// AllowedSysctls are names, or prefixes with a *, that pods may set besides the safe ones.
	AllowedSysctls []string
	// PodPidsLimit is how many processes a pod may have; it is told only, Cgroups sees to
	// it. -1: as many as the machine.
	PodPidsLimit int64
	// MemoryCapacity in bytes, for the OOM scores. Default: the machine's.
	MemoryCapacity int64

	// BackOffInitial and BackOffMax bound the delay between restarts of a crashing
	// container and between image pulls: it doubles. Defaults 10 s and 5 min.
	BackOffInitial, BackOffMax time.Duration
	// StatusDelay is how long the report of a pod that is still being started is
	// held back, so that a quick start is one write. Default 300 ms.
	StatusDelay time.Duration
}

func (c *Config) withDefaults() error {
	def := func(s *string, v string) {
		if *s == "" {
			*s = v
		}
	}
	def(&c.RootDir, "/var/lib/kubelet")
	def(&c.LogDir, "/var/log/pods")
	def(&c.ClusterDomain, "cluster.local")
	def(&c.ResolvConf, "/etc/resolv.conf")
	def(&c.HostsFile, "/etc/hosts")
	if c.MaxPods == 0 {
		c.MaxPods = 110
	}
	if c.BackOffInitial == 0 {
		c.BackOffInitial = 10 * time.Second
	}
	if c.BackOffMax == 0 {
		c.BackOffMax = 5 * time.Minute
	}
	if c.StatusDelay == 0 {
		c.StatusDelay = 300 * time.Millisecond
	}
	if c.Journey == nil {
		c.Journey = journey.Discard
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Events == nil {
		c.Events = noEvents{}
	}
	if c.Objects == nil && c.Client != nil {
		c.Objects = liveObjects{c.Client}
	}
	if c.MemoryCapacity == 0 {
		c.MemoryCapacity = node.MemoryCapacity()
	}
	return c.validate()
}

func (c *Config) validate() error {
	var errs []error
	need := func(ok bool, field string) {
		if !ok {
			errs = append(errs, fmt.Errorf("kubelet: %s is required", field))
		}
	}
	need(c.NodeName != "", "NodeName")
	need(c.Client != nil, "Client")
	need(c.Pods != nil, "Pods")
	need(c.Runtime != nil, "Runtime")
	need(c.Images != nil, "Images")
	for field, p := range map[string]string{"RootDir": c.RootDir, "LogDir": c.LogDir} {
		if !filepath.IsAbs(p) {
			errs = append(errs, fmt.Errorf("kubelet: %s %q must be an absolute path", field, p))
		}
	}
	if c.MaxPods < 0 {
		errs = append(errs, fmt.Errorf("kubelet: MaxPods %d must not be negative", c.MaxPods))
	}
	return errors.Join(errs...)
}

// podDir is where everything of a pod that is not the runtime's lives.
func (k *Kubelet) podDir(pod *corev1.Pod) string {
	return filepath.Join(k.cfg.RootDir, "pods", string(pod.UID))
}

// podLogDir is the directory of a pod's container logs.
func (k *Kubelet) podLogDir(pod *corev1.Pod) string {
	return filepath.Join(k.cfg.LogDir, pod.Namespace+"_"+pod.Name+"_"+string(pod.UID))
}
