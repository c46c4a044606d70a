package why

import (
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/insight"
)

// logRules: the last words of a program that failed say what it missed.
func logRules() []Rule {
	return []Rule{
		logRule("log-name-unknown", "the program cannot resolve a host name", `no such host|[Nn]ame or service not known|can't resolve|bad address|NXDOMAIN|ENOTFOUND|EAI_AGAIN|[Tt]emporary failure in name resolution|could not translate host name|[Uu]nknown host|nodename nor servname`, nameUnknown),
		logRule("log-connection-refused", "the program cannot connect to a service that it needs", `[Cc]onnection refused|ECONNREFUSED|[Cc]onnect: refused`, func(c *container, line string) *insight.Finding {
			return c.unreachable(line, "refuses the connection")
		}),
		logRule("log-connection-timeout", "the program gets no answer from a service that it needs", `i/o timeout|[Cc]onnection timed out|ETIMEDOUT|dial tcp.*timeout|no route to host`, func(c *container, line string) *insight.Finding {
			f := c.unreachable(line, "does not answer")
			f.Why = "Silence, not a refusal: a NetworkPolicy or a firewall drops the packets, or the address belongs to nobody."
			return f
		}),
		logRule("log-address-in-use", "the port that the program listens on is taken", `[Aa]ddress already in use|EADDRINUSE`, func(c *container, line string) *insight.Finding {
			return &insight.Finding{What: "the port that the program wants to listen on is taken", Why: "Containers of a pod share one network: two of them use the same port, or, with hostNetwork, another program of the node does.",
				Mend: []insight.Mend{workloadOf(c.s, c.pod).edit("give one of them another port")}}
		}),
		logRule("log-port-privileged", "the program may not listen on a port below 1024", `bind.*[Pp]ermission denied|listen.*[Pp]ermission denied|EACCES.*listen`, func(c *container, line string) *insight.Finding {
			return &insight.Finding{What: "the program may not listen on its port", Why: "Ports below 1024 need root or the capability NET_BIND_SERVICE; a port above needs neither.",
				Mend: []insight.Mend{workloadOf(c.s, c.pod).edit("let it listen on a port above 1023, like 8080, and point the Service's targetPort there")}}
		}),
		logRule("log-read-only", "the program writes to a read-only file system", `[Rr]ead-only file system|EROFS`, func(c *container, line string) *insight.Finding {
			return &insight.Finding{What: "the program writes where the file system is read-only", Why: "readOnlyRootFilesystem is set, or the volume is mounted read-only.",
				Mend: []insight.Mend{workloadOf(c.s, c.pod).edit("mount an emptyDir where it writes")}}
		}),
		logRule("log-permission-denied", "the program may not read or write a file", `[Pp]ermission denied|EACCES|[Oo]peration not permitted|EPERM`, func(c *container, line string) *insight.Finding {
			f := &insight.Finding{What: "the program lacks a permission: " + shorten(line), Why: "Its user does not own what it opens, or a capability was dropped.",
				Mend: []insight.Mend{workloadOf(c.s, c.pod).edit("set securityContext.fsGroup so that volumes belong to the program's group, or run it as the image's own user")}}
			return f
		}),
		logRule("log-disk-full", "there is no room left for what the program writes", `[Nn]o space left on device|ENOSPC|[Dd]isk quota exceeded`, func(c *container, line string) *insight.Finding {
			return &insight.Finding{What: "there is no room left where the program writes", Mend: []insight.Mend{insight.Do("how full are its file systems?", insight.Kubectl(c.pod.Namespace, "exec %s -c %s -- df -h", c.pod.Name, c.spec.Name))}}
		}),
		logRule("log-credentials", "a service that the program needs refuses its credentials", `[Pp]assword authentication failed|[Aa]ccess denied for user|[Aa]uthentication failed|WRONGPASS|NOAUTH|[Ii]nvalid credentials`, func(c *container, line string) *insight.Finding {
			f := &insight.Finding{What: "a service that the program needs refuses its credentials", Mend: []insight.Mend{}}
			for _, u := range uses(c.pod) {
				if u.kind == "Secret" && (u.part == c.part()) {
					f.Evidence = append(f.Evidence, "spec: "+u.where+" comes from "+u.String())
					f.Mend = append(f.Mend, insight.Do("shows what the program got", insight.Kubectl(c.pod.Namespace, "get secret %s -o yaml", u.name)))
				}
			}
			return f
		}),
		logRule("log-forbidden", "the Kubernetes API forbids what the program asks for", `is forbidden: User "?system:serviceaccount|User "system:serviceaccount:[^"]*" cannot`, func(c *container, line string) *insight.Finding {
			account := c.pod.Spec.ServiceAccountName
			f := &insight.Finding{What: fmt.Sprintf("service account %q lacks rights that the program needs", account), Mend: []insight.Mend{}}
			if m := cannot.FindStringSubmatch(line); m != nil {
				group := ""
				if m[3] != "" {
					group = "." + m[3]
				}
				f.What = fmt.Sprintf("service account %q may not %s %s", account, m[1], m[2])
				f.Mend = append(f.Mend, insight.Do("gives it that right", insight.Kubectl(c.pod.Namespace, "create role %s-%s --verb=%s --resource=%s%s && %s", account, m[2], m[1], m[2], group,
					insight.Kubectl(c.pod.Namespace, "create rolebinding %s-%s --role=%s-%s --serviceaccount=%s:%s", account, m[2], account, m[2], c.pod.Namespace, account))))
			}
			return f
		}),
		logRule("log-environment", "the program misses an environment variable or an option", `(?i)(environment variable|env var|variable) .*(not set|required|missing|undefined|empty)|KeyError: '[A-Z_]+'|missing required (env|option|flag|argument|config)|required (option|flag|argument).*(missing|not)|unbound variable|parameter not set`, func(c *container, line string) *insight.Finding {
			f := &insight.Finding{What: "the program misses a setting: " + shorten(line)}
			if m := upper.FindString(line); m != "" {
				f.Mend = []insight.Mend{workloadOf(c.s, c.pod).change("sets it", "set env %s -c "+c.spec.Name+" "+m+"=VALUE")}
			}
			return f
		}),
		logRule("log-option-unknown", "the program does not know one of its arguments", `(?i)unknown (flag|option|shorthand|argument|command)|unrecognized (option|argument)|invalid option|flag provided but not defined|illegal option`, func(c *container, line string) *insight.Finding {
			return &insight.Finding{What: "the program does not know one of its arguments: " + shorten(line), Evidence: []string{fmt.Sprintf("spec: command %q, args %q", c.spec.Command, c.spec.Args)},
				Mend: []insight.Mend{workloadOf(c.s, c.pod).edit("correct args")}}
		}),
		logRule("log-certificate", "the program does not accept a service's certificate", `x509: |certificate (has expired|verify failed|is not valid)|CERTIFICATE_VERIFY_FAILED|self.signed certificate`, func(c *container, line string) *insight.Finding {
			return &insight.Finding{What: "the program does not accept a service's certificate: " + shorten(line), Why: "It is of an authority that the image does not know, has expired, or is for another name."}
		}),
		logRule("log-file-missing", "a file that the program needs does not exist", `[Nn]o such file or directory|ENOENT|FileNotFoundError|cannot open .*[Nn]o such`, func(c *container, line string) *insight.Finding {
			f := &insight.Finding{What: "a file that the program needs does not exist", Mend: []insight.Mend{workloadOf(c.s, c.pod).edit("mount it, or correct the path")}}
			if m := pathIn.FindString(line); m != "" {
				f.What = fmt.Sprintf("a file that the program needs does not exist: %s", m)
				for _, mount := range c.spec.VolumeMounts {
					if strings.HasPrefix(m, strings.TrimSuffix(mount.MountPath, "/")+"/") {
						f.Evidence = append(f.Evidence, fmt.Sprintf("spec: volume %s is mounted at %s", mount.Name, mount.MountPath))
					}
				}
			}
			return f
		}),
		logRule("log-memory", "the program could not get memory", `(?i)OutOfMemoryError|cannot allocate memory|out of memory|std::bad_alloc|MemoryError|heap out of memory`, func(c *container, line string) *insight.Finding {
			limit := c.spec.Resources.Limits.Memory()
			what := "the program could not get the memory that it wants"
			if !limit.IsZero() {
				what += " (its limit is " + limit.String() + ")"
			}
			return &insight.Finding{What: what, Mend: []insight.Mend{workloadOf(c.s, c.pod).change("gives it more", "set resources %s -c "+c.spec.Name+" --limits=memory=SIZE")}}
		}),
		logRule("log-syntax", "the program cannot read its configuration", `(?i)(invalid|malformed|bad) (configuration|config)|(yaml|json|toml): .*(line|invalid|unmarshal|unexpected)|syntax error|parse error|unexpected token|\[emerg\]`, func(c *container, line string) *insight.Finding {
			f := &insight.Finding{What: "the program cannot read its configuration: " + shorten(line)}
			for _, u := range uses(c.pod) {
				if u.kind == "ConfigMap" {
					f.Mend = append(f.Mend, insight.Do("corrects it", insight.Kubectl(c.pod.Namespace, "edit configmap %s", u.name)))
				}
			}
			return f
		}),
		logRule("log-exception", "the program met a condition that it does not handle", `^panic: |Traceback \(most recent call last\)|Exception in thread|Unhandled(PromiseRejection| exception)|^fatal error: |FATAL EXCEPTION|thread '.*' panicked`, func(c *container, line string) *insight.Finding {
			return &insight.Finding{What: "the program met a condition that it does not handle: " + shorten(line), Mend: workloadOf(c.s, c.pod).undo(c.s)}
		}),
	}
}

