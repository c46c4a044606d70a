package kubelet

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestSysctls(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		host bool
		want string
	}{
		"kernel.shm_rmid_forced":  {},
		"net/ipv4/tcp_syncookies": {},
		"net.core.somaxconn":      {},
		"kernel.msgmax":           {want: `forbidden sysctl: "kernel.msgmax" not allowlisted`},
		"net.ipv4.tcp_rmem":       {host: true, want: `forbidden sysctl: "net.ipv4.tcp_rmem" not allowed with host net enabled`},
		"kernel.shm_rmid_forced ": {want: `forbidden sysctl: "kernel.shm_rmid_forced " not allowlisted`},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{HostNetwork: c.host, SecurityContext: &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: name, Value: "1"}}}}}
		if _, got, ok := admitSysctls(pod, []string{"net.core.*"}); got != c.want || ok != (c.want == "") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
