package lint

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/insight"
)

// Rules lists all rules.
func Rules() []Rule {
	return slices.Concat(resourceRules(), probeRules(), endRules(), logRules(), availabilityRules(), securityRules(), imageRules(), nameRules(), networkRules(), apiRules())
}

// ignoreAnnotation lists rules that are not for an object, with commas between.
const ignoreAnnotation = "periplus.io/lint-ignore"

func ignored(o insight.Object) []string {
	var out []string
	for part := range strings.SplitSeq(o.GetAnnotations()[ignoreAnnotation], ",") {
		out = append(out, strings.TrimSpace(part))
	}
	return out
}

// on makes a rule for objects of type T.
func on[T insight.Object](name string, s Severity, why string, check func(s *Set, o T) []Finding) Rule {
	return Rule{name, s, why, func(set *Set, o insight.Object) []Finding {
		if t, ok := o.(T); ok {
			return check(set, t)
		}
		return nil
	}}
}

// A workload is an object with a pod template.
type workload struct {
	set      *Set
	object   insight.Object
	template *corev1.PodTemplateSpec
}

// onWorkload makes a rule for all that makes pods, and for pods.
func onWorkload(name string, s Severity, why string, check func(w workload) *Finding) Rule {
	return Rule{name, s, why, func(set *Set, o insight.Object) []Finding {
		t := template(o)
		if t == nil {
			return nil
		}
		if f := check(workload{set, o, t}); f != nil {
			return []Finding{*f}
		}
		return nil
	}}
}

// onContainer makes a rule for each container; the init containers too if all is set.
func onContainer(name string, s Severity, all bool, why string, check func(w workload, c *corev1.Container) *Finding) Rule {
	return Rule{name, s, why, func(set *Set, o insight.Object) []Finding {
		t := template(o)
		if t == nil {
			return nil
		}
		var out []Finding
		list := []*corev1.Container{}
		if all {
			for i := range t.Spec.InitContainers {
				list = append(list, &t.Spec.InitContainers[i])
			}
		}
		for i := range t.Spec.Containers {
			list = append(list, &t.Spec.Containers[i])
		}
		for _, c := range list {
			if f := check(workload{set, o, t}, c); f != nil {
				f.Part = "container " + c.Name
				out = append(out, *f)
			}
		}
		return out
	}}
}

// podFix is YAML of a pod's spec, at its place in the workload.
func (w workload) podFix(format string, args ...any) string {
	text := fmt.Sprintf(format, args...)
	path := []string{"spec", "template", "spec"}
	switch insight.KindOf(w.object) {
	case "Pod":
		path = []string{"spec"}
	case "CronJob":
		path = []string{"spec", "jobTemplate", "spec", "template", "spec"}
	}
	return under(path, text)
}

// containerFix is YAML of a container.
func (w workload) containerFix(c *corev1.Container, format string, args ...any) string {
	list := "containers"
	for i := range w.template.Spec.InitContainers {
		if &w.template.Spec.InitContainers[i] == c {
			list = "initContainers"
		}
	}
	text := "- name: " + c.Name + "\n" + indent(fmt.Sprintf(format, args...), "  ")
	return w.podFix("%s:\n%s", list, text)
}

// under puts YAML below a path of keys.
func under(path []string, text string) string {
	for _, key := range slices.Backward(path) {
		text = key + ":\n" + indent(text, "  ")
	}
	return text
}

func indent(text, by string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		b.WriteString(by + line)
	}
	return b.String()
}
