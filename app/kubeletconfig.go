package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/kubelet"
	"github.com/periplus/periplus/kubelet/affinity"
	"github.com/periplus/periplus/kubelet/eviction"
	"github.com/periplus/periplus/kubelet/imagegc"
	"github.com/periplus/periplus/kubelet/shutdown"
	"github.com/periplus/periplus/linux/logind"
)

// KubeletConfig is what the node keeps for itself and when it makes room. Names and
// defaults are those of upstream's kubelet.
type KubeletConfig struct {
	EvictionHard       map[string]string `json:"eviction-hard,omitempty"`
	EvictionSoft       map[string]string `json:"eviction-soft,omitempty"`
	EvictionSoftGrace  map[string]string `json:"eviction-soft-grace-period,omitempty"`
	EvictionReclaim    map[string]string `json:"eviction-minimum-reclaim,omitempty"`
	EvictionTransition metav1.Duration   `json:"eviction-pressure-transition-period"`
	EvictionMaxGrace   int64             `json:"eviction-max-pod-grace-period,omitempty"`

	ImageGCHigh   int             `json:"image-gc-high-threshold"`
	ImageGCLow    int             `json:"image-gc-low-threshold"`
	ImageGCMinAge metav1.Duration `json:"minimum-image-ttl-duration"`
	ImageGCMaxAge metav1.Duration `json:"maximum-image-gc-age"`

	KubeReserved     map[string]string `json:"kube-reserved,omitempty"`
	SystemReserved   map[string]string `json:"system-reserved,omitempty"`
	CPUPolicy        string            `json:"cpu-manager-policy"`
	CPUPolicyOptions map[string]string `json:"cpu-manager-policy-options,omitempty"`
	MemoryPolicy     string            `json:"memory-manager-policy"`
	TopologyPolicy   string            `json:"topology-manager-policy"`
	TopologyScope    string            `json:"topology-manager-scope"`
	ReservedCPUs     string            `json:"reserved-cpus,omitempty"`

	MaxPods      int   `json:"max-pods,omitempty"`
	PodPidsLimit int64 `json:"pod-max-pids,omitempty"`

	AllowedSysctls []string `json:"allowed-unsafe-sysctls,omitempty"`

	ShutdownGrace         metav1.Duration `json:"shutdown-grace-period"`
	ShutdownGraceCritical metav1.Duration `json:"shutdown-grace-period-critical-pods"`
}

func defaultKubeletConfig() KubeletConfig {
	e, g, a := eviction.Defaults(), imagegc.DefaultPolicy(), affinity.DefaultPolicies()
	return KubeletConfig{
		EvictionHard: e.Hard, EvictionTransition: metav1.Duration{Duration: e.TransitionPeriod},
		ImageGCHigh: g.HighPercent, ImageGCLow: g.LowPercent, ImageGCMinAge: metav1.Duration{Duration: g.MinAge},
		MaxPods: 110, PodPidsLimit: -1, CPUPolicy: a.CPU, MemoryPolicy: a.Memory, TopologyPolicy: a.Topology, TopologyScope: a.Scope,
	}
}

func (c *KubeletConfig) flags(f *pflag.FlagSet) {
	pairs := func(m *map[string]string, name, usage string) { f.Var((*pairsFlag)(m), name, usage) }
	duration := func(d *metav1.Duration, name, usage string) { f.DurationVar(&d.Duration, name, d.Duration, usage) }
	pairs(&c.EvictionHard, "eviction-hard", "what must be left at least, else pods are evicted at once: memory.available=100Mi,nodefs.available=10%")
	pairs(&c.EvictionSoft, "eviction-soft", "what should be left; pods are evicted when it is not for eviction-soft-grace-period")
	pairs(&c.EvictionSoftGrace, "eviction-soft-grace-period", "how long, by signal: memory.available=1m30s")
	pairs(&c.EvictionReclaim, "eviction-minimum-reclaim", "how much more must be left before it is over")
	duration(&c.EvictionTransition, "eviction-pressure-transition-period", "how long a condition of the node like MemoryPressure stands at least")
	f.Int64Var(&c.EvictionMaxGrace, "eviction-max-pod-grace-period", c.EvictionMaxGrace, "seconds that pods have at most which are evicted for a soft threshold")
	f.IntVar(&c.ImageGCHigh, "image-gc-high-threshold", c.ImageGCHigh, "percent of the disk in use from which on unused images are removed (100: never)")
	f.IntVar(&c.ImageGCLow, "image-gc-low-threshold", c.ImageGCLow, "percent of the disk in use down to which they are")
	duration(&c.ImageGCMinAge, "minimum-image-ttl-duration", "how old an unused image must be at least")
	duration(&c.ImageGCMaxAge, "maximum-image-gc-age", "how long an image may be unused before it is removed, however much room there is (0: for ever)")
	pairs(&c.KubeReserved, "kube-reserved", "what is kept for Kubernetes: cpu=200m,memory=500Mi,ephemeral-storage=1Gi")
	pairs(&c.SystemReserved, "system-reserved", "what is kept for the rest of the system")
	f.StringVar(&c.CPUPolicy, "cpu-manager-policy", c.CPUPolicy, "static: containers of Guaranteed pods with whole processors get them for themselves")
	pairs(&c.CPUPolicyOptions, "cpu-manager-policy-options", "full-pcpus-only=true: whole cores only")
	f.StringVar(&c.MemoryPolicy, "memory-manager-policy", c.MemoryPolicy, "Static: memory of Guaranteed pods comes from as few NUMA nodes as possible")
	f.StringVar(&c.TopologyPolicy, "topology-manager-policy", c.TopologyPolicy, "how near to each other processors, memory and devices must be: none, best-effort, restricted or single-numa-node")
	f.StringVar(&c.TopologyScope, "topology-manager-scope", c.TopologyScope, "of each container, or of all of a pod: container or pod")
	f.StringVar(&c.ReservedCPUs, "reserved-cpus", c.ReservedCPUs, "processors that no container gets for itself: 0,2-3 (default: as many as are reserved)")
	f.IntVar(&c.MaxPods, "max-pods", c.MaxPods, "how many pods run on this node at most")
	f.Int64Var(&c.PodPidsLimit, "pod-max-pids", c.PodPidsLimit, "how many processes a pod may have (-1: as many as the machine)")
	f.StringSliceVar(&c.AllowedSysctls, "allowed-unsafe-sysctls", c.AllowedSysctls, "sysctls that pods may set besides the safe ones: kernel.msg*,net.core.somaxconn")
	duration(&c.ShutdownGrace, "shutdown-grace-period", "how long the machine's shutdown waits for pods to end (0: not at all); needs systemd-logind")
	duration(&c.ShutdownGraceCritical, "shutdown-grace-period-critical-pods", "how much of it is for critical pods, which end last")
}