var (
	cannot = regexp.MustCompile(`cannot (\w+) resource "([\w/]+)" in API group "([\w.]*)"`)
	upper  = regexp.MustCompile(`\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b|\b[A-Z]{4,}\b`)
	pathIn = regexp.MustCompile(`/[\w./-]*[\w-]`)
	dialed = regexp.MustCompile(`((?:\d{1,3}\.){3}\d{1,3}|[a-zA-Z0-9][a-zA-Z0-9.-]*[a-zA-Z0-9]|localhost):(\d{2,5})\b`)
	quotes = regexp.MustCompile("[\"'`‘]([a-zA-Z0-9][a-zA-Z0-9.-]*)[\"'`’]|lookup ([a-zA-Z0-9][a-zA-Z0-9.-]*)|host ?name \"?([a-zA-Z0-9][a-zA-Z0-9.-]*)|ENOTFOUND ([a-zA-Z0-9.-]+)|EAI_AGAIN ([a-zA-Z0-9.-]+)|host: ([a-zA-Z0-9.-]+)|resolve ([a-zA-Z0-9.-]+)|find ([a-zA-Z0-9.-]+):")
)

// lastWords is how many lines from the end a program's complaint may be.
const lastWords = 12

// logRule matches a line near the end of the log of a container that failed, or of an
// init container that does not end.
func logRule(name, summary, pattern string, check func(c *container, line string) *insight.Finding) Rule {
	re := regexp.MustCompile(pattern)
	return onContainer(name, summary, func(c *container) *insight.Finding {
		t := c.failed()
		waits := c.init && c.status.State.Running != nil
		if t == nil && !waits || t != nil && (t.Reason == "StartError" || t.Reason == "OOMKilled") {
			return nil
		}
		lines := c.log()
		for _, line := range slices.Backward(lines[max(0, len(lines)-lastWords):]) {
			if !re.MatchString(line) {
				continue
			}
			f := check(c, line)
			if f == nil {
				return nil
			}
			evidence := []string{"log: " + shorten(line)}
			if t != nil {
				evidence = append(evidence, c.endLine(t))
			} else {
				evidence = append(evidence, fmt.Sprintf("status: %s runs since %s and does not end", c.part(), c.s.Age(c.status.State.Running.StartedAt.Time)))
			}
			f.Evidence = append(evidence, f.Evidence...)
			f.Mend = append(f.Mend, c.logs())
			return f
		}
		return nil
	})
}

