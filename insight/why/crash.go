package why

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/periplus/periplus/insight"
)

func itoa(n int) string { return strconv.Itoa(n) }

// startRules: the container's process cannot be started at all.
func startRules() []Rule {
	return []Rule{
		startRule("command-missing", "the program that the container shall run is not in the image", "executable file not found|no such file or directory|not found in \\$PATH", 127, func(c *container, message string) string {
			program := quoted(message)
			if program == "" && len(c.spec.Command) > 0 {
				program = c.spec.Command[0]
			}
			return fmt.Sprintf("the program %q is not in the image %s", cmp.Or(program, "of the entry point"), c.spec.Image)
		}, "Names without a slash are looked for in the image's PATH. A script whose first line names a missing interpreter looks the same."),
		startRule("command-not-executable", "the program may not be executed", "permission denied", 126, func(c *container, message string) string {
			return fmt.Sprintf("the program %q may not be executed", cmp.Or(quoted(message), strings.Join(c.spec.Command, " "), "of the entry point"))
		}, "The file lacks the execute permission, is a directory, or the container's user may not reach it."),
		startRule("image-architecture-run", "the program is for another processor", "exec format error", 0, func(c *container, _ string) string {
			return fmt.Sprintf("the program in %s is not for the processor of node %s%s", c.spec.Image, c.pod.Spec.NodeName, platform(c.s, c.pod))
		}, "Or it is a script without a line #!/bin/sh at its beginning."),
		startRule("working-directory-missing", "the container's working directory cannot be entered", "chdir to cwd|working directory|mkdir .* cwd", 0, func(c *container, _ string) string {
			return fmt.Sprintf("the working directory %q cannot be entered", c.spec.WorkingDir)
		}, ""),
		startRule("mount-path-conflict", "a mount cannot be made at its path in the image", "error mounting|mount .* to rootfs|not a directory: unknown", 0, func(c *container, _ string) string {
			return "a volume cannot be mounted at its path in the image " + c.spec.Image
		}, "A file cannot be mounted over a directory, nor a directory over a file; with subPath the key must exist."),
		onContainer("root-forbidden", "the image runs as root and runAsNonRoot forbids it", func(c *container) *insight.Finding {
			reason, message := c.waiting()
			if reason != "CreateContainerConfigError" || !strings.Contains(message, "runAsNonRoot") && !strings.Contains(message, "run as root") && !strings.Contains(message, "non-numeric user") {
				return nil
			}
			what := fmt.Sprintf("runAsNonRoot forbids to run the image %s as root", c.spec.Image)
			if strings.Contains(message, "non-numeric") {
				what = fmt.Sprintf("the image %s names its user by name, so that runAsNonRoot cannot be checked", c.spec.Image)
			}
			return &insight.Finding{What: what, Evidence: []string{c.waitLine()}, Mend: []insight.Mend{
				workloadOf(c.s, c.pod).setContainer(c, map[string]any{"securityContext": map[string]any{"runAsUser": 65532}}, "runs it as another user, if the image can do that"),
			}}
		}),
		onContainer("container-config", "the container cannot be made from its spec", func(c *container) *insight.Finding {
			reason, _ := c.waiting()
			switch reason {
			case "CreateContainerConfigError", "CreateContainerError", "RunContainerError", "PreCreateHookError", "PreStartHookError":
				return &insight.Finding{Level: insight.Sign, What: "the container cannot be made", Evidence: append([]string{c.waitLine()}, eventLines(c.s, c.pod, "Failed")...),
					Mend: []insight.Mend{workloadOf(c.s, c.pod).edit("change what the message names")}}
			}
			return nil
		}),
		onContainer("poststart-failed", "the container's postStart hook fails", func(c *container) *insight.Finding {
			reason, message := c.waiting()
			e := c.s.LastEvent(c.pod, "FailedPostStartHook")
			if reason != "PostStartHookError" && (e == nil || !strings.Contains(e.Message, c.spec.Name) && len(c.pod.Spec.Containers) > 1 || c.status.Ready) {
				return nil
			}
			f := &insight.Finding{What: "the postStart hook fails, so that the container is ended", Mend: []insight.Mend{workloadOf(c.s, c.pod).edit("mend or remove lifecycle.postStart")}}
			if message != "" {
				f.Evidence = append(f.Evidence, c.waitLine())
			}
			f.Evidence = append(f.Evidence, eventLines(c.s, c.pod, "FailedPostStartHook")...)
			return f
		}),
	}
}

// startRule matches what the runtime says about a process that it cannot start. code is
// the exit code of a shell that met the same.
func startRule(name, summary, pattern string, code int32, what func(c *container, message string) string, reason string) Rule {
	re := regexp.MustCompile(pattern)
	return onContainer(name, summary, func(c *container) *insight.Finding {
		why, message := c.waiting()
		t := c.failed()
		evidence := []string{}
		switch {
		case why == "RunContainerError" || why == "CreateContainerError":
			evidence = append(evidence, shorten(c.waitLine()))
		case t != nil && (t.Reason == "StartError" || t.Reason == "ContainerCannotRun"):
			message = t.Message
			evidence = append(evidence, c.endLine(t), "status: "+shorten(t.Message))
		case t != nil && code != 0 && t.ExitCode == code:
			lines := c.log()
			message = ""
			if len(lines) > 0 {
				message = lines[len(lines)-1]
			}
			if !regexp.MustCompile("not found|No such file|ermission denied|cannot execute|can't execute").MatchString(message) && message != "" {
				return nil
			}
			if message == "" && len(c.spec.Command) == 0 {
				message = "entry point"
			}
			return &insight.Finding{What: strings.TrimSuffix("the container's command cannot run a program: "+message, ": "), Why: reason,
				Evidence: append([]string{c.endLine(t)}, c.tail(3)...), Mend: []insight.Mend{workloadOf(c.s, c.pod).edit("correct command and args"), c.logs()}}
		default:
			return nil
		}
		if !re.MatchString(message) {
			return nil
		}
		return &insight.Finding{What: what(c, message), Why: reason, Evidence: evidence, Mend: append([]insight.Mend{workloadOf(c.s, c.pod).edit("correct command, args or image")}, workloadOf(c.s, c.pod).undo(c.s)...)}
	})
}

