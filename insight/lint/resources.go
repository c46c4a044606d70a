package lint

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// resourceRules: what pods need must be known before they are placed.
func resourceRules() []Rule {
	return []Rule{
		onContainer("requests", Warning, true, "Without requests the scheduler puts the pod anywhere, and it is the first to be evicted when a node runs short.", func(w workload, c *corev1.Container) *Finding {
			var missing []string
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				_, request := c.Resources.Requests[name]
				_, limit := c.Resources.Limits[name] // a limit counts as a request
				if !request && !limit {
					missing = append(missing, string(name))
				}
			}
			if len(missing) == 0 {
				return nil
			}
			return &Finding{What: "requests no " + strings.Join(missing, " and "), Fix: w.containerFix(c, "resources:\n  requests:\n    cpu: 100m\n    memory: 128Mi\n")}
		}),
		onContainer("memory-limit", Warning, true, "Without a limit a leak takes the memory of all others on the node; with one only this container is restarted.", func(w workload, c *corev1.Container) *Finding {
			if _, ok := c.Resources.Limits[corev1.ResourceMemory]; ok {
				return nil
			}
			amount := "128Mi"
			if q, ok := c.Resources.Requests[corev1.ResourceMemory]; ok {
				amount = q.String()
			}
			return &Finding{What: "has no memory limit", Fix: w.containerFix(c, "resources:\n  limits:\n    memory: %s\n", amount)}
		}),
		onContainer("memory-overcommitted", Advice, true, "Memory cannot be taken back: what is used above the request is the first to be evicted.", func(w workload, c *corev1.Container) *Finding {
			request, ok1 := c.Resources.Requests[corev1.ResourceMemory]
			limit, ok2 := c.Resources.Limits[corev1.ResourceMemory]
			if !ok1 || !ok2 || limit.Value() <= 2*request.Value() {
				return nil
			}
			return &Finding{What: fmt.Sprintf("may use %s of memory and requests only %s", limit.String(), request.String()), Fix: w.containerFix(c, "resources:\n  requests:\n    memory: %s\n", limit.String())}
		}),
		onContainer("request-above-limit", Error, true, "Such a pod is refused.", func(w workload, c *corev1.Container) *Finding {
			for name, request := range c.Resources.Requests {
				if limit, ok := c.Resources.Limits[name]; ok && request.Cmp(limit) > 0 {
					return &Finding{What: fmt.Sprintf("requests %s of %s, more than its limit of %s", request.String(), name, limit.String()), Fix: w.containerFix(c, "resources:\n  limits:\n    %s: %s\n", name, request.String())}
				}
			}
			return nil
		}),
		onWorkload("scratch-limit", Advice, "An emptyDir without a limit can fill the node's disk, or its memory if it is in memory.", func(w workload) *Finding {
			for _, v := range w.template.Spec.Volumes {
				if v.EmptyDir != nil && v.EmptyDir.Medium == corev1.StorageMediumMemory && v.EmptyDir.SizeLimit == nil {
					return &Finding{Part: "volume " + v.Name, What: "is in memory and has no sizeLimit", Fix: w.podFix("volumes:\n- name: %s\n  emptyDir:\n    medium: Memory\n    sizeLimit: 64Mi\n", v.Name)}
				}
			}
			return nil
		}),
	}
}
