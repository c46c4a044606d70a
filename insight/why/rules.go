package why

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/insight"
)

// A Rule recognises one kind of failure.
type Rule struct {
	// Name is stable: people search for it and switch by it.
	Name string
	// Summary is a line for the table in docs/why.md.
	Summary string
	// family is set for rules of which the first with a cause speaks: they go from
	// the special to the general.
	family string
	check  func(s *insight.Snapshot, o insight.Object) []insight.Finding
}

// Rules lists all rules, in the order in which they are tried.
func Rules() []Rule {
	return slices.Concat(
		family("image", imageRules()), configRules(), family("container", startRules(), crashRules(), logRules()),
		family("probe", probeRules()), initRules(), family("pod", podRules()),
		scheduleRules(), claimRules(), mountRules(),
		family("admission", admissionRules()), rolloutRules(), jobRules(), scalerRules(),
		family("service", serviceRules()), policyRules(), ingressRules(), nodeRules(), stuckRules(),
	)
}

func family(name string, lists ...[]Rule) []Rule {
	out := slices.Concat(lists...)
	for i := range out {
		out[i].family = name
	}
	return out
}

// on makes a rule that looks at objects of type T.
func on[T insight.Object](name, summary string, check func(s *insight.Snapshot, o T) []insight.Finding) Rule {
	return Rule{Name: name, Summary: summary, check: func(s *insight.Snapshot, o insight.Object) []insight.Finding {
		t, ok := o.(T)
		if !ok {
			return nil
		}
		found := check(s, t)
		for i := range found {
			found[i].Rule = name
			if found[i].Object == (insight.Ref{}) {
				found[i].Object = insight.RefOf(t)
			}
		}
		return found
	}}
}

// one is the result of a rule that finds at most one thing.
func one(f *insight.Finding) []insight.Finding {
	if f == nil {
		return nil
	}
	return []insight.Finding{*f}
}

// A container is one of a pod, with its status.
type container struct {
	s      *insight.Snapshot
	pod    *corev1.Pod
	spec   *corev1.Container
	status corev1.ContainerStatus
	init   bool // it ends before others start
}

// onContainer makes a rule that looks at each container of a pod.
func onContainer(name, summary string, check func(c *container) *insight.Finding) Rule {
	return on(name, summary, func(s *insight.Snapshot, p *corev1.Pod) []insight.Finding {
		var out []insight.Finding
		for _, c := range containersOf(s, p) {
			if f := check(c); f != nil {
				f.Part = c.part()
				out = append(out, *f)
			}
		}
		return out
	})
}

func containersOf(s *insight.Snapshot, p *corev1.Pod) []*container {
	status := map[string]corev1.ContainerStatus{}
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for _, st := range list {
			status[st.Name] = st
		}
	}
	var out []*container
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		sidecar := c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
		out = append(out, &container{s, p, c, status[c.Name], !sidecar})
	}
	for i := range p.Spec.Containers {
		out = append(out, &container{s, p, &p.Spec.Containers[i], status[p.Spec.Containers[i].Name], false})
	}
	return out
}

func (c *container) part() string {
	if c.init {
		return "init container " + c.spec.Name
	}
	return "container " + c.spec.Name
}

// waiting is why the container has not started, empty if it has.
func (c *container) waiting() (reason, message string) {
	if w := c.status.State.Waiting; w != nil {
		return w.Reason, w.Message
	}
	return "", ""
}

// ended is how the container ended last, nil if it never did or if all is well now.
func (c *container) ended() *corev1.ContainerStateTerminated {
	if t := c.status.State.Terminated; t != nil {
		return t
	}
	if c.status.State.Running != nil && c.status.Ready {
		return nil
	}
	return c.status.LastTerminationState.Terminated
}

// failed is how the container ended last, if that was not as it should be.
func (c *container) failed() *corev1.ContainerStateTerminated {
	t := c.ended()
	if t == nil || t.ExitCode == 0 && t.Reason != "OOMKilled" {
		return nil
	}
	return t
}

// log is the last line of the container's log that matters: blank ones are dropped.
func (c *container) log() []string { return c.s.Log(c.pod.Name, c.spec.Name) }
