package kubelet

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// runStatic runs the pods whose manifests are in StaticPodPath.
func (k *Kubelet) runStatic(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (k *Kubelet) mirrorUpdated(*corev1.Pod) {}
func (k *Kubelet) mirrorDeleted(*corev1.Pod) {}
