package app

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/controllers"
	controllersall "github.com/periplus/periplus/controllers/all"
)

// ControllersConfig is how controllers work, under upstream's names and with its defaults.
type ControllersConfig struct {
	// How many objects of a kind are brought to their declared state at a time.
	DeploymentSyncs            int `json:"concurrent-deployment-syncs"`
	ReplicaSetSyncs            int `json:"concurrent-replicaset-syncs"`
	ReplicationControllerSyncs int `json:"concurrent-rc-syncs"`
	StatefulSetSyncs           int `json:"concurrent-statefulset-syncs"`
	DaemonSetSyncs             int `json:"concurrent-daemonset-syncs"`
	JobSyncs                   int `json:"concurrent-job-syncs"`
	CronJobSyncs               int `json:"concurrent-cron-job-syncs"`
	EndpointSyncs              int `json:"concurrent-endpoint-syncs"`
	ServiceEndpointSyncs       int `json:"concurrent-service-endpoint-syncs"`
	GCSyncs                    int `json:"concurrent-gc-syncs"`
	NamespaceSyncs             int `json:"concurrent-namespace-syncs"`
	ResourceQuotaSyncs         int `json:"concurrent-resource-quota-syncs"`
	ServiceAccountTokenSyncs   int `json:"concurrent-serviceaccount-token-syncs"`
	TTLAfterFinishedSyncs      int `json:"concurrent-ttl-after-finished-syncs"`
	AutoscalerSyncs            int `json:"concurrent-horizontal-pod-autoscaler-syncs"`
	EphemeralVolumeSyncs       int `json:"concurrent-ephemeralvolume-syncs"`
	PolicyStatusSyncs          int `json:"concurrent-validating-admission-policy-status-syncs"`

	AutoscalerPeriod            metav1.Duration `json:"horizontal-pod-autoscaler-sync-period"`
	AutoscalerStabilization     metav1.Duration `json:"horizontal-pod-autoscaler-downscale-stabilization"`
	AutoscalerTolerance         float64         `json:"horizontal-pod-autoscaler-tolerance"`
	AutoscalerCPUInitialization metav1.Duration `json:"horizontal-pod-autoscaler-cpu-initialization-period"`
	AutoscalerReadinessDelay    metav1.Duration `json:"horizontal-pod-autoscaler-initial-readiness-delay"`

	NodeGracePeriod       metav1.Duration `json:"node-monitor-grace-period"`
	NodeStartupGrace      metav1.Duration `json:"node-startup-grace-period"`
	EvictionRate          float64         `json:"node-eviction-rate"`
	SecondaryEvictionRate float64         `json:"secondary-node-eviction-rate"`
	UnhealthyZone         float64         `json:"unhealthy-zone-threshold"`
	LargeCluster          int             `json:"large-cluster-size-threshold"`

	TerminatedPods    int             `json:"terminated-pod-gc-threshold"` // 0: all stay
	SigningDuration   metav1.Duration `json:"cluster-signing-duration"`
	EndpointsPerSlice int32           `json:"max-endpoints-per-slice"`
}

// A syncs is how many keys of a controller are reconciled at a time.
type syncs struct {
	flag, controller, of string
	value                *int
	otherwise            int
}

func (c *ControllersConfig) syncs() []syncs {
	return []syncs{
		{"concurrent-deployment-syncs", "deployment-controller", "deployments", &c.DeploymentSyncs, 5},
		{"concurrent-replicaset-syncs", "replicaset-controller", "replica sets", &c.ReplicaSetSyncs, 5},
		{"concurrent-rc-syncs", "replicationcontroller-controller", "replication controllers", &c.ReplicationControllerSyncs, 5},
		{"concurrent-statefulset-syncs", "statefulset-controller", "stateful sets", &c.StatefulSetSyncs, 5},
		{"concurrent-daemonset-syncs", "daemonset-controller", "daemon sets", &c.DaemonSetSyncs, 2},
		{"concurrent-job-syncs", "job-controller", "jobs", &c.JobSyncs, 5},
		{"concurrent-cron-job-syncs", "cronjob-controller", "cron jobs", &c.CronJobSyncs, 5},
		{"concurrent-endpoint-syncs", "endpoints-controller", "Services whose Endpoints are written", &c.EndpointSyncs, 5},
		{"concurrent-service-endpoint-syncs", "endpointslice-controller", "Services whose EndpointSlices are written", &c.ServiceEndpointSyncs, 5},
		{"concurrent-gc-syncs", "garbage-collector-controller", "objects that the garbage collector looks at", &c.GCSyncs, 20},
		{"concurrent-namespace-syncs", "namespace-controller", "namespaces that are being deleted", &c.NamespaceSyncs, 10},
		{"concurrent-resource-quota-syncs", "resourcequota-controller", "resource quotas", &c.ResourceQuotaSyncs, 5},
		{"concurrent-serviceaccount-token-syncs", "serviceaccount-token-controller", "tokens of service accounts in Secrets", &c.ServiceAccountTokenSyncs, 5},
		{"concurrent-ttl-after-finished-syncs", "ttl-after-finished-controller", "finished jobs", &c.TTLAfterFinishedSyncs, 5},
		{"concurrent-horizontal-pod-autoscaler-syncs", "horizontal-pod-autoscaler-controller", "horizontal pod autoscalers", &c.AutoscalerSyncs, 5},
		{"concurrent-ephemeralvolume-syncs", "ephemeral-volume-controller", "pods with ephemeral volumes", &c.EphemeralVolumeSyncs, 5},
		{"concurrent-validating-admission-policy-status-syncs", "validatingadmissionpolicy-status-controller", "validating admission policies", &c.PolicyStatusSyncs, 5},
	}
}