// nameUnknown: does the Service that is meant exist?
func nameUnknown(c *container, line string) *insight.Finding {
	host := ""
	if m := quotes.FindStringSubmatch(line); m != nil {
		for _, g := range m[1:] {
			if g != "" {
				host = strings.TrimSuffix(g, ".")
			}
		}
	}
	if host == "" {
		return &insight.Finding{What: "the program cannot resolve a host name: " + shorten(line)}
	}
	name, rest, _ := strings.Cut(host, ".")
	namespace := c.pod.Namespace
	if rest != "" && rest != "svc" {
		namespace, _, _ = strings.Cut(rest, ".")
	}
	inCluster := rest == "" || strings.Contains(rest+".", "svc.") || !insight.Missing[*corev1.Namespace](c.s, "", namespace)
	if !inCluster {
		return &insight.Finding{What: fmt.Sprintf("the name %q cannot be resolved", host), Why: "It is not a name of the cluster: the node's resolvers do not know it, or cannot be reached.",
			Mend: []insight.Mend{insight.Do("on the node: do its resolvers know it?", "getent hosts "+host)}}
	}
	if _, ok := insight.Get[*corev1.Service](c.s, namespace, name); ok {
		f := &insight.Finding{What: fmt.Sprintf("the name %q cannot be resolved, although there is a Service %q in namespace %s", host, name, namespace)}
		if blocked := dnsBlocked(c.s, c.pod); blocked != "" {
			f.What += fmt.Sprintf(": NetworkPolicy %q lets no DNS question through", blocked)
			f.Mend = append(f.Mend, allowDNS(c.pod.Namespace))
		} else {
			f.Why = "It may have been made after the question; a headless Service has no name as long as no pod is ready."
		}
		return f
	}
	if !insight.Read[*corev1.Service](c.s) {
		return &insight.Finding{What: fmt.Sprintf("the name %q cannot be resolved", host)}
	}
	f := &insight.Finding{What: fmt.Sprintf("the name %q cannot be resolved: there is no Service %q in namespace %s%s", host, name, namespace, like(name, names[*corev1.Service](c.s, namespace)))}
	for _, other := range insight.All[*corev1.Service](c.s, "") {
		if other.Name == name && other.Namespace != namespace {
			f.Why = fmt.Sprintf("There is one in namespace %s: from here it is called %s.%s.", other.Namespace, name, other.Namespace)
		}
	}
	f.Mend = []insight.Mend{insight.Do("makes the Service, in front of a Deployment", insight.Kubectl(namespace, "expose deployment DEPLOYMENT --name=%s --port=PORT", name))}
	return f
}