// pairsFlag is a list like "a=1,b=2", which replaces the default; "a<1", as upstream
// writes thresholds, is the same.
type pairsFlag map[string]string

func (p *pairsFlag) String() string {
	out := make([]string, 0, len(*p))
	for k, v := range *p {
		out = append(out, k+"="+v)
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

func (p *pairsFlag) Set(s string) error {
	m := map[string]string{}
	for _, pair := range strings.Split(s, ",") {
		if pair == "" {
			continue
		}
		i := strings.IndexAny(pair, "=<")
		if i <= 0 {
			return fmt.Errorf("%q must be of the form name=value", pair)
		}
		m[strings.TrimSpace(pair[:i])] = strings.TrimSpace(pair[i+1:])
	}
	*p = m
	return nil
}

func (p *pairsFlag) Type() string { return "pairs" }

func (c *KubeletConfig) eviction() *eviction.Config {
	return &eviction.Config{
		Hard: c.EvictionHard, Soft: c.EvictionSoft, SoftGracePeriod: c.EvictionSoftGrace, MinimumReclaim: c.EvictionReclaim,
		TransitionPeriod: c.EvictionTransition.Duration, MaxPodGrace: time.Duration(c.EvictionMaxGrace) * time.Second,
	}
}

func (c *KubeletConfig) affinity() *affinity.Policies {
	return &affinity.Policies{CPU: c.CPUPolicy, CPUOptions: c.CPUPolicyOptions, Memory: c.MemoryPolicy, Topology: c.TopologyPolicy, Scope: c.TopologyScope, ReservedCPUs: c.ReservedCPUs}
}

func (c *KubeletConfig) imageGC() *imagegc.Policy {
	return &imagegc.Policy{HighPercent: c.ImageGCHigh, LowPercent: c.ImageGCLow, MinAge: c.ImageGCMinAge.Duration, MaxAge: c.ImageGCMaxAge.Duration}
}

// reserved is the sum of both reservations.
func (c *KubeletConfig) reserved() (corev1.ResourceList, error) {
	out := corev1.ResourceList{}
	var errs []error
	for flag, m := range map[string]map[string]string{"kube-reserved": c.KubeReserved, "system-reserved": c.SystemReserved} {
		for name, text := range m {
			q, err := resource.ParseQuantity(text)
			switch {
			case name != "cpu" && name != "memory" && name != "ephemeral-storage" && name != "pid":
				errs = append(errs, fmt.Errorf("%s: %s is not allowed: must be cpu, memory, ephemeral-storage or pid", flag, name))
			case err != nil || q.Sign() < 0:
				errs = append(errs, fmt.Errorf("%s: %s=%s is not allowed: must be a quantity like 500Mi", flag, name, text))
			default:
				sum := out[corev1.ResourceName(name)]
				sum.Add(q)
				out[corev1.ResourceName(name)] = sum
			}
		}
	}
	return out, errors.Join(errs...)
}

func (c *KubeletConfig) validate() error {
	_, thresholds := eviction.Parse(*c.eviction())
	kept, reserved := c.reserved()
	_, periods := shutdown.Periods(c.ShutdownGrace.Duration, c.ShutdownGraceCritical.Duration)
	var more error
	if c.MaxPods < 0 {
		more = fmt.Errorf("max-pods: %d is not allowed: must not be negative", c.MaxPods)
	}
	return errors.Join(c.affinity().Validate(kept.Cpu().MilliValue()), thresholds, c.imageGC().Validate(), reserved, periods, more)
}

// apply fills what the kubelet's own configuration has of it. Validate was called.
func (c *KubeletConfig) apply(k *kubelet.Config) {
	k.Eviction, k.ImageGC, k.MaxPods, k.PodPidsLimit = c.eviction(), c.imageGC(), c.MaxPods, c.PodPidsLimit
	k.Node.Reserved, _ = c.reserved()
	k.ShutdownPeriods, _ = shutdown.Periods(c.ShutdownGrace.Duration, c.ShutdownGraceCritical.Duration)
	k.AllowedSysctls = c.AllowedSysctls
	k.Login = connectLogin
	k.Affinity = c.affinity()
}

// login is *logind.Conn in the words of the kubelet.
type login struct{ *logind.Conn }

func (l login) Inhibit(ctx context.Context) (io.Closer, error) { return l.Conn.Inhibit(ctx) }

func connectLogin() (shutdown.Login, error) {
	c, err := logind.Connect()
	if err != nil {
		return nil, err
	}
	return login{c}, nil
}
