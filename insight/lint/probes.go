package lint

import (
	"cmp"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// probeRules: the cluster must be able to see whether a program works.
func probeRules() []Rule {
	return []Rule{
		onContainer("readiness-probe", Warning, false, "Without it a pod gets requests before it can answer them, and while it cannot: a rollout loses requests.", func(w workload, c *corev1.Container) *Finding {
			if !serves(w.object) || c.ReadinessProbe != nil || len(c.Ports) == 0 && !fronted(w) {
				return nil
			}
			return &Finding{What: "has no readinessProbe", Fix: w.containerFix(c, "readinessProbe:\n  httpGet:\n    path: /healthz\n    port: %s\n  periodSeconds: 5\n", port(c))}
		}),
		onContainer("liveness-probe", Advice, false, "Without it a program that hangs is never restarted.", func(w workload, c *corev1.Container) *Finding {
			if !serves(w.object) || c.LivenessProbe != nil || len(c.Ports) == 0 {
				return nil
			}
			return &Finding{What: "has no livenessProbe", Fix: w.containerFix(c, "livenessProbe:\n  httpGet:\n    path: /livez\n    port: %s\n  periodSeconds: 10\n  failureThreshold: 6\n", port(c))}
		}),
		onContainer("same-probes", Warning, false, "A liveness probe that asks what the readiness probe asks restarts a pod that is only busy, at the moment when it is needed most.", func(w workload, c *corev1.Container) *Finding {
			if c.LivenessProbe == nil || c.ReadinessProbe == nil || !reflect.DeepEqual(c.LivenessProbe.ProbeHandler, c.ReadinessProbe.ProbeHandler) ||
				max(c.LivenessProbe.FailureThreshold, 3)*max(c.LivenessProbe.PeriodSeconds, 10) > max(c.ReadinessProbe.FailureThreshold, 3)*cmp.Or(c.ReadinessProbe.PeriodSeconds, 10) {
				return nil
			}
			return &Finding{What: "is asked the same, as often, by livenessProbe and readinessProbe", Fix: w.containerFix(c, "livenessProbe:\n  failureThreshold: %d\n", 4*max(c.ReadinessProbe.FailureThreshold, 3))}
		}),
		onContainer("probe-port", Error, false, "A probe at a port that does not exist always fails.", func(w workload, c *corev1.Container) *Finding {
			for _, p := range []struct {
				name string
				*corev1.Probe
			}{{"readinessProbe", c.ReadinessProbe}, {"livenessProbe", c.LivenessProbe}, {"startupProbe", c.StartupProbe}} {
				at, action := probePort(p.Probe)
				if at.Type != intstr.String || at.StrVal == "" || hasPort(c, at.StrVal) {
					continue
				}
				return &Finding{What: fmt.Sprintf("%s asks at port %q, which the container does not have", p.name, at.StrVal), Fix: w.containerFix(c, "%s:\n  %s:\n    port: %s\n", p.name, action, port(c))}
			}
			return nil
		}),
		onContainer("slow-start", Advice, false, "A long initialDelaySeconds delays every restart; a startupProbe waits as long as it must and no longer.", func(w workload, c *corev1.Container) *Finding {
			if c.LivenessProbe == nil || c.StartupProbe != nil || c.LivenessProbe.InitialDelaySeconds < 30 {
				return nil
			}
			at, action := probePort(c.LivenessProbe)
			body := "exec: {command: [COMMAND]}"
			if action != "" {
				body = fmt.Sprintf("%s: {port: %s}", action, at.String())
			}
			return &Finding{What: fmt.Sprintf("livenessProbe waits %ds before it begins", c.LivenessProbe.InitialDelaySeconds), Fix: w.containerFix(c, "startupProbe:\n  %s\n  periodSeconds: 2\n  failureThreshold: %d\n", body, c.LivenessProbe.InitialDelaySeconds)}
		}),
	}
}

func probePort(p *corev1.Probe) (intstr.IntOrString, string) {
	switch {
	case p == nil:
	case p.HTTPGet != nil:
		return p.HTTPGet.Port, "httpGet"
	case p.TCPSocket != nil:
		return p.TCPSocket.Port, "tcpSocket"
	}
	return intstr.IntOrString{}, ""
}

func hasPort(c *corev1.Container, name string) bool {
	for _, p := range c.Ports {
		if p.Name == name {
			return true
		}
	}
	return false
}

// port is the container's first, or what is usual.
func port(c *corev1.Container) string {
	if len(c.Ports) == 0 {
		return "8080"
	}
	return cmp.Or(c.Ports[0].Name, fmt.Sprint(c.Ports[0].ContainerPort))
}
