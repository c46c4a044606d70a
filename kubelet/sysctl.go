package kubelet

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// safeSysctls change nothing for anybody but the pod, in a namespace of its own.
var safeSysctls = []string{
	"kernel.shm_rmid_forced",
	"net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range", "net.ipv4.ip_unprivileged_port_start",
	"net.ipv4.ip_local_reserved_ports", "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl",
	"net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_notsent_lowat",
}

// admitSysctls judges a pod's sysctls. allowed are names, or prefixes with a *, that
// the node's owner allows besides the safe ones.
func admitSysctls(pod *corev1.Pod, allowed []string) (reason, message string, ok bool) {
	if pod.Spec.SecurityContext == nil {
		return "", "", true
	}
	for _, s := range pod.Spec.SecurityContext.Sysctls {
		// net/ipv4/conf/eth0.1/x is net.ipv4.conf.eth0/1.x
		name := s.Name
		if i := strings.IndexAny(name, "./"); i >= 0 && name[i] == '/' {
			name = strings.NewReplacer("/", ".", ".", "/").Replace(name)
		}
		listed := slices.Contains(safeSysctls, name) || slices.ContainsFunc(allowed, func(a string) bool {
			prefix, wild := strings.CutSuffix(a, "*")
			return a == name || wild && strings.HasPrefix(name, prefix)
		})
		problem := ""
		switch {
		case !listed:
			problem = fmt.Sprintf("%q not allowlisted", name)
		case strings.HasPrefix(name, "net.") && pod.Spec.HostNetwork:
			problem = fmt.Sprintf("%q not allowed with host net enabled", name)
		case strings.HasPrefix(name, "kernel.") && pod.Spec.HostIPC, strings.HasPrefix(name, "fs.mqueue.") && pod.Spec.HostIPC:
			problem = fmt.Sprintf("%q not allowed with host ipc enabled", name)
		}
		if problem != "" {
			return "SysctlForbidden", "forbidden sysctl: " + problem, false
		}
	}
	return "", "", true
}
