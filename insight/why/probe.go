package why

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/periplus/periplus/client/conditions"
	"github.com/periplus/periplus/insight"
)

// probeRules: the program runs, and a probe says that it does not work.
func probeRules() []Rule {
	return []Rule{
		probeRule("probe-port-name", "a probe names a port that the container does not have", func(p probe) *insight.Finding {
			port, ok := p.port()
			if !ok || port.Type == intstr.Int {
				return nil
			}
			if _, declared := insight.ContainerPort(&corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{*p.c.spec}}}, port, ""); declared {
				return nil
			}
			return p.found(insight.Cause, fmt.Sprintf("asks at port %q, a name that no port of the container has%s", port.StrVal, has(portNames(p.c.spec))), "", p.otherPort("asks at the container's port")...)
		}),
		probeRule("probe-port-wrong", "a probe asks at a port at which nothing listens", func(p probe) *insight.Finding {
			port, ok := p.port()
			if !ok || !strings.Contains(p.message, "refused") {
				return nil
			}
			number, declared := insight.ContainerPort(p.c.pod, port, "")
			if declared || len(p.c.spec.Ports) == 0 {
				return nil
			}
			return p.found(insight.Cause, fmt.Sprintf("asks at port %d, but the container's ports are %s", number, portList(p.c.spec)), "", p.otherPort("asks at the container's port")...)
		}),
		probeRule("probe-refused", "nothing listens at the probe's port", func(p probe) *insight.Finding {
			if !strings.Contains(p.message, "refused") {
				return nil
			}
			port, _ := p.port()
			number, _ := insight.ContainerPort(p.c.pod, port, "")
			return p.found(insight.Cause, fmt.Sprintf("is refused: nothing listens at port %d of the pod's address", number),
				"The program listens at another port, on 127.0.0.1 only, or has not come that far.", workloadOf(p.c.s, p.c.pod).edit("correct the probe's port"), p.c.logs())
		}),
		probeRule("probe-path", "the path of a probe is not there", func(p probe) *insight.Finding {
			if p.code() != "404" {
				return nil
			}
			return p.found(insight.Cause, fmt.Sprintf("asks for %q, and the program answers 404: there is no such path", p.path()), "", workloadOf(p.c.s, p.c.pod).edit("correct "+p.field+".httpGet.path"))
		}),
		probeRule("probe-access", "the path of a probe wants a login", func(p probe) *insight.Finding {
			if p.code() != "401" && p.code() != "403" {
				return nil
			}
			return p.found(insight.Cause, fmt.Sprintf("asks for %q, and the program answers %s: it wants to know who asks", p.path(), p.code()), "", workloadOf(p.c.s, p.c.pod).edit("probe a path that is open to all"))
		}),
		probeRule("probe-scheme", "a probe speaks HTTP to an HTTPS port, or the other way round", func(p probe) *insight.Finding {
			other := "HTTPS"
			switch {
			case strings.Contains(p.message, "HTTP response to HTTPS client"):
				other = "HTTP"
			case !strings.Contains(p.message, "malformed HTTP response") && !strings.Contains(p.message, "HTTP request to an HTTPS server"):
				return nil
			}
			return p.found(insight.Cause, "uses the wrong scheme: the port speaks "+other, "", workloadOf(p.c.s, p.c.pod).setContainer(p.c, map[string]any{p.field: map[string]any{"httpGet": map[string]any{"scheme": other}}}, "asks by "+other))
		}),
		probeRule("probe-status", "the program answers a probe with an error", func(p probe) *insight.Finding {
			if code := p.code(); code != "" && code >= "400" {
				return p.found(insight.Cause, fmt.Sprintf("asks for %q, and the program answers %s", p.path(), code), "The program itself says that it is not well: its log should say why.", p.c.logs())
			}
			return nil
		}),
		probeRule("probe-timeout", "the program takes longer to answer a probe than the probe waits", func(p probe) *insight.Finding {
			if !strings.Contains(p.message, "deadline exceeded") && !strings.Contains(p.message, "imeout") && !strings.Contains(p.message, "timed out") {
				return nil
			}
			wait := max(1, p.TimeoutSeconds)
			f := p.found(insight.Cause, fmt.Sprintf("gets no answer within %ds", wait), "The program is busy (is its CPU limit small?), hangs, or packets are dropped on the way.")
			f.Mend = []insight.Mend{workloadOf(p.c.s, p.c.pod).setContainer(p.c, map[string]any{p.field: map[string]any{"timeoutSeconds": wait * 5}}, "waits longer"), p.c.logs()}
			return f
		}),
		probeRule("probe-command", "the command of a probe fails", func(p probe) *insight.Finding {
			if p.Exec == nil {
				return nil
			}
			return p.found(insight.Cause, fmt.Sprintf("runs %q, which fails", strings.Join(p.Exec.Command, " ")), "",
				insight.Do("runs it by hand", insight.Kubectl(p.c.pod.Namespace, "exec %s -c %s -- %s", p.c.pod.Name, p.c.spec.Name, strings.Join(p.Exec.Command, " "))))
		}),
		probeRule("probe", "a probe fails", func(p probe) *insight.Finding {
			return p.found(insight.Sign, "fails", "", p.c.logs())
		}),
		onContainer("not-ready-yet", "the program runs and its readiness probe has not succeeded", func(c *container) *insight.Finding {
			if c.init || c.status.Ready || c.status.State.Running == nil || c.spec.ReadinessProbe == nil || c.s.LastEvent(c.pod, "Unhealthy") != nil || c.s.Now.Sub(c.status.State.Running.StartedAt.Time) < patience {
				return nil
			}
			return &insight.Finding{Level: insight.Sign, What: "the program runs and is not ready", Evidence: append([]string{fmt.Sprintf("status: %s runs since %s, ready is false", c.part(), c.s.Age(c.status.State.Running.StartedAt.Time))}, c.tail(3)...), Mend: []insight.Mend{c.logs()}}
		}),
		on("readiness-gate", "a readiness gate of the pod is not open", func(s *insight.Snapshot, p *corev1.Pod) []insight.Finding {
			var out []insight.Finding
			for _, g := range p.Spec.ReadinessGates {
				c := conditions.Pod(&p.Status, g.ConditionType)
				if c != nil && c.Status == corev1.ConditionTrue || p.Status.Phase != corev1.PodRunning {
					continue
				}
				evidence := "status: the condition is not set"
				if c != nil {
					evidence = fmt.Sprintf("status: condition %s is %s: %s", c.Type, c.Status, c.Message)
				}
				out = append(out, insight.Finding{Part: "readiness gate " + string(g.ConditionType), What: fmt.Sprintf("the pod waits for its readiness gate %q", g.ConditionType),
					Why: "The controller that should set this condition does not, or does not run.", Evidence: []string{evidence}})
			}
			return out
		}),
	}
}

