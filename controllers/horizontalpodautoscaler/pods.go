package horizontalpodautoscaler

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/periplus/periplus/client/conditions"
	"github.com/periplus/periplus/controllers"
)

// A figure is what a metric says about one pod.
type figure struct {
	at     time.Time
	window time.Duration
	value  int64 // thousandths
}

// figures are those of several pods, by name.
type figures map[string]figure

// groups are pods by what their figures are worth.
type groups struct {
	ready   int      // as many have figures that count
	unready []string // not running yet, or their figures are of the time of their start
	missing []string // without figures
	ignored []string // going away
}

// group sorts pods. That one is unready matters for processor time only, which is
// high while a program starts.
func group(pods []*corev1.Pod, m figures, cpu bool, o *controllers.Autoscaling, now time.Time) groups {
	var g groups
	for _, p := range pods {
		f, known := m[p.Name]
		switch {
		case p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodFailed:
			g.ignored = append(g.ignored, p.Name)
		case p.Status.Phase == corev1.PodPending:
			g.unready = append(g.unready, p.Name)
		case !known:
			g.missing = append(g.missing, p.Name)
		case cpu && starting(p, f, o, now):
			g.unready = append(g.unready, p.Name)
		default:
			g.ready++
		}
	}
	return g
}

// starting reports that a pod's processor time is that of its start.
func starting(p *corev1.Pod, f figure, o *controllers.Autoscaling, now time.Time) bool {
	c := conditions.Pod(&p.Status, corev1.PodReady)
	if c == nil || p.Status.StartTime == nil {
		return true
	}
	unready := c.Status == corev1.ConditionFalse
	if p.Status.StartTime.Add(o.CPUInitialization).After(now) {
		// The whole window must lie after it became ready.
		return unready || f.at.Before(c.LastTransitionTime.Add(f.window))
	}
	return unready && p.Status.StartTime.Add(o.InitialReadiness).After(c.LastTransitionTime.Time) // it never was ready
}

// drop takes away the figures that do not count.
func (g *groups) drop(m figures) error {
	for _, name := range slices.Concat(g.ignored, g.unready) {
		delete(m, name)
	}
	if len(m) == 0 {
		return fmt.Errorf("did not receive metrics for targeted pods (pods might be unready)")
	}
	return nil
}

// requests returns how much of a resource each pod, or its container of the given
// name, has requested, in thousandths.
func requests(pods []*corev1.Pod, container string, resource corev1.ResourceName) (map[string]int64, error) {
	out := make(map[string]int64, len(pods))
	for _, p := range pods {
		if container == "" && resourcehelper.IsPodLevelRequestsSet(p) {
			q, ok := resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{})[resource]
			if !ok {
				return nil, fmt.Errorf("missing pod-level request for %s in Pod %s", resource, p.Name)
			}
			out[p.Name] = q.MilliValue()
			continue
		}
		n, err := containerRequests(p, container, resource)
		if err != nil {
			return nil, err
		}
		out[p.Name] = n
	}
	return out, nil
}

func containerRequests(p *corev1.Pod, container string, resource corev1.ResourceName) (sum int64, err error) {
	found := false
	add := func(c *corev1.Container) {
		if found && container != "" || err != nil || container != "" && c.Name != container {
			return
		}
		found = true
		q, ok := c.Resources.Requests[resource]
		if !ok {
			err = fmt.Errorf("missing request for %s in container %s of Pod %s", resource, c.Name, p.Name)
		}
		sum += q.MilliValue()
	}
	for i := range p.Spec.Containers {
		add(&p.Spec.Containers[i])
	}
	for i := range p.Spec.InitContainers {
		// A sidecar runs as long as the containers.
		if c := &p.Spec.InitContainers[i]; c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			add(c)
		}
	}
	if err == nil && container != "" && !found {
		err = fmt.Errorf("container %s not found in Pod %s", container, p.Name)
	}
	return sum, err
}
