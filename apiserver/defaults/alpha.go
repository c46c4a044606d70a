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
	dropOwners(s)
}

// dropOwners removes the owners of files. Of a volume, or a projected source, that is
// of several types, which is refused later, only the first is looked at: upstream
// tells of the owners in the others.
func dropOwners(s *corev1.VolumeSource) {
	switch {
	case s.Secret != nil:
		s.Secret.DefaultUser = nil
		dropUsers(s.Secret.Items)
	case s.ConfigMap != nil:
		s.ConfigMap.DefaultUser = nil
		dropUsers(s.ConfigMap.Items)
	case s.DownwardAPI != nil:
		s.DownwardAPI.DefaultUser = nil
		dropFileUsers(s.DownwardAPI.Items)
	case s.Projected != nil:
		s.Projected.DefaultUser = nil
		for i := range s.Projected.Sources {
			dropProjectedOwners(&s.Projected.Sources[i])
		}
	}
}

func dropProjectedOwners(p *corev1.VolumeProjection) {
	switch {
	case p.Secret != nil:
		dropUsers(p.Secret.Items)
	case p.DownwardAPI != nil:
		dropFileUsers(p.DownwardAPI.Items)
	case p.ConfigMap != nil:
		dropUsers(p.ConfigMap.Items)
	case p.ServiceAccountToken != nil:
		p.ServiceAccountToken.User = nil
	case p.ClusterTrustBundle != nil:
		p.ClusterTrustBundle.User = nil
	case p.PodCertificate != nil:
		p.PodCertificate.User = nil
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
