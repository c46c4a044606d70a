package why

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/insight"
)

// A workload is what makes a pod, or the pod itself: where its template is changed.
type workload struct {
	object   insight.Object
	ref      insight.Ref
	group    string
	resource string
	// path leads to the pod's spec; empty if it cannot be changed in place.
	path []string
}

// workloadOf finds the one that made a pod.
func workloadOf(s *insight.Snapshot, p *corev1.Pod) workload {
	o := s.Owner(p)
	w := workload{object: o, ref: insight.RefOf(o)}
	inTemplate := []string{"spec", "template", "spec"}
	switch o.(type) {
	case *appsv1.Deployment:
		w.group, w.resource, w.path = "apps", "deployments", inTemplate
	case *appsv1.StatefulSet:
		w.group, w.resource, w.path = "apps", "statefulsets", inTemplate
	case *appsv1.DaemonSet:
		w.group, w.resource, w.path = "apps", "daemonsets", inTemplate
	case *appsv1.ReplicaSet:
		w.group, w.resource, w.path = "apps", "replicasets", inTemplate
	case *batchv1.CronJob:
		w.group, w.resource, w.path = "batch", "cronjobs", []string{"spec", "jobTemplate", "spec", "template", "spec"}
	}
	return w
}

// set changes fields of the pod's spec in the workload's template. Without a
// template that can be changed it says how to do it by hand.
func (w workload) set(fields map[string]any, note string) insight.Mend {
	if w.path == nil {
		return w.edit(note)
	}
	return insight.Patched(w.group, "v1", w.resource, w.ref, nested(w.path, fields), note)
}

// setContainer changes fields of one container.
func (w workload) setContainer(c *container, fields map[string]any, note string) insight.Mend {
	fields["name"] = c.spec.Name
	return w.set(map[string]any{listOf(c): []any{fields}}, note)
}

// change is a command on the workload, which format names; a pod can only be edited.
func (w workload) change(note, format string) insight.Mend {
	if w.path == nil {
		return w.edit(note)
	}
	return insight.Do(note, insight.Kubectl(w.ref.Namespace, format, w.ref))
}

// edit is the way that always works; nothing is done without a person.
func (w workload) edit(note string) insight.Mend {
	switch w.ref.Kind {
	case "Pod":
		return insight.Do(note+" (a pod's spec cannot be changed: this deletes it and makes it anew)",
			insight.Kubectl(w.ref.Namespace, "get pod %s -o yaml > pod.yaml && $EDITOR pod.yaml && %s", w.ref.Name, insight.Kubectl(w.ref.Namespace, "replace --force -f pod.yaml")))
	case "Job":
		return insight.Do(note+" (a Job's template cannot be changed: this deletes it and makes it anew)",
			insight.Kubectl(w.ref.Namespace, "get job %s -o yaml > job.yaml && $EDITOR job.yaml && %s", w.ref.Name, insight.Kubectl(w.ref.Namespace, "replace --force -f job.yaml")))
	}
	return insight.Do(note, insight.Kubectl(w.ref.Namespace, "edit %s", w.ref))
}

// undo goes back to the revision before, if there is one.
func (w workload) undo(s *insight.Snapshot) []insight.Mend {
	d, ok := w.object.(*appsv1.Deployment)
	if !ok || len(s.Revisions(d)) < 2 {
		return nil
	}
	return []insight.Mend{insight.Do("goes back to the revision before", insight.Kubectl(w.ref.Namespace, "rollout undo %s", w.ref))}
}

func nested(path []string, fields map[string]any) string {
	var body any = fields
	for _, key := range slices.Backward(path) {
		body = map[string]any{key: body}
	}
	text, err := json.Marshal(body)
	if err != nil { // of maps, slices and strings: never
		panic(err)
	}
	return string(text)
}

func listOf(c *container) string {
	for i := range c.pod.Spec.InitContainers {
		if &c.pod.Spec.InitContainers[i] == c.spec {
			return "initContainers"
		}
	}
	return "containers"
}

// logs is the command that shows more of a container's log.
func (c *container) logs() insight.Mend {
	previous := ""
	if c.status.RestartCount > 0 && c.status.State.Running == nil {
		previous = " --previous"
	}
	return insight.Do("shows the whole log", insight.Kubectl(c.pod.Namespace, "logs %s -c %s%s", c.pod.Name, c.spec.Name, previous))
}

// tail are the last lines of the container's log, as evidence.
func (c *container) tail(n int) []string {
	lines := c.log()
	lines = lines[max(0, len(lines)-n):]
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = "log: " + shorten(l)
	}
	return out
}

// shorten keeps lines of evidence readable.
func shorten(line string) string {
	const most = 300
	if r := []rune(line); len(r) > most {
		return string(r[:most]) + "…"
	}
	return line
}

// endLine says how a container ended, as evidence.
func (c *container) endLine(t *corev1.ContainerStateTerminated) string {
	text := fmt.Sprintf("status: %s ended with exit code %d", c.part(), t.ExitCode)
	if t.Reason != "" {
		text += " (" + t.Reason + ")"
	}
	if !t.FinishedAt.IsZero() {
		text += " " + c.s.Age(t.FinishedAt.Time) + " ago"
	}
	if took := t.FinishedAt.Sub(t.StartedAt.Time); !t.StartedAt.IsZero() && took >= 0 {
		text += fmt.Sprintf(", after %s", took)
	}
	if c.status.RestartCount > 0 {
		text += fmt.Sprintf("; %d restarts", c.status.RestartCount)
	}
	return text
}

// waitLine says why a container waits, as evidence.
func (c *container) waitLine() string {
	reason, message := c.waiting()
	return strings.TrimSuffix(fmt.Sprintf("status: %s waits: %s: %s", c.part(), reason, strings.TrimSpace(message)), ": ")
}

// eventLines are the newest events with one of the reasons, as evidence.
func eventLines(s *insight.Snapshot, o insight.Object, reasons ...string) []string {
	if e := s.LastEvent(o, reasons...); e != nil {
		return []string{s.EventLine(e)}
	}
	return nil
}
