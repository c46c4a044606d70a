package daemonset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/periplus/periplus/client/conditions"
	"github.com/periplus/periplus/controllers"
)

// pass is one reconciliation of one set.
type pass struct {
	*reconciler
	ds         *appsv1.DaemonSet
	history    []*appsv1.ControllerRevision
	current    *appsv1.ControllerRevision
	hash       string
	collisions int32
	nodes      []*corev1.Node
	verdicts   map[string]verdict
	pods       map[string][]*corev1.Pod // by node; oldest first
	now        time.Time
	wait       time.Duration

	create []string // nodes
	remove []*corev1.Pod
}

func (r *reconciler) newPass(ctx context.Context, ds *appsv1.DaemonSet, pods []*corev1.Pod) (*pass, error) {
	p := &pass{reconciler: r, ds: ds, history: r.revisions.List(ds), verdicts: map[string]verdict{}, pods: map[string][]*corev1.Pod{}, now: r.Clock.Now()}
	if ds.Status.CollisionCount != nil {
		p.collisions = *ds.Status.CollisionCount
	}
	var err error
	if p.current, err = r.revisions.Current(ctx, ds, &ds.Spec.Template, p.history, &p.collisions); err != nil {
		return nil, err
	}
	p.hash = p.current.Labels[appsv1.DefaultDaemonSetUniqueLabelKey]
	list, err := r.nodes.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	p.nodes = list
	slices.SortFunc(p.nodes, func(a, b *corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	for _, n := range p.nodes {
		p.verdicts[n.Name] = fits(ds, n)
	}
	for _, pod := range pods {
		p.pods[nodeOf(pod)] = append(p.pods[nodeOf(pod)], pod)
	}
	for _, on := range p.pods {
		slices.SortFunc(on, func(a, b *corev1.Pod) int {
			// One that has its node counts before one that waits for it.
			if x, y := a.Spec.NodeName == "", b.Spec.NodeName == ""; x != y {
				if x {
					return 1
				}
				return -1
			}
			return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
		})
	}
	return p, nil
}

func (p *pass) updated(pod *corev1.Pod) bool {
	return pod.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] == p.hash
}

func (p *pass) available(pod *corev1.Pod) bool {
	ok, wait := controllers.PodAvailable(pod, p.ds.Spec.MinReadySeconds, p.now)
	if !ok && wait > 0 && (p.wait == 0 || wait < p.wait) {
		p.wait = wait
	}
	return ok
}

// run decides for every node, then creates and deletes.
func (p *pass) run(ctx context.Context) error {
	surge, unavailable, err := p.limits()
	if err != nil {
		return err
	}
	for _, n := range p.nodes {
		p.node(n, surge > 0)
	}
	for node, on := range p.pods {
		if _, known := p.verdicts[node]; !known && node != "" {
			p.remove = append(p.remove, on...) // the node is gone
		}
	}
	if p.ds.Spec.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType && len(p.create) == 0 && len(p.remove) == 0 {
		if surge > 0 {
			p.surge(surge)
		} else {
			p.replace(unavailable)
		}
	}
	return p.act(ctx)
}

// node decides what is missing or too much on one node.
func (p *pass) node(n *corev1.Node, surging bool) {
	v := p.verdicts[n.Name]
	var alive []*corev1.Pod
	for _, pod := range p.pods[n.Name] {
		switch {
		case pod.DeletionTimestamp != nil:
		case controllers.PodFinished(pod):
			reason, text := "SucceededDaemonPod", "Found succeeded daemon pod %s/%s on node %s, will try to delete it"
			level := corev1.EventTypeNormal
			if pod.Status.Phase == corev1.PodFailed {
				reason, text, level = "FailedDaemonPod", "Found failed daemon pod %s/%s on node %s, will try to kill it", corev1.EventTypeWarning
			}
			p.Recorder.Eventf(p.ds, level, reason, text, pod.Namespace, pod.Name, n.Name)
			p.remove = append(p.remove, pod)
		default:
			alive = append(alive, pod)
		}
	}
	switch {
	case !v.stay:
		p.remove = append(p.remove, alive...)
	case v.run && len(alive) == 0 && len(p.pods[n.Name]) == 0:
		p.create = append(p.create, n.Name)
	case v.run && len(alive) == 0:
		// The one that ends is waited for: its end brings us back. While surging
		// there may be two.
		if surging {
			p.create = append(p.create, n.Name)
		}
	case len(alive) > 1:
		p.spare(alive, surging)
	}
}

// spare removes pods too many: while surging one of each version may be there.
func (p *pass) spare(alive []*corev1.Pod, surging bool) {
	var old, new []*corev1.Pod
	for _, pod := range alive {
		if p.updated(pod) {
			new = append(new, pod)
		} else {
			old = append(old, pod)
		}
	}
	if !surging || len(old) == 0 || len(new) == 0 {
		p.remove = append(p.remove, alive[1:]...)
		return
	}
	p.remove = append(append(p.remove, old[1:]...), new[1:]...)
	if p.available(new[0]) || !conditions.PodReady(old[0]) {
		p.remove = append(p.remove, old[0])
	}
}

func (p *pass) limits() (surge, unavailable int, err error) {
	r := p.ds.Spec.UpdateStrategy.RollingUpdate
	if r == nil {
		return 0, 1, nil
	}
	desired := 0
	for _, v := range p.verdicts {
		if v.run {
			desired++
		}
	}
	scaled := func(value *intstr.IntOrString) int {
		if value == nil || err != nil {
			return 0
		}
		var n int
		n, err = intstr.GetScaledValueFromIntOrPercent(value, desired, true)
		return n
	}
	surge, unavailable = scaled(r.MaxSurge), scaled(r.MaxUnavailable)
	if surge == 0 && unavailable == 0 {
		unavailable = 1 // rounded down to nothing: one must go
	}
	return surge, unavailable, err
}

// replace deletes old pods, as many as may be away at a time.
func (p *pass) replace(unavailable int) {
	away := 0
	var dead, well []*corev1.Pod
	for _, n := range p.nodes {
		if !p.verdicts[n.Name].run {
			continue
		}
		on := p.pods[n.Name]
		switch {
		case len(on) == 0, on[0].DeletionTimestamp != nil:
			away++
		case p.updated(on[0]):
			if !p.available(on[0]) {
				away++
			}
		case !p.available(on[0]):
			dead = append(dead, on[0]) // its place is lost already
			away++
		default:
			well = append(well, on[0])
		}
	}
	p.remove = append(p.remove, dead...)
	p.remove = append(p.remove, well[:min(len(well), max(0, unavailable-away))]...)
}

// surge makes new pods beside old ones, as many as may be there in addition.
func (p *pass) surge(most int) {
	extra := 0
	var next []string
	for _, n := range p.nodes {
		if !p.verdicts[n.Name].run {
			continue
		}
		old, new := false, false
		ready := true
		for _, pod := range p.pods[n.Name] {
			if pod.DeletionTimestamp != nil {
				continue
			}
			if p.updated(pod) {
				new = true
			} else {
				old = true
				ready = ready && p.available(pod)
			}
		}
		switch {
		case old && new:
			extra++
		case old && !ready:
			p.create = append(p.create, n.Name) // nothing is lost by it
		case old:
			next = append(next, n.Name)
		}
	}
	p.create = append(p.create, next[:min(len(next), max(0, most-extra))]...)
}

// act creates and deletes what was decided.
func (p *pass) act(ctx context.Context) error {
	key, begin := controllers.KeyOf(p.ds), time.Now()
	p.expect.Begin(key)
	defer p.expect.End(key)
	made, err := controllers.SlowStart(len(p.create), func(i int) error {
		pod, err := p.Client.CoreV1().Pods(p.ds.Namespace).Create(ctx, newPod(p.ds, p.hash, p.create[i]), metav1.CreateOptions{})
		if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return nil
		}
		if err != nil {
			p.Recorder.Eventf(p.ds, corev1.EventTypeWarning, "FailedCreate", "Error creating: %v", err)
			return err
		}
		p.expect.Created(key, pod.UID)
		p.Recorder.Eventf(p.ds, corev1.EventTypeNormal, "SuccessfulCreate", "Created pod: %v", pod.Name)
		return nil
	})
	if made > 0 {
		p.Span(fmt.Sprintf("created %d of %d pods", made, len(p.create)), kind.Kind, p.ds, begin)
	}
	gone := controllers.Parallel(len(p.remove), 32, func(i int) error {
		pod := p.remove[i]
		if pod.DeletionTimestamp != nil {
			return nil
		}
		uid := pod.UID
		err := p.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		switch {
		case apierrors.IsNotFound(err), apierrors.IsConflict(err):
			return nil
		case err != nil:
			p.Recorder.Eventf(p.ds, corev1.EventTypeWarning, "FailedDelete", "Error deleting: %v", err)
			return err
		}
		p.expect.Deleted(key, uid)
		p.Recorder.Eventf(p.ds, corev1.EventTypeNormal, "SuccessfulDelete", "Deleted pod: %v", pod.Name)
		return nil
	})
	return errors.Join(err, gone)
}

