package node

import corev1 "k8s.io/api/core/v1"

// uses reports whether a pod refers to an object of its namespace.
func uses(p *corev1.Pod, resource, name string) bool {
	found := false
	visit := func(r, n string) { found = found || r == resource && n == name }
	visit("serviceaccounts", p.Spec.ServiceAccountName)
	for _, s := range p.Spec.ImagePullSecrets {
		visit("secrets", s.Name)
	}
	for i := range p.Spec.InitContainers {
		containerRefs(&p.Spec.InitContainers[i], visit)
	}
	for i := range p.Spec.Containers {
		containerRefs(&p.Spec.Containers[i], visit)
	}
	for i := range p.Spec.EphemeralContainers {
		c := corev1.Container(p.Spec.EphemeralContainers[i].EphemeralContainerCommon)
		containerRefs(&c, visit)
	}
	for i := range p.Spec.ResourceClaims {
		if n := p.Spec.ResourceClaims[i].ResourceClaimName; n != nil {
			visit("resourceclaims", *n)
		}
	}
	for _, c := range p.Status.ResourceClaimStatuses { // made for the pod
		if c.ResourceClaimName != nil {
			visit("resourceclaims", *c.ResourceClaimName)
		}
	}
	if c := p.Status.ExtendedResourceClaimStatus; c != nil {
		visit("resourceclaims", c.ResourceClaimName)
	}
	for i := range p.Spec.Volumes {
		volumeRefs(p, &p.Spec.Volumes[i], visit)
	}
	return found
}

func containerRefs(c *corev1.Container, visit func(resource, name string)) {
	for _, e := range c.EnvFrom {
		if e.ConfigMapRef != nil {
			visit("configmaps", e.ConfigMapRef.Name)
		}
		if e.SecretRef != nil {
			visit("secrets", e.SecretRef.Name)
		}
	}
	for _, e := range c.Env {
		if e.ValueFrom == nil {
			continue
		}
		if r := e.ValueFrom.ConfigMapKeyRef; r != nil {
			visit("configmaps", r.Name)
		}
		if r := e.ValueFrom.SecretKeyRef; r != nil {
			visit("secrets", r.Name)
		}
	}
}

func volumeRefs(p *corev1.Pod, v *corev1.Volume, visit func(resource, name string)) {
	switch {
	case v.ConfigMap != nil:
		visit("configmaps", v.ConfigMap.Name)
	case v.Secret != nil:
		visit("secrets", v.Secret.SecretName)
	case v.PersistentVolumeClaim != nil:
		visit("persistentvolumeclaims", v.PersistentVolumeClaim.ClaimName)
	case v.Ephemeral != nil:
		visit("persistentvolumeclaims", p.Name+"-"+v.Name)
	case v.CSI != nil && v.CSI.NodePublishSecretRef != nil:
		visit("secrets", v.CSI.NodePublishSecretRef.Name)
	case v.FlexVolume != nil && v.FlexVolume.SecretRef != nil:
		visit("secrets", v.FlexVolume.SecretRef.Name)
	case v.ISCSI != nil && v.ISCSI.SecretRef != nil:
		visit("secrets", v.ISCSI.SecretRef.Name)
	case v.CephFS != nil && v.CephFS.SecretRef != nil:
		visit("secrets", v.CephFS.SecretRef.Name)
	case v.RBD != nil && v.RBD.SecretRef != nil:
		visit("secrets", v.RBD.SecretRef.Name)
	case v.ScaleIO != nil && v.ScaleIO.SecretRef != nil:
		visit("secrets", v.ScaleIO.SecretRef.Name)
	case v.StorageOS != nil && v.StorageOS.SecretRef != nil:
		visit("secrets", v.StorageOS.SecretRef.Name)
	case v.AzureFile != nil:
		visit("secrets", v.AzureFile.SecretName)
	case v.Projected != nil:
		for _, s := range v.Projected.Sources {
			if s.ConfigMap != nil {
				visit("configmaps", s.ConfigMap.Name)
			}
			if s.Secret != nil {
				visit("secrets", s.Secret.Name)
			}
		}
	}
}
