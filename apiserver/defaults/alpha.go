package defaults

import (
	corev1 "k8s.io/api/core/v1"
)

// DropAlphaPodFields removes the fields of features that are alpha in v1.37 and
// therefore off, as upstream does: stop signals, HTTP/2 and TLS probes, bind
// mount options, owners of projected files, modes of emptyDirs, scheduling
// groups and eviction responders.
func DropAlphaPodFields(spec *corev1.PodSpec) {
	spec.SchedulingGroup = nil
	spec.EvictionResponders = nil
	for i := range spec.Volumes {
		dropAlphaVolume(&spec.Volumes[i].VolumeSource)
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			dropAlphaContainer(&containers[i])
		}
	}
	for i := range spec.EphemeralContainers {
		dropAlphaContainer((*corev1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
}

func dropAlphaContainer(c *corev1.Container) {
	for i := range c.VolumeMounts {
		c.VolumeMounts[i].BindMountOptions = nil
	}
	for _, p := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if p == nil {
			continue
		}
		if p.HTTPGet != nil {
			p.HTTPGet.Protocol = nil
		}
		if p.GRPC != nil {
			p.GRPC.Mode = nil
		}
	}
	if l := c.Lifecycle; l != nil {
		if l.StopSignal != nil {
			l.StopSignal = nil
			if l.PostStart == nil && l.PreStop == nil {
				c.Lifecycle = nil
			}
		}
		for _, h := range []*corev1.LifecycleHandler{l.PostStart, l.PreStop} {
			if h != nil && h.HTTPGet != nil {
				h.HTTPGet.Protocol = nil
			}
		}
	}
}

func dropAlphaVolume(s *corev1.VolumeSource) {
	if s.EmptyDir != nil {
		s.EmptyDir.Mode = nil
	}
	if s.Secret != nil {
		s.Secret.DefaultUser = nil
		dropUsers(s.Secret.Items)
	}
	if s.ConfigMap != nil {
		s.ConfigMap.DefaultUser = nil
		dropUsers(s.ConfigMap.Items)
	}
	if s.DownwardAPI != nil {
		s.DownwardAPI.DefaultUser = nil
		dropFileUsers(s.DownwardAPI.Items)
	}
	if s.Projected == nil {
		return
	}
	s.Projected.DefaultUser = nil
	for i := range s.Projected.Sources {
		p := &s.Projected.Sources[i]
		if p.Secret != nil {
			dropUsers(p.Secret.Items)
		}
		if p.ConfigMap != nil {
			dropUsers(p.ConfigMap.Items)
		}
		if p.DownwardAPI != nil {
			dropFileUsers(p.DownwardAPI.Items)
		}
		if p.ServiceAccountToken != nil {
			p.ServiceAccountToken.User = nil
		}
		if p.ClusterTrustBundle != nil {
			p.ClusterTrustBundle.User = nil
		}
		if p.PodCertificate != nil {
			p.PodCertificate.User = nil
		}
	}
}

func dropUsers(items []corev1.KeyToPath) {
	for i := range items {
		items[i].User = nil
	}
}

func dropFileUsers(items []corev1.DownwardAPIVolumeFile) {
	for i := range items {
		items[i].User = nil
	}
}
