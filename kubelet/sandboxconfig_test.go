package kubelet

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestHostUsersOnly: who asks for users of its own does not get the node's.
func TestHostUsersOnly(t *testing.T) {
	t.Parallel()
	const refusal = "this node does not support user namespaces (spec.hostUsers: false)"
	for _, users := range []*bool{nil, new(true)} {
		if err := hostUsersOnly(&corev1.Pod{Spec: corev1.PodSpec{HostUsers: users}}); err != nil {
			t.Errorf("with the node's users: %v", err)
		}
	}
	if err := hostUsersOnly(&corev1.Pod{Spec: corev1.PodSpec{HostUsers: new(false)}}); err == nil || err.Error() != refusal {
		t.Errorf("with its own users: %v, want %s", err, refusal)
	}
}
