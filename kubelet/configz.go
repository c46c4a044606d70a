package kubelet

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
)

// Configuration is what people look up of the configuration, as upstream's type.
func (k *Kubelet) Configuration() any {
	c := kubeletv1beta1.KubeletConfiguration{
		TypeMeta:   metav1.TypeMeta{Kind: "KubeletConfiguration", APIVersion: kubeletv1beta1.SchemeGroupVersion.String()},
		ClusterDNS: k.cfg.ClusterDNS, ClusterDomain: k.cfg.ClusterDomain, MaxPods: int32(k.cfg.MaxPods), PodPidsLimit: &k.cfg.PodPidsLimit, //nolint:gosec // few
		StaticPodPath: k.cfg.StaticPodPath, PodLogsDir: k.cfg.LogDir, ResolverConfig: &k.cfg.ResolvConf,
		CgroupDriver: "cgroupfs", NodeLeaseDurationSeconds: 40,
		NodeStatusReportFrequency: metav1.Duration{Duration: 5 * time.Minute}, NodeStatusUpdateFrequency: metav1.Duration{Duration: 10 * time.Second},
	}
	if e := k.cfg.Eviction; e != nil {
		c.EvictionHard, c.EvictionSoft, c.EvictionSoftGracePeriod, c.EvictionMinimumReclaim = e.Hard, e.Soft, e.SoftGracePeriod, e.MinimumReclaim
		c.EvictionPressureTransitionPeriod = metav1.Duration{Duration: e.TransitionPeriod}
		c.EvictionMaxPodGracePeriod = int32(e.MaxPodGrace / time.Second) //nolint:gosec // few
	}
	if g := k.cfg.ImageGC; g != nil {
		high, low := int32(g.HighPercent), int32(g.LowPercent) //nolint:gosec // percent
		c.ImageGCHighThresholdPercent, c.ImageGCLowThresholdPercent = &high, &low
		c.ImageMinimumGCAge, c.ImageMaximumGCAge = metav1.Duration{Duration: g.MinAge}, metav1.Duration{Duration: g.MaxAge}
	}
	if a := k.cfg.Affinity; a != nil {
		c.CPUManagerPolicy, c.CPUManagerPolicyOptions, c.MemoryManagerPolicy = a.CPU, a.CPUOptions, a.Memory
		c.TopologyManagerPolicy, c.TopologyManagerScope, c.ReservedSystemCPUs = a.Topology, a.Scope, a.ReservedCPUs
	}
	for _, p := range k.cfg.ShutdownPeriods {
		c.ShutdownGracePeriod.Duration += time.Duration(p.Seconds) * time.Second
		if p.Priority >= systemCriticalPriority {
			c.ShutdownGracePeriodCriticalPods.Duration += time.Duration(p.Seconds) * time.Second
		}
	}
	return map[string]any{"kubeletconfig": &c}
}
