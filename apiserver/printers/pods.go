package printers

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/periplus/periplus/client/conditions"
)

func podTables() tables {
	return tables{
		"pods": table(columns{
			name(),
			text("Ready", "How many of the pod's containers are ready."),
			text("Status", "What the pod or the container that matters most is doing."),
			text("Restarts", "How often containers were restarted, and when the last one was."),
			age(),
			wide(text("IP", doc(corev1.PodStatus{}, "podIP"))),
			wide(text("Node", doc(corev1.PodSpec{}, "nodeName"))),
			wide(text("Nominated Node", doc(corev1.PodStatus{}, "nominatedNodeName"))),
			wide(text("Readiness Gates", doc(corev1.PodSpec{}, "readinessGates"))),
		}, pod),
		"podtemplates": table(columns{
			name(),
			text("Containers", "Names of the containers in the template."),
			text("Images", "Images of the containers in the template."),
			text("Pod Labels", "Labels of the template."),
		}, func(t *corev1.PodTemplate) []any {
			names, images := containers(t.Template.Spec.Containers)
			return []any{t.Name, names, images, labels.FormatLabels(t.Template.Labels)}
		}),
	}
}

func pod(p *corev1.Pod) []any {
	s := summarize(p)
	restarts := strconv.Itoa(s.restarts)
	if s.restarts != 0 && !s.lastRestart.IsZero() {
		restarts = fmt.Sprintf("%d (%s ago)", s.restarts, since(s.lastRestart))
	}
	ip := ""
	if len(p.Status.PodIPs) > 0 {
		ip = p.Status.PodIPs[0].IP
	}
	return []any{
		p.Name, fmt.Sprintf("%d/%d", s.ready, s.total), s.status, restarts, old(p),
		or(ip, none), or(p.Spec.NodeName, none), or(p.Status.NominatedNodeName, none), readinessGates(p),
	}
}

// A summary is a pod in one line.
type summary struct {
	ready, total int
	status       string
	restarts     int
	lastRestart  metav1.Time
}

// summarize finds the one word for a pod. From weak to strong: its phase, its
// reason, scheduling gates, the first init container that is not done or else the
// first container with a reason, deletion.
func summarize(p *corev1.Pod) *summary {
	s := &summary{total: len(p.Spec.Containers), status: or(p.Status.Reason, string(p.Status.Phase))}
	if c := conditions.Pod(&p.Status, corev1.PodScheduled); c != nil && c.Reason == corev1.PodReasonSchedulingGated {
		s.status = corev1.PodReasonSchedulingGated
	}
	sidecars := map[string]bool{}
	for i := range p.Spec.InitContainers {
		if c := &p.Spec.InitContainers[i]; c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			sidecars[c.Name] = true
			s.total++
		}
	}
	sidecarRestarts, initializing := s.initContainers(p, sidecars)
	if c := conditions.Pod(&p.Status, corev1.PodInitialized); !initializing || c != nil && c.Status == corev1.ConditionTrue {
		// Restarts of containers that ran once and are done no longer matter.
		s.restarts, s.lastRestart = sidecarRestarts.restarts, sidecarRestarts.lastRestart
		s.containers(p)
	}
	switch {
	case p.DeletionTimestamp == nil:
	case p.Status.Reason == "NodeLost":
		s.status = "Unknown"
	case p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed:
		s.status = "Terminating"
	}
	return s
}

// restarted counts the restarts of one container.
func (s *summary) restarted(c *corev1.ContainerStatus) {
	s.restarts += int(c.RestartCount)
	if t := c.LastTerminationState.Terminated; t != nil && s.lastRestart.Before(&t.FinishedAt) {
		s.lastRestart = t.FinishedAt
	}
}

// initContainers looks at init containers up to the first that is not done, and
// reports whether there is one. The restarts of sidecars are counted apart too.
func (s *summary) initContainers(p *corev1.Pod, sidecars map[string]bool) (ofSidecars summary, initializing bool) {
	for i := range p.Status.InitContainerStatuses {
		c := &p.Status.InitContainerStatuses[i]
		s.restarted(c)
		if sidecars[c.Name] {
			ofSidecars.restarted(c)
		}
		terminated, waiting := c.State.Terminated, c.State.Waiting
		switch {
		case terminated != nil && terminated.ExitCode == 0:
			continue
		case sidecars[c.Name] && c.Started != nil && *c.Started:
			if c.Ready {
				s.ready++
			}
			continue
		case terminated != nil:
			s.status = "Init:" + ending(terminated)
		case waiting != nil && waiting.Reason != "" && waiting.Reason != "PodInitializing":
			s.status = "Init:" + waiting.Reason
		default:
			s.status = fmt.Sprintf("Init:%d/%d", i, len(p.Spec.InitContainers))
		}
		return ofSidecars, true
	}
	return ofSidecars, false
}

func (s *summary) containers(p *corev1.Pod) {
	running, failure := false, ""
	// Backwards, so that the first container's reason wins.
	for i := len(p.Status.ContainerStatuses) - 1; i >= 0; i-- {
		c := &p.Status.ContainerStatuses[i]
		s.restarted(c)
		switch {
		case c.State.Waiting != nil && c.State.Waiting.Reason != "":
			s.status = c.State.Waiting.Reason
		case c.State.Terminated != nil:
			s.status = ending(c.State.Terminated)
			if c.State.Terminated.ExitCode != 0 {
				failure = s.status
			}
		case c.Ready && c.State.Running != nil:
			running = true
			s.ready++
		}
	}
	if s.status != "Completed" {
		return
	}
	// One container is done, but what do the others do?
	ready := conditions.Pod(&p.Status, corev1.PodReady)
	switch {
	case running && ready != nil && ready.Status == corev1.ConditionTrue:
		s.status = "Running"
	case failure != "":
		s.status = failure
	case running:
		s.status = "NotReady"
	}
}

// ending says how a container ended.
func ending(t *corev1.ContainerStateTerminated) string {
	switch {
	case t.Reason != "":
		return t.Reason
	case t.Signal != 0:
		return fmt.Sprintf("Signal:%d", t.Signal)
	}
	return fmt.Sprintf("ExitCode:%d", t.ExitCode)
}

func readinessGates(p *corev1.Pod) string {
	if len(p.Spec.ReadinessGates) == 0 {
		return none
	}
	open := 0
	for _, g := range p.Spec.ReadinessGates {
		if c := conditions.Pod(&p.Status, g.ConditionType); c != nil && c.Status == corev1.ConditionTrue {
			open++
		}
	}
	return fmt.Sprintf("%d/%d", open, len(p.Spec.ReadinessGates))
}