// writeStatus counts and writes the status if it has changed.
func (p *pass) writeStatus(ctx context.Context) error {
	s := appsv1.DaemonSetStatus{ObservedGeneration: p.ds.Generation, CollisionCount: p.ds.Status.CollisionCount, Conditions: p.ds.Status.Conditions}
	if p.collisions != 0 {
		s.CollisionCount = &p.collisions
	}
	for _, n := range p.nodes {
		on := slices.DeleteFunc(slices.Clone(p.pods[n.Name]), func(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil })
		if !p.verdicts[n.Name].run {
			if len(on) > 0 {
				s.NumberMisscheduled++
			}
			continue
		}
		s.DesiredNumberScheduled++
		if len(on) == 0 {
			continue
		}
		s.CurrentNumberScheduled++
		// The new one counts while there are two.
		if i := slices.IndexFunc(on, p.updated); i >= 0 {
			s.UpdatedNumberScheduled++
			on[0] = on[i]
		}
		if conditions.PodReady(on[0]) {
			s.NumberReady++
			if p.available(on[0]) {
				s.NumberAvailable++
			}
		}
	}
	s.NumberUnavailable = s.DesiredNumberScheduled - s.NumberAvailable
	if apiequality.Semantic.DeepEqual(&p.ds.Status, &s) {
		return nil
	}
	out := p.ds.DeepCopy()
	out.Status = s
	_, err := p.Client.AppsV1().DaemonSets(out.Namespace).UpdateStatus(ctx, out, metav1.UpdateOptions{})
	return err
}

func (p *pass) prune(ctx context.Context) error {
	used := map[string]bool{p.hash: true}
	for _, on := range p.pods {
		for _, pod := range on {
			used[pod.Labels[appsv1.DefaultDaemonSetUniqueLabelKey]] = true
		}
	}
	limit := int32(10)
	if p.ds.Spec.RevisionHistoryLimit != nil {
		limit = *p.ds.Spec.RevisionHistoryLimit
	}
	return p.revisions.Prune(ctx, p.history, func(c *appsv1.ControllerRevision) bool {
		return used[c.Labels[appsv1.DefaultDaemonSetUniqueLabelKey]]
	}, limit)
}
