package statefulset

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/periplus/periplus/client/conditions"
	"github.com/periplus/periplus/controllers"
)

// pass is one reconciliation of one set.
type pass struct {
	*reconciler
	set       *appsv1.StatefulSet
	versions  *versions
	pods      []*corev1.Pod // all
	replicas  []*corev1.Pod // by number from start; nil where there is none
	condemned []*corev1.Pod // beyond, highest number first
	start     int
	ordered   bool
	now       time.Time
	wait      time.Duration // until a pod may become available by time alone
}

func newPass(r *reconciler, set *appsv1.StatefulSet, v *versions, pods []*corev1.Pod) *pass {
	p := &pass{reconciler: r, set: set, versions: v, pods: pods, now: r.Clock.Now(), ordered: set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement}
	count := 1
	if set.Spec.Replicas != nil {
		count = int(*set.Spec.Replicas)
	}
	if set.Spec.Ordinals != nil {
		p.start = int(set.Spec.Ordinals.Start)
	}
	p.replicas = make([]*corev1.Pod, count)
	for _, pod := range pods {
		n := ordinalOf(set, pod)
		switch {
		case n >= p.start && n < p.start+count:
			p.replicas[n-p.start] = pod
		case n >= 0:
			p.condemned = append(p.condemned, pod)
		}
	}
	slices.SortFunc(p.condemned, func(a, b *corev1.Pod) int { return ordinalOf(set, b) - ordinalOf(set, a) })
	for _, pod := range pods {
		p.available(pod)
	}
	return p
}

func ready(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning && conditions.PodReady(pod)
}

// available also notes when the next pod becomes so.
func (p *pass) available(pod *corev1.Pod) bool {
	if pod.Status.Phase != corev1.PodRunning {
		return false
	}
	ok, wait := controllers.PodAvailable(pod, p.set.Spec.MinReadySeconds, p.now)
	if !ok && wait > 0 && (p.wait == 0 || wait < p.wait) {
		p.wait = wait
	}
	return ok
}

func (p *pass) healthy(pod *corev1.Pod) bool {
	return pod != nil && pod.DeletionTimestamp == nil && ready(pod) && p.available(pod)
}

// run does what the set needs next.
func (p *pass) run(ctx context.Context) error {
	if p.set.DeletionTimestamp != nil {
		return nil
	}
	for i := range p.replicas {
		if stop, err := p.replica(ctx, i); stop || err != nil {
			return err
		}
	}
	unhealthy := p.firstUnhealthy()
	for _, pod := range p.condemned {
		if stop, err := p.scaleDown(ctx, pod, unhealthy); stop || err != nil {
			return err
		}
	}
	return p.update(ctx)
}

// firstUnhealthy is the pod of the lowest number that is not well.
func (p *pass) firstUnhealthy() *corev1.Pod {
	for _, pod := range p.replicas {
		if pod != nil && !p.healthy(pod) {
			return pod
		}
	}
	for _, pod := range slices.Backward(p.condemned) {
		if !p.healthy(pod) {
			return pod
		}
	}
	return nil
}

// replica makes sure of one pod. stop says that it must be waited for.
func (p *pass) replica(ctx context.Context, i int) (stop bool, err error) {
	pod, ordinal := p.replicas[i], p.start+i
	if pod == nil {
		if p.stale(ordinal) {
			return true, nil // the claim's end brings us back
		}
		return p.ordered, p.create(ctx, i)
	}
	if controllers.PodFinished(pod) {
		if pod.DeletionTimestamp == nil {
			return true, p.remove(ctx, pod)
		}
		return true, nil
	}
	if pod.Status.Phase == corev1.PodPending || pod.Status.Phase == "" {
		if err := p.createClaims(ctx, pod, ordinal); err != nil {
			return true, err
		}
	}
	if p.ordered && !p.healthy(pod) {
		return true, nil
	}
	if pod.DeletionTimestamp != nil {
		return false, nil
	}
	if !identified(pod, ordinal) {
		out := pod.DeepCopy()
		if out.Labels == nil {
			out.Labels = map[string]string{}
		}
		out.Labels[appsv1.StatefulSetPodNameLabel], out.Labels[appsv1.PodIndexLabel] = pod.Name, fmt.Sprint(ordinal)
		if _, err := p.Client.CoreV1().Pods(out.Namespace).Update(ctx, out, metav1.UpdateOptions{}); err != nil {
			return true, err
		}
	}
	return false, p.followPolicy(ctx, pod, ordinal, false)
}