func defaultControllers() ControllersConfig {
	scaling, eviction := controllers.DefaultAutoscaling(), controllers.DefaultEviction()
	d := func(t time.Duration) metav1.Duration { return metav1.Duration{Duration: t} }
	out := ControllersConfig{
		AutoscalerPeriod: d(scaling.Period), AutoscalerStabilization: d(scaling.DownscaleStabilization), AutoscalerTolerance: scaling.Tolerance,
		AutoscalerCPUInitialization: d(scaling.CPUInitialization), AutoscalerReadinessDelay: d(scaling.InitialReadiness),
		NodeGracePeriod: d(50 * time.Second), NodeStartupGrace: d(time.Minute),
		EvictionRate: eviction.Rate, SecondaryEvictionRate: eviction.SecondaryRate, UnhealthyZone: eviction.UnhealthyZone, LargeCluster: eviction.LargeCluster,
		TerminatedPods: 12500, SigningDuration: d(365 * 24 * time.Hour), EndpointsPerSlice: 100,
	}
	for _, s := range out.syncs() {
		*s.value = s.otherwise
	}
	return out
}

func (c *ControllersConfig) flags(f *pflag.FlagSet) {
	for _, s := range c.syncs() {
		f.IntVar(s.value, s.flag, *s.value, s.of+" that are worked on at a time")
	}
	duration := func(v *metav1.Duration, name, usage string) { f.DurationVar(&v.Duration, name, v.Duration, usage) }
	duration(&c.AutoscalerPeriod, "horizontal-pod-autoscaler-sync-period", "time between two looks at a horizontal pod autoscaler")
	duration(&c.AutoscalerStabilization, "horizontal-pod-autoscaler-downscale-stabilization", "how long an autoscaler holds a higher recommendation, if its behavior does not say")
	f.Float64Var(&c.AutoscalerTolerance, "horizontal-pod-autoscaler-tolerance", c.AutoscalerTolerance, "by how much the ratio of usage and target may differ from 1 before an autoscaler acts, if its behavior does not say")
	duration(&c.AutoscalerCPUInitialization, "horizontal-pod-autoscaler-cpu-initialization-period", "how long after its start a pod's CPU usage counts only while it is ready")
	duration(&c.AutoscalerReadinessDelay, "horizontal-pod-autoscaler-initial-readiness-delay", "how long after its start a pod that becomes unready counts as one that never was ready")
	duration(&c.NodeGracePeriod, "node-monitor-grace-period", "how long a node may be silent before it is unhealthy")
	duration(&c.NodeStartupGrace, "node-startup-grace-period", "how long a node that is starting may be silent before it is unhealthy")
	f.Float64Var(&c.EvictionRate, "node-eviction-rate", c.EvictionRate, "failed nodes a second from which pods are evicted while a zone is healthy")
	f.Float64Var(&c.SecondaryEvictionRate, "secondary-node-eviction-rate", c.SecondaryEvictionRate, "the same while a zone is unhealthy; 0 in zones that are not large")
	f.Float64Var(&c.UnhealthyZone, "unhealthy-zone-threshold", c.UnhealthyZone, "part of a zone's nodes (at least 3) that are not ready when it is unhealthy")
	f.IntVar(&c.LargeCluster, "large-cluster-size-threshold", c.LargeCluster, "nodes up to which an unhealthy zone evicts nothing")
	f.IntVar(&c.TerminatedPods, "terminated-pod-gc-threshold", c.TerminatedPods, "finished pods that are kept; 0 or less: all")
	duration(&c.SigningDuration, "cluster-signing-duration", "how long certificates of the cluster's signers are valid at most")
	f.Int32Var(&c.EndpointsPerSlice, "max-endpoints-per-slice", c.EndpointsPerSlice, "endpoints in an EndpointSlice at most (1-1000)")
}