var inQuotes = regexp.MustCompile("exec: \\\\?\"([^\"\\\\]+)\\\\?\"|executable file [`'\"]([^`'\"]+)|exec (/[^ :]+)")

// quoted is the program in a runtime's message.
func quoted(message string) string {
	m := inQuotes.FindStringSubmatch(message)
	if m == nil {
		return ""
	}
	return cmp.Or(m[1], m[2], m[3])
}

// crashRules: the process runs, and ends as it should not.
func crashRules() []Rule {
	return []Rule{
		onContainer("out-of-memory", "the container used more memory than its limit and was killed", func(c *container) *insight.Finding {
			t := c.ended()
			if t == nil || t.Reason != "OOMKilled" {
				return nil
			}
			limit, ok := c.spec.Resources.Limits[corev1.ResourceMemory]
			if !ok {
				return &insight.Finding{What: "the node ran out of memory, and the kernel killed the container", Why: "It has no memory limit of its own.", Evidence: []string{c.endLine(t)},
					Mend: []insight.Mend{workloadOf(c.s, c.pod).change("says how much it needs, so that it is placed where that is free", "set resources %s -c "+c.spec.Name+" --requests=memory=SIZE --limits=memory=SIZE")}}
			}
			twice := resource.NewQuantity(limit.Value()*2, limit.Format)
			w := workloadOf(c.s, c.pod)
			return &insight.Finding{
				What: fmt.Sprintf("the container needs more memory than its limit of %s, and was killed for it", limit.String()),
				Why:  "If twice as much does not do either, the program leaks, or sizes itself by the machine's memory.", Evidence: append([]string{c.endLine(t)}, c.tail(2)...),
				Mend: []insight.Mend{w.setContainer(c, map[string]any{"resources": map[string]any{"limits": map[string]any{"memory": twice.String()}}}, "doubles the limit"), c.logs()},
			}
		}),
		onContainer("ends-at-once", "the container's program ends without an error, and is started again and again", func(c *container) *insight.Finding {
			t := c.ended()
			reason, _ := c.waiting()
			if t == nil || t.ExitCode != 0 || t.Reason == "OOMKilled" || c.init || reason != "CrashLoopBackOff" || c.status.RestartCount == 0 {
				return nil
			}
			what := "the program ends by itself, without an error, and a " + workloadOf(c.s, c.pod).ref.Kind + " starts it again and again"
			f := &insight.Finding{What: what, Why: "A server must stay in the foreground; what is meant to end belongs into a Job.", Evidence: append([]string{c.endLine(t), c.waitLine()}, c.tail(3)...)}
			f.Mend = []insight.Mend{workloadOf(c.s, c.pod).edit("give a command that stays (a shell without a terminal ends at once)"), c.logs()}
			return f
		}),
		exitRule("killed", "the container was killed by SIGKILL", 137, "was killed (SIGKILL), and not for its own memory limit", "Either it did not end within its grace period, or the node's memory was short.", insight.Sign),
		exitRule("segmentation-fault", "the program crashed", 139, "crashed (SIGSEGV: it touched memory that is not its own)", "An image for another C library or processor may do that, besides bugs.", insight.Cause),
		exitRule("aborted", "the program aborted itself", 134, "aborted itself (SIGABRT)", "", insight.Sign),
		onContainer("crash", "the container ends with an error", func(c *container) *insight.Finding {
			t := c.failed()
			if t == nil || t.Reason == "StartError" || t.ExitCode == 137 || t.ExitCode == 134 || c.init {
				return nil
			}
			f := &insight.Finding{Level: insight.Sign, What: fmt.Sprintf("the program ends with exit code %d", t.ExitCode), Evidence: append([]string{c.endLine(t)}, c.tail(5)...), Mend: []insight.Mend{c.logs()}}
			if t.Message != "" {
				f.Evidence = append(f.Evidence, "status: "+shorten(strings.TrimSpace(t.Message)))
			}
			if lines := c.log(); len(lines) > 0 {
				f.What += "; its last words: " + shorten(lines[len(lines)-1])
			} else {
				f.What += " and says nothing"
				f.Why = "It wrote nothing to its standard output or standard error."
			}
			f.Mend = append(f.Mend, workloadOf(c.s, c.pod).undo(c.s)...)
			return f
		}),
	}
}

func exitRule(name, summary string, code int32, what, reason string, level insight.Level) Rule {
	return onContainer(name, summary, func(c *container) *insight.Finding {
		t := c.failed()
		if t == nil || t.ExitCode != code || t.Reason == "OOMKilled" || c.s.LastEvent(c.pod, "Unhealthy") != nil && code == 137 {
			return nil
		}
		return &insight.Finding{Level: level, What: "the program " + what, Why: reason, Evidence: append([]string{c.endLine(t)}, c.tail(3)...), Mend: []insight.Mend{c.logs()}}
	})
}
