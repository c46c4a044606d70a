package lint

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// securityRules: who breaks into a program should find little to do there.
func securityRules() []Rule {
	return []Rule{
		onContainer("privileged", Error, true, "A privileged container is root on the node.", func(w workload, c *corev1.Container) *Finding {
			if c.SecurityContext == nil || c.SecurityContext.Privileged == nil || !*c.SecurityContext.Privileged {
				return nil
			}
			return &Finding{What: "is privileged", Fix: w.containerFix(c, "securityContext:\n  privileged: false\n")}
		}),
		onContainer("run-as-non-root", Warning, true, "Root in a container is root on the node once a flaw of the kernel or the runtime is used.", func(w workload, c *corev1.Container) *Finding {
			for _, sc := range contexts(w, c) {
				if sc.root != nil && *sc.root || sc.user != nil && *sc.user > 0 {
					return nil
				}
				if sc.user != nil {
					return &Finding{What: "runs as root (runAsUser 0)", Fix: w.containerFix(c, "securityContext:\n  runAsNonRoot: true\n  runAsUser: 65532\n")}
				}
			}
			return &Finding{What: "may run as root", Fix: w.containerFix(c, "securityContext:\n  runAsNonRoot: true\n")}
		}),
		onContainer("privilege-escalation", Advice, true, "Otherwise set-uid programs in the image give more rights than the container has.", func(w workload, c *corev1.Container) *Finding {
			if sc := c.SecurityContext; sc != nil && sc.AllowPrivilegeEscalation != nil && !*sc.AllowPrivilegeEscalation {
				return nil
			}
			return &Finding{What: "does not forbid more privileges", Fix: w.containerFix(c, "securityContext:\n  allowPrivilegeEscalation: false\n")}
		}),
		onContainer("capabilities", Advice, true, "Most programs need none of the capabilities that a container gets.", func(w workload, c *corev1.Container) *Finding {
			if sc := c.SecurityContext; sc != nil && sc.Capabilities != nil && slices.ContainsFunc(sc.Capabilities.Drop, func(d corev1.Capability) bool { return strings.EqualFold(string(d), "ALL") }) {
				return nil
			}
			return &Finding{What: "keeps the default capabilities", Fix: w.containerFix(c, "securityContext:\n  capabilities:\n    drop: [ALL]\n")}
		}),
		onContainer("dangerous-capabilities", Error, true, "These capabilities amount to root on the node.", func(w workload, c *corev1.Container) *Finding {
			if c.SecurityContext == nil || c.SecurityContext.Capabilities == nil {
				return nil
			}
			for _, add := range c.SecurityContext.Capabilities.Add {
				if name := strings.TrimPrefix(strings.ToUpper(string(add)), "CAP_"); slices.Contains([]string{"ALL", "SYS_ADMIN", "SYS_MODULE", "SYS_PTRACE", "SYS_RAWIO", "DAC_READ_SEARCH", "BPF"}, name) {
					return &Finding{What: "adds capability " + name, Fix: w.containerFix(c, "securityContext:\n  capabilities:\n    add: []\n")}
				}
			}
			return nil
		}),
		onContainer("read-only-root", Advice, true, "What cannot be written cannot be replaced by an intruder; and state in the container is gone with it.", func(w workload, c *corev1.Container) *Finding {
			if sc := c.SecurityContext; sc != nil && sc.ReadOnlyRootFilesystem != nil && *sc.ReadOnlyRootFilesystem {
				return nil
			}
			return &Finding{What: "can write its root file system", Fix: w.containerFix(c, "securityContext:\n  readOnlyRootFilesystem: true\n")}
		}),
		onWorkload("seccomp", Advice, "The default profile keeps hundreds of system calls away that programs never need.", func(w workload) *Finding {
			if sc := w.template.Spec.SecurityContext; sc != nil && sc.SeccompProfile != nil {
				return nil
			}
			for _, c := range w.template.Spec.Containers {
				if c.SecurityContext == nil || c.SecurityContext.SeccompProfile == nil {
					return &Finding{What: "has no seccomp profile", Fix: w.podFix("securityContext:\n  seccompProfile:\n    type: RuntimeDefault\n")}
				}
			}
			return nil
		}),
		onWorkload("host-namespaces", Error, "The pod sees, and may disturb, the network, processes or IPC of the node.", func(w workload) *Finding {
			s := w.template.Spec
			for field, set := range map[string]bool{"hostNetwork": s.HostNetwork, "hostPID": s.HostPID, "hostIPC": s.HostIPC} {
				if set {
					return &Finding{What: "uses the node's namespaces: " + field, Fix: w.podFix("%s: false\n", field)}
				}
			}
			return nil
		}),
		onWorkload("host-path", Warning, "A hostPath binds the pod to what is on one node, and lets it write there.", func(w workload) *Finding {
			for _, v := range w.template.Spec.Volumes {
				if v.HostPath != nil {
					return &Finding{Part: "volume " + v.Name, What: "mounts the node's " + v.HostPath.Path, Fix: w.podFix("volumes:\n- name: %s\n  persistentVolumeClaim:\n    claimName: %s\n", v.Name, v.Name)}
				}
			}
			return nil
		}),
		onContainer("host-port", Warning, true, "Only one such pod fits on a node, and it can be reached past every Service and policy.", func(w workload, c *corev1.Container) *Finding {
			for _, p := range c.Ports {
				if p.HostPort != 0 {
					return &Finding{What: fmt.Sprintf("takes port %d of the node", p.HostPort), Fix: w.containerFix(c, "ports:\n- containerPort: %d\n  hostPort: null\n", p.ContainerPort)}
				}
			}
			return nil
		}),
		onWorkload("api-token", Advice, "Who breaks into the program gets a token for the API of the cluster, which it does not need.", func(w workload) *Finding {
			s := w.template.Spec
			if s.AutomountServiceAccountToken != nil || s.ServiceAccountName != "" && s.ServiceAccountName != "default" {
				return nil
			}
			return &Finding{What: "has the token of the default service account mounted", Fix: w.podFix("automountServiceAccountToken: false\n")}
		}),
		onContainer("plain-secret", Warning, true, "A value in the spec is seen by everybody who may read the object, and is kept in version control.", func(w workload, c *corev1.Container) *Finding {
			for _, e := range c.Env {
				if e.Value != "" && secretName.MatchString(e.Name) && !strings.HasPrefix(e.Value, "/") && !strings.HasPrefix(e.Value, "$(") {
					return &Finding{What: "has a secret as a plain value: " + e.Name, Fix: w.containerFix(c, "env:\n- name: %s\n  valueFrom:\n    secretKeyRef:\n      name: %s\n      key: %s\n", e.Name, w.object.GetName(), strings.ToLower(e.Name))}
				}
			}
			return nil
		}),
	}
}

var secretName = regexp.MustCompile(`(?i)(^|_)(password|passwd|secret|token|api_?key|private_?key|credentials)$`)

// A context is what counts of a security context.
type context struct {
	root *bool
	user *int64
}

// contexts are the container's, then the pod's.
func contexts(w workload, c *corev1.Container) []context {
	var out []context
	if sc := c.SecurityContext; sc != nil {
		out = append(out, context{sc.RunAsNonRoot, sc.RunAsUser})
	}
	if sc := w.template.Spec.SecurityContext; sc != nil {
		out = append(out, context{sc.RunAsNonRoot, sc.RunAsUser})
	}
	return out
}