// maxServiceSyncs is upstream's limit for concurrent-service-endpoint-syncs.
const maxServiceSyncs = 50

// validateControllers refuses what upstream refuses, and what a controller could not work with.
func (c *Config) validateControllers() error {
	var errs []error
	if _, err := controllers.Select(controllersall.Controllers(), c.Controllers); err != nil {
		errs = append(errs, fmt.Errorf("controllers: %w", err))
	}
	for _, s := range c.syncs() {
		if *s.value < 1 {
			errs = append(errs, fmt.Errorf("%s must be greater than 0, but got %d", s.flag, *s.value))
		}
	}
	if c.ServiceEndpointSyncs > maxServiceSyncs {
		errs = append(errs, fmt.Errorf("concurrent-service-endpoint-syncs must not be more than %d, but got %d", maxServiceSyncs, c.ServiceEndpointSyncs))
	}
	if n := c.ControllersConfig.EndpointsPerSlice; n < 1 {
		errs = append(errs, fmt.Errorf("max-endpoints-per-slice must not be less than 1, but got %d", n))
	} else if n > 1000 {
		errs = append(errs, fmt.Errorf("max-endpoints-per-slice must not be more than 1000, but got %d", n))
	}
	positive := func(name string, d metav1.Duration) {
		if d.Duration <= 0 {
			errs = append(errs, fmt.Errorf("%s: %s is not allowed: must be positive", name, d.Duration))
		}
	}
	positive("horizontal-pod-autoscaler-sync-period", c.AutoscalerPeriod)
	positive("node-monitor-grace-period", c.NodeGracePeriod)
	positive("node-startup-grace-period", c.NodeStartupGrace)
	positive("cluster-signing-duration", c.SigningDuration)
	for _, x := range []struct {
		name  string
		value float64
	}{
		{"horizontal-pod-autoscaler-tolerance", c.AutoscalerTolerance},
		{"horizontal-pod-autoscaler-downscale-stabilization", c.AutoscalerStabilization.Seconds()},
		{"horizontal-pod-autoscaler-cpu-initialization-period", c.AutoscalerCPUInitialization.Seconds()},
		{"horizontal-pod-autoscaler-initial-readiness-delay", c.AutoscalerReadinessDelay.Seconds()},
		{"node-eviction-rate", c.EvictionRate}, {"secondary-node-eviction-rate", c.SecondaryEvictionRate}, {"unhealthy-zone-threshold", c.UnhealthyZone},
	} {
		if !(x.value >= 0) { // nor not a number
			errs = append(errs, fmt.Errorf("%s: %v is not allowed: must not be negative", x.name, x.value))
		}
	}
	return errors.Join(errs...)
}

// tune gives the settings to the controllers.
func (c *ControllersConfig) tune(o *controllers.Options) {
	o.Workers = map[string]int{}
	for _, s := range c.syncs() {
		o.Workers[s.controller] = *s.value
	}
	o.Autoscaling = controllers.Autoscaling{
		Period: c.AutoscalerPeriod.Duration, Tolerance: c.AutoscalerTolerance, DownscaleStabilization: c.AutoscalerStabilization.Duration,
		CPUInitialization: c.AutoscalerCPUInitialization.Duration, InitialReadiness: c.AutoscalerReadinessDelay.Duration,
	}
	// A zero as a whole would mean the defaults.
	o.Eviction = controllers.Eviction{Rate: c.EvictionRate, SecondaryRate: c.SecondaryEvictionRate, UnhealthyZone: c.UnhealthyZone, LargeCluster: c.LargeCluster}
	if o.Eviction == (controllers.Eviction{}) {
		o.Eviction.LargeCluster = -1
	}
	o.NodeGracePeriod, o.NodeStartupGrace = c.NodeGracePeriod.Duration, c.NodeStartupGrace.Duration
	o.CertificateLife, o.EndpointsPerSlice = c.SigningDuration.Duration, c.EndpointsPerSlice
	if o.TerminatedPods = c.TerminatedPods; o.TerminatedPods <= 0 {
		o.TerminatedPods = -1
	}
}
