package legacytokencleaner

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// uses reports whether a pod has to do with a Secret.
func uses(p *corev1.Pod, name string) bool {
	local := func(ref *corev1.LocalObjectReference) bool { return ref != nil && ref.Name == name }
	if slices.ContainsFunc(p.Spec.ImagePullSecrets, func(ref corev1.LocalObjectReference) bool { return ref.Name == name }) {
		return true
	}
	environment := func(from []corev1.EnvFromSource, env []corev1.EnvVar) bool {
		return slices.ContainsFunc(from, func(f corev1.EnvFromSource) bool { return f.SecretRef != nil && f.SecretRef.Name == name }) ||
			slices.ContainsFunc(env, func(v corev1.EnvVar) bool {
				return v.ValueFrom != nil && v.ValueFrom.SecretKeyRef != nil && v.ValueFrom.SecretKeyRef.Name == name
			})
	}
	container := func(c corev1.Container) bool { return environment(c.EnvFrom, c.Env) }
	if slices.ContainsFunc(p.Spec.Containers, container) || slices.ContainsFunc(p.Spec.InitContainers, container) ||
		slices.ContainsFunc(p.Spec.EphemeralContainers, func(c corev1.EphemeralContainer) bool { return environment(c.EnvFrom, c.Env) }) {
		return true
	}
	return slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
		switch {
		case v.Secret != nil:
			return v.Secret.SecretName == name
		case v.CSI != nil:
			return local(v.CSI.NodePublishSecretRef)
		case v.ISCSI != nil:
			return local(v.ISCSI.SecretRef)
		case v.CephFS != nil:
			return local(v.CephFS.SecretRef)
		case v.RBD != nil:
			return local(v.RBD.SecretRef)
		case v.FlexVolume != nil:
			return local(v.FlexVolume.SecretRef)
		case v.AzureFile != nil:
			return v.AzureFile.SecretName == name
		case v.Projected != nil:
			return slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool { return s.Secret != nil && s.Secret.Name == name })
		}
		return false
	})
}
