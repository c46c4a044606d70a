package lint

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// endRules: pods end all the time: a node is drained, a revision rolled out. Nobody
// should notice.
func endRules() []Rule {
	return []Rule{
		onContainer("shell-entry-point", Warning, false, "The shell is process 1 and does not pass SIGTERM on: the program never hears that it should end, and is killed after the grace period with its requests.", func(w workload, c *corev1.Container) *Finding {
			script, ok := shellScript(c)
			if !ok || !serves(w.object) || len(w.template.Spec.Containers) == 0 || w.template.Spec.ShareProcessNamespace != nil && *w.template.Spec.ShareProcessNamespace {
				return nil
			}
			last := lastCommand(script)
			if strings.HasPrefix(last, "exec ") || strings.Contains(script, "trap ") || last == "" {
				return nil
			}
			return &Finding{What: fmt.Sprintf("runs its program from a shell without exec: %q", shorten(script)), Fix: w.containerFix(c, "command: [sh, -c, %q]\n", strings.TrimSuffix(script, last)+"exec "+last)}
		}),
		onContainer("drain", Advice, false, "A pod is told to end at the moment when others are told to send it nothing more: without a short pause the last requests meet a closed door.", func(w workload, c *corev1.Container) *Finding {
			if !serves(w.object) || !fronted(w) || len(c.Ports) == 0 || c.Lifecycle != nil && c.Lifecycle.PreStop != nil {
				return nil
			}
			return &Finding{What: "is behind a Service and has no preStop pause", Fix: w.containerFix(c, "lifecycle:\n  preStop:\n    sleep:\n      seconds: 5\n")}
		}),
		onWorkload("grace-period", Error, "What has not ended by then is killed in the middle of its work.", func(w workload) *Finding {
			grace := int64(30)
			if g := w.template.Spec.TerminationGracePeriodSeconds; g != nil {
				grace = *g
			}
			for _, c := range w.template.Spec.Containers {
				if pause := preStop(&c); pause >= grace && pause > 0 {
					return &Finding{Part: "container " + c.Name, What: fmt.Sprintf("preStop takes %ds of a grace period of %ds: nothing is left for the program", pause, grace), Fix: w.podFix("terminationGracePeriodSeconds: %d\n", pause+30)}
				}
			}
			return nil
		}),
		onWorkload("no-grace", Warning, "With a grace period of zero the program is killed at once: requests are cut off, data may be lost.", func(w workload) *Finding {
			if g := w.template.Spec.TerminationGracePeriodSeconds; g == nil || *g > 0 || !serves(w.object) {
				return nil
			}
			return &Finding{What: "terminationGracePeriodSeconds is 0", Fix: w.podFix("terminationGracePeriodSeconds: 30\n")}
		}),
	}
}

var shells = []string{"sh", "bash", "ash", "dash", "zsh"}

// shellScript is what the container's shell runs: command: [sh, -c, …].
func shellScript(c *corev1.Container) (string, bool) {
	line := slices.Concat(c.Command, c.Args)
	if len(c.Command) == 0 || len(line) < 3 || !slices.Contains(shells, path.Base(line[0])) {
		return "", false
	}
	for i, word := range line[1:] {
		if strings.HasPrefix(word, "-") && strings.HasSuffix(word, "c") && i+2 < len(line) {
			return strings.TrimSpace(line[i+2]), true
		}
	}
	return "", false
}

// lastCommand is the one that stays: the last of the script. Loops and the like are
// nothing that exec could replace.
func lastCommand(script string) string {
	quote, begin := rune(0), 0
	for i, c := range script {
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == ';' || c == '\n' || c == '&' || c == '|':
			begin = i + 1
		}
	}
	last := strings.TrimSpace(script[begin:])
	for _, word := range []string{"done", "fi", "}", "esac", "wait", "sleep"} {
		if last == word || strings.HasPrefix(last, word+" ") {
			return ""
		}
	}
	return last
}

// preStop is how many seconds a preStop hook pauses.
func preStop(c *corev1.Container) int64 {
	if c.Lifecycle == nil || c.Lifecycle.PreStop == nil {
		return 0
	}
	if s := c.Lifecycle.PreStop.Sleep; s != nil {
		return s.Seconds
	}
	if e := c.Lifecycle.PreStop.Exec; e != nil {
		if m := pause.FindStringSubmatch(strings.Join(e.Command, " ")); m != nil {
			n := int64(0)
			for _, d := range m[1] {
				n = n*10 + int64(d-'0')
			}
			return n
		}
	}
	return 0
}

var pause = regexp.MustCompile(`sleep (\d{1,6})\b`)

func shorten(s string) string {
	const most = 80
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// logRules: logs belong to standard output, where the cluster collects and rotates them.
func logRules() []Rule {
	return []Rule{
		onContainer("log-file", Warning, false, "What is written to a file inside the container is not seen by kubectl logs, is collected by nobody, fills the disk, and is gone with the pod.", func(w workload, c *corev1.Container) *Finding {
			for _, word := range slices.Concat(c.Command, c.Args) {
				if m := logOption.FindStringSubmatch(word); m != nil && !standard(m[1]) {
					return &Finding{What: fmt.Sprintf("writes its log to a file: %s", shorten(word)), Fix: w.containerFix(c, "# instead of %s\nargs: [%q]\n", shorten(word), strings.Replace(word, m[1], "/dev/stdout", 1))}
				}
			}
			for _, e := range c.Env {
				if logName.MatchString(e.Name) && strings.HasPrefix(e.Value, "/") && !standard(e.Value) {
					return &Finding{What: fmt.Sprintf("writes its log to a file: %s=%s", e.Name, e.Value), Fix: w.containerFix(c, "env:\n- name: %s\n  value: /dev/stdout\n", e.Name)}
				}
			}
			return nil
		}),
		onContainer("log-volume", Advice, false, "A volume for logs is a sign that the program writes files: let it write to standard output, or let a sidecar print them.", func(w workload, c *corev1.Container) *Finding {
			for _, m := range c.VolumeMounts {
				if p := path.Clean(m.MountPath); (p == "/var/log" || strings.HasPrefix(p, "/var/log/") || path.Base(p) == "logs") && len(w.template.Spec.Containers) == 1 && !daemon(w) {
					return &Finding{What: fmt.Sprintf("has volume %s at %s", m.Name, m.MountPath), Fix: w.containerFix(c, "# as a sidecar that prints the file:\n# initContainers: [{name: log, image: busybox, restartPolicy: Always, command: [tail, -F, %s/app.log], volumeMounts: [{name: %s, mountPath: %s}]}]\n", m.MountPath, m.Name, m.MountPath)}
				}
			}
			return nil
		}),
	}
}

var (
	logOption = regexp.MustCompile(`^--?(?:log[-_]?(?:file|dir|path|output)|logfile|access[-_]log|error[-_]log)[= ](\S+)`)
	logName   = regexp.MustCompile(`^(\w+_)?LOG_?(FILE|PATH|DIR|OUTPUT)$`)
)

func standard(p string) bool {
	return p == "-" || p == "stdout" || p == "stderr" || strings.HasPrefix(p, "/dev/") || strings.HasPrefix(p, "/proc/")
}

func daemon(w workload) bool {
	for _, v := range w.template.Spec.Volumes {
		if v.HostPath != nil {
			return true // it collects the node's logs
		}
	}
	return false
}
