package noderestriction

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// references names a kind of objects of the API that a pod refers to; "": none.
func references(pod *corev1.Pod) (string, error) {
	if pod.Spec.ServiceAccountName != "" {
		return "serviceaccounts", nil
	}
	secrets, maps := len(pod.Spec.ImagePullSecrets) > 0, false
	environment := func(from []corev1.EnvFromSource, env []corev1.EnvVar) {
		for i := range from {
			secrets, maps = secrets || from[i].SecretRef != nil, maps || from[i].ConfigMapRef != nil
		}
		for i := range env {
			if v := env[i].ValueFrom; v != nil {
				secrets, maps = secrets || v.SecretKeyRef != nil, maps || v.ConfigMapKeyRef != nil
			}
		}
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			environment(list[i].EnvFrom, list[i].Env)
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		environment(pod.Spec.EphemeralContainers[i].EnvFrom, pod.Spec.EphemeralContainers[i].Env)
	}
	for i := range pod.Spec.Volumes {
		secrets = secrets || secretOf(&pod.Spec.Volumes[i].VolumeSource)
	}
	switch {
	case secrets:
		return "secrets", nil
	case maps:
		return "configmaps", nil
	case len(pod.Spec.ResourceClaims) > 0:
		return "resourceclaims", nil
	}
	for i := range pod.Spec.Volumes {
		if what, err := volumeReferences(&pod.Spec.Volumes[i]); what != "" || err != nil {
			return what, err
		}
	}
	return "", nil
}

// secretOf reports whether a volume reads a Secret by which its driver is let in.
func secretOf(v *corev1.VolumeSource) bool {
	switch {
	case v.CephFS != nil && v.CephFS.SecretRef != nil, v.Cinder != nil && v.Cinder.SecretRef != nil, v.FlexVolume != nil && v.FlexVolume.SecretRef != nil,
		v.RBD != nil && v.RBD.SecretRef != nil, v.ScaleIO != nil && v.ScaleIO.SecretRef != nil, v.ISCSI != nil && v.ISCSI.SecretRef != nil,
		v.StorageOS != nil && v.StorageOS.SecretRef != nil, v.CSI != nil && v.CSI.NodePublishSecretRef != nil, v.AzureFile != nil, v.Secret != nil:
		return true
	case v.Projected != nil:
		for i := range v.Projected.Sources {
			if v.Projected.Sources[i].Secret != nil {
				return true
			}
		}
	}
	return false
}

func volumeReferences(v *corev1.Volume) (string, error) {
	switch {
	case v.AWSElasticBlockStore != nil, v.AzureDisk != nil, v.CephFS != nil, v.Cinder != nil, v.DownwardAPI != nil, v.EmptyDir != nil, v.FC != nil,
		v.FlexVolume != nil, v.Flocker != nil, v.GCEPersistentDisk != nil, v.GitRepo != nil, v.HostPath != nil, v.Image != nil, v.ISCSI != nil,
		v.NFS != nil, v.PhotonPersistentDisk != nil, v.PortworxVolume != nil, v.Quobyte != nil, v.RBD != nil, v.ScaleIO != nil, v.StorageOS != nil,
		v.VsphereVolume != nil:
		return "", nil
	case v.ConfigMap != nil:
		return "configmaps (via configmap volumes)", nil
	case v.CSI != nil:
		return "csidrivers (via CSI volumes)", nil
	case v.Glusterfs != nil:
		return "endpoints (via glusterFS volumes)", nil
	case v.PersistentVolumeClaim != nil:
		return "persistentvolumeclaims", nil
	case v.Ephemeral != nil:
		return "persistentvolumeclaims (via ephemeral volumes)", nil
	case v.Projected != nil:
		return projectedReferences(v)
	}
	return "", fmt.Errorf("unknown volume type for volume  %q", v.Name)
}

func projectedReferences(v *corev1.Volume) (string, error) {
	for i := range v.Projected.Sources {
		switch s := &v.Projected.Sources[i]; {
		case s.ConfigMap != nil:
			return "configmaps (via projected volumes)", nil
		case s.ServiceAccountToken != nil:
			return "serviceaccounts (via projected volumes)", nil
		case s.ClusterTrustBundle != nil:
			return "clustertrustbundles", nil
		case s.PodCertificate != nil:
			return "podcertificates", nil
		case s.DownwardAPI != nil:
		default:
			return "", fmt.Errorf("unknown source for projected volume %q", v.Name)
		}
	}
	return "", nil
}
