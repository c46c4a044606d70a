package inject

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/mesh"
)

const (
	volumeToken = "istio-token"
	volumeRoot  = "istiod-ca-cert"
	volumeInfo  = "istio-podinfo"
	// tokenLife in seconds: the kubelet makes a new one well before.
	tokenLife = int64(43200)
)

// volumes are what the sidecar reads.
func volumes() []corev1.Volume {
	life := tokenLife
	return []corev1.Volume{
		{Name: volumeToken, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
				Audience: mesh.Audience, ExpirationSeconds: &life, Path: "istio-token",
			}}},
		}}},
		{Name: volumeRoot, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: mesh.RootConfigMap},
		}}},
		{Name: volumeInfo, VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
			Items: []corev1.DownwardAPIVolumeFile{
				{Path: "labels", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}},
			},
		}}},
	}
}

func mounts() []corev1.VolumeMount {
	return []corev1.VolumeMount{
		{Name: volumeRoot, MountPath: "/var/run/secrets/istio", ReadOnly: true},
		{Name: volumeToken, MountPath: "/var/run/secrets/tokens", ReadOnly: true},
		{Name: volumeInfo, MountPath: "/etc/istio/pod", ReadOnly: true},
	}
}