// revisionFor is the revision that a new pod gets: below the partition, and while
// an update is under way among the pods that it has not reached, the current one.
func (p *pass) revisionFor(i int) *appsv1.ControllerRevision {
	s := p.set.Spec.UpdateStrategy
	if s.Type != appsv1.RollingUpdateStatefulSetStrategyType {
		return p.versions.update
	}
	switch {
	case s.RollingUpdate == nil && i < int(p.set.Status.CurrentReplicas), s.RollingUpdate != nil && s.RollingUpdate.Partition != nil && p.start+i < int(*s.RollingUpdate.Partition):
		return p.versions.current
	}
	return p.versions.update
}

func (p *pass) create(ctx context.Context, i int) error {
	begin := time.Now()
	pod, err := newPod(p.set, p.revisionFor(i), p.start+i)
	if err != nil {
		return err
	}
	if err := p.createClaims(ctx, pod, p.start+i); err != nil {
		return err
	}
	made, err := p.Client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		have, e := p.Client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if e == nil && metav1.IsControlledBy(have, p.set) {
			return controllers.ErrStale
		}
	}
	if err != nil {
		if !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			p.event(corev1.EventTypeWarning, "Create", pod, err)
		}
		return err
	}
	p.event(corev1.EventTypeNormal, "Create", pod, nil)
	p.Span("created pod "+pod.Name, kind.Kind, p.set, begin)
	p.replicas[i] = made
	p.pods = append(p.pods, made)
	return nil
}

func (p *pass) event(level, verb string, pod *corev1.Pod, err error) {
	if err == nil {
		p.Recorder.Eventf(p.set, level, "Successful"+verb, "%s Pod %s in StatefulSet %s successful", verb, pod.Name, p.set.Name)
		return
	}
	p.Recorder.Eventf(p.set, level, "Failed"+verb, "%s Pod %s in StatefulSet %s failed error: %s", verb, pod.Name, p.set.Name, err)
}

func (p *pass) remove(ctx context.Context, pod *corev1.Pod) error {
	uid := pod.UID
	err := p.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // gone already
	}
	if err != nil {
		p.event(corev1.EventTypeWarning, "Delete", pod, err)
		return err
	}
	p.event(corev1.EventTypeNormal, "Delete", pod, nil)
	return nil
}

// scaleDown removes one pod too many.
func (p *pass) scaleDown(ctx context.Context, pod, unhealthy *corev1.Pod) (stop bool, err error) {
	if pod.DeletionTimestamp != nil {
		return p.ordered, nil
	}
	if p.ordered && !p.healthy(pod) && pod != unhealthy {
		return true, nil
	}
	if err := p.followPolicy(ctx, pod, ordinalOf(p.set, pod), true); err != nil {
		return true, err
	}
	return p.ordered, p.remove(ctx, pod)
}

// update replaces pods of another revision, from the highest number down.
func (p *pass) update(ctx context.Context) error {
	s := p.set.Spec.UpdateStrategy
	if s.Type == appsv1.OnDeleteStatefulSetStrategyType {
		return nil
	}
	lowest, most := 0, 1
	if r := s.RollingUpdate; r != nil {
		if r.Partition != nil {
			lowest = max(0, int(*r.Partition)-p.start)
		}
		if r.MaxUnavailable != nil {
			n, err := intstr.GetScaledValueFromIntOrPercent(r.MaxUnavailable, len(p.replicas), false)
			if err != nil {
				return err
			}
			most = max(1, n)
		}
	}
	away := 0
	for _, pod := range p.replicas {
		if !p.healthy(pod) {
			away++
		}
	}
	for i := len(p.replicas) - 1; i >= lowest; i-- {
		pod := p.replicas[i]
		if pod == nil || pod.DeletionTimestamp != nil {
			if most == 1 {
				return nil
			}
			continue
		}
		if pod.Labels[appsv1.StatefulSetRevisionLabel] != p.versions.update.Name {
			well := p.healthy(pod)
			if well && away >= most {
				return nil
			}
			if err := p.remove(ctx, pod); err != nil {
				return err
			}
			if well {
				away++
			}
			if most == 1 {
				return nil
			}
			continue
		}
		if !p.healthy(pod) && most == 1 {
			return nil // wait for it
		}
	}
	return nil
}
