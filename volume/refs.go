package volume

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Kinds of objects that a pod refers to.
const (
	KindConfigMap = "ConfigMap"
	KindSecret    = "Secret"
	// KindTrustBundle stands for all ClusterTrustBundles: its Ref has no name.
	KindTrustBundle = "ClusterTrustBundle"
	// KindPodCertificate stands for the PodCertificateRequests of a pod: its Ref has the
	// pod's name.
	KindPodCertificate = "PodCertificateRequest"
)

// A Ref names an object that a pod refers to.
type Ref struct{ Kind, Namespace, Name string }

// References lists what the pod refers to: in its volumes, or elsewhere
// (environments and pull secrets). The two lists have no duplicates each.
func References(pod *corev1.Pod) (inVolumes, elsewhere []Ref) {
	v := refs{namespace: pod.Namespace}
	for i := range pod.Spec.Volumes {
		v.volume(pod, &pod.Spec.Volumes[i])
	}
	e := refs{namespace: pod.Namespace}
	for _, s := range pod.Spec.ImagePullSecrets {
		e.add(KindSecret, s.Name)
	}
	for i := range pod.Spec.InitContainers {
		e.env(pod.Spec.InitContainers[i].EnvFrom, pod.Spec.InitContainers[i].Env)
	}
	for i := range pod.Spec.Containers {
		e.env(pod.Spec.Containers[i].EnvFrom, pod.Spec.Containers[i].Env)
	}
	for i := range pod.Spec.EphemeralContainers {
		e.env(pod.Spec.EphemeralContainers[i].EnvFrom, pod.Spec.EphemeralContainers[i].Env)
	}
	return v.list, e.list
}

type refs struct {
	namespace string
	list      []Ref
}

func (r *refs) add(kind, name string) {
	if name != "" {
		r.append(Ref{kind, r.namespace, name})
	}
}

func (r *refs) append(ref Ref) {
	if slices.Contains(r.list, ref) {
		return
	}
	r.list = append(r.list, ref)
}

func (r *refs) env(from []corev1.EnvFromSource, env []corev1.EnvVar) {
	for i := range from {
		if c := from[i].ConfigMapRef; c != nil {
			r.add(KindConfigMap, c.Name)
		}
		if s := from[i].SecretRef; s != nil {
			r.add(KindSecret, s.Name)
		}
	}
	for i := range env {
		source := env[i].ValueFrom
		if source == nil {
			continue
		}
		if c := source.ConfigMapKeyRef; c != nil {
			r.add(KindConfigMap, c.Name)
		}
		if s := source.SecretKeyRef; s != nil {
			r.add(KindSecret, s.Name)
		}
	}
}

func (r *refs) volume(pod *corev1.Pod, v *corev1.Volume) {
	switch {
	case v.ConfigMap != nil:
		r.add(KindConfigMap, v.ConfigMap.Name)
	case v.Secret != nil:
		r.add(KindSecret, v.Secret.SecretName)
	case v.Projected != nil:
		for i := range v.Projected.Sources {
			s := &v.Projected.Sources[i]
			if s.ConfigMap != nil {
				r.add(KindConfigMap, s.ConfigMap.Name)
			}
			if s.Secret != nil {
				r.add(KindSecret, s.Secret.Name)
			}
			if s.ClusterTrustBundle != nil {
				r.append(Ref{Kind: KindTrustBundle})
			}
			if s.PodCertificate != nil {
				r.add(KindPodCertificate, pod.Name)
			}
		}
	}
}

// usedVolumes returns the names of the volumes that a container mounts. Others
// are not set up.
func usedVolumes(pod *corev1.Pod) map[string]bool {
	used := make(map[string]bool, len(pod.Spec.Volumes))
	add := func(mounts []corev1.VolumeMount, devices []corev1.VolumeDevice) {
		for i := range mounts {
			used[mounts[i].Name] = true
		}
		for i := range devices {
			used[devices[i].Name] = true
		}
	}
	for i := range pod.Spec.InitContainers {
		add(pod.Spec.InitContainers[i].VolumeMounts, pod.Spec.InitContainers[i].VolumeDevices)
	}
	for i := range pod.Spec.Containers {
		add(pod.Spec.Containers[i].VolumeMounts, pod.Spec.Containers[i].VolumeDevices)
	}
	for i := range pod.Spec.EphemeralContainers {
		add(pod.Spec.EphemeralContainers[i].VolumeMounts, pod.Spec.EphemeralContainers[i].VolumeDevices)
	}
	return used
}