// unreachable: whose address is it?
func (c *container) unreachable(line, what string) *insight.Finding {
	m := dialed.FindStringSubmatch(line)
	if m == nil {
		return &insight.Finding{What: "a service that the program needs " + what + ": " + shorten(line)}
	}
	host, port := m[1], m[2]
	f := &insight.Finding{What: fmt.Sprintf("%s %s, and the program needs it", net.JoinHostPort(host, port), what)}
	if host == "localhost" || strings.HasPrefix(host, "127.") {
		f.Why = "localhost is the pod itself: nothing in it listens there. A service in another pod has the name of its Service."
		return f
	}
	for _, svc := range insight.All[*corev1.Service](c.s, "") {
		name, rest, _ := strings.Cut(host, ".")
		space, _, _ := strings.Cut(rest, ".")
		named := svc.Name == name && (rest == "" && svc.Namespace == c.pod.Namespace || space == svc.Namespace)
		if svc.Spec.ClusterIP != host && !named {
			continue
		}
		f.What = fmt.Sprintf("Service %s/%s %s at port %s, and the program needs it", svc.Namespace, svc.Name, what, port)
		f.Evidence = append(f.Evidence, fmt.Sprintf("endpoints: Service %s/%s has %d ready", svc.Namespace, svc.Name, c.s.ReadyEndpoints(svc)))
		f.Mend = append(f.Mend, insight.Do("goes on from there", fmt.Sprintf("peri why -n %s service/%s", svc.Namespace, svc.Name)))
		break
	}
	return f
}