// A probe is one that failed, with the last message about it.
type probe struct {
	*corev1.Probe
	c       *container
	kind    string // Readiness, Liveness, Startup
	field   string
	message string
	line    string
}

var probeMessage = regexp.MustCompile(`(?s)^(Readiness|Liveness|Startup) probe (failed|errored)`)

// probeRule looks at each probe of which an event says that it fails, as long as the
// container is not ready or was restarted by it.
func probeRule(name, summary string, check func(p probe) *insight.Finding) Rule {
	return onContainer(name, summary, func(c *container) *insight.Finding {
		if c.status.Ready || c.pod.Status.Phase != corev1.PodRunning {
			return nil
		}
		for _, p := range []probe{{Probe: c.spec.StartupProbe, kind: "Startup", field: "startupProbe"}, {Probe: c.spec.LivenessProbe, kind: "Liveness", field: "livenessProbe"}, {Probe: c.spec.ReadinessProbe, kind: "Readiness", field: "readinessProbe"}} {
			if p.Probe == nil {
				continue
			}
			for _, e := range c.s.Events(c.pod) {
				m := probeMessage.FindStringSubmatch(e.Message)
				of := e.InvolvedObject.FieldPath
				if e.Reason == "Unhealthy" && m != nil && m[1] == p.kind && (of == "" || strings.Contains(of, "{"+c.spec.Name+"}")) {
					p.message, p.line = e.Message, c.s.EventLine(e)
				}
			}
			if p.message == "" {
				continue
			}
			p.c = c
			if f := check(p); f != nil {
				return f
			}
		}
		return nil
	})
}

func (p probe) found(level insight.Level, what, reason string, mend ...insight.Mend) *insight.Finding {
	f := &insight.Finding{Level: level, What: fmt.Sprintf("the %s probe %s", strings.ToLower(p.kind), what), Why: reason, Evidence: []string{shorten(p.line)}, Mend: mend}
	if p.kind != "Readiness" && p.c.status.RestartCount > 0 {
		f.Evidence = append(f.Evidence, fmt.Sprintf("status: %s was restarted %d times for it", p.c.part(), p.c.status.RestartCount))
	}
	return f
}

func (p probe) port() (intstr.IntOrString, bool) {
	switch {
	case p.HTTPGet != nil:
		return p.HTTPGet.Port, true
	case p.TCPSocket != nil:
		return p.TCPSocket.Port, true
	case p.GRPC != nil:
		return intstr.FromInt32(p.GRPC.Port), true
	}
	return intstr.IntOrString{}, false
}

func (p probe) path() string {
	if p.HTTPGet == nil {
		return ""
	}
	return cmp.Or(p.HTTPGet.Path, "/")
}

var statusCode = regexp.MustCompile(`statuscode: (\d{3})`)

func (p probe) code() string {
	if m := statusCode.FindStringSubmatch(p.message); m != nil {
		return m[1]
	}
	return ""
}

// otherPort points the probe at the container's port, if there is only one.
func (p probe) otherPort(note string) []insight.Mend {
	w := workloadOf(p.c.s, p.c.pod)
	if len(p.c.spec.Ports) != 1 {
		return []insight.Mend{w.edit("correct the port of " + p.field)}
	}
	action := "tcpSocket"
	switch {
	case p.HTTPGet != nil:
		action = "httpGet"
	case p.GRPC != nil:
		action = "grpc"
	}
	return []insight.Mend{w.setContainer(p.c, map[string]any{p.field: map[string]any{action: map[string]any{"port": p.c.spec.Ports[0].ContainerPort}}}, note)}
}

func portNames(c *corev1.Container) []string {
	var out []string
	for _, p := range c.Ports {
		out = append(out, cmp.Or(p.Name, itoa(int(p.ContainerPort))))
	}
	return out
}

func portList(c *corev1.Container) string {
	var out []string
	for _, p := range c.Ports {
		text := itoa(int(p.ContainerPort))
		if p.Name != "" {
			text += " (" + p.Name + ")"
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}
