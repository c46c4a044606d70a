package kubelet

import "k8s.io/apimachinery/pkg/types"

// Wake has the pod looked at again: something that it waits for may be there.
func (k *Kubelet) Wake(uid types.UID) { k.wake(uid) }
