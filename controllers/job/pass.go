package job

import (
	"context"
	"errors"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/periplus/periplus/client/conditions"
	"github.com/periplus/periplus/controllers"
)

// maxUncounted bounds the list of UIDs in a status.
const maxUncounted = 500

// pass is one reconciliation of one Job.
type pass struct {
	*reconciler
	key    controllers.Key
	cached *batchv1.Job
	job    *batchv1.Job // a copy; its status changes on the way
	pods   []*corev1.Pod
	now    time.Time

	active      []*corev1.Pod // neither ended nor being deleted
	ready       int32
	terminating int32

	// Of the pods that still carry the finalizer:
	succeeded []*corev1.Pod // ended well and not in the status yet
	failed    []*corev1.Pod // ended badly and not in the status yet
	untrack   []*corev1.Pod // may lose the finalizer once the status holds them

	done        indexSet           // completed indexes of an Indexed Job
	lost        indexSet           // failed indexes, with a limit for each
	perIndex    map[int]indexRetry // failures of each index, with a limit for each
	policyFails string             // message of a pod failure policy rule that fails the Job
	notice      [2]string          // reason and message of an event, due once the status is stored
}

func (r *reconciler) newPass(key controllers.Key, cached *batchv1.Job, pods []*corev1.Pod) *pass {
	p := &pass{reconciler: r, key: key, cached: cached, job: cached.DeepCopy(), pods: pods, now: r.Clock.Now()}
	if p.job.Status.UncountedTerminatedPods == nil {
		p.job.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
	}
	return p
}

func (p *pass) indexed() bool {
	return p.job.Spec.CompletionMode != nil && *p.job.Spec.CompletionMode == batchv1.IndexedCompletion
}

func (p *pass) suspended() bool { return p.job.Spec.Suspend != nil && *p.job.Spec.Suspend }

// onlyFailed says whether a pod is replaced only once it has ended, not already
// while it is being deleted.
func (p *pass) onlyFailed() bool {
	policy := p.job.Spec.PodReplacementPolicy
	return p.job.Spec.PodFailurePolicy != nil || policy != nil && *policy == batchv1.Failed
}

// run is the order of things: count, decide, act on pods, write.
func (p *pass) run(ctx context.Context) (time.Duration, error) {
	p.settle()
	p.sort()
	verdict := p.verdict()
	if p.job.DeletionTimestamp != nil {
		// The garbage collector deletes the pods; they only must be let go.
		return 0, p.write(ctx, nil)
	}
	if p.job.Status.StartTime == nil && !p.suspended() {
		now := metav1.NewTime(p.now)
		p.job.Status.StartTime = &now
	}
	turned := p.markSuspended(verdict)
	created, wait, err := p.manage(ctx, verdict)
	if err == nil && created > 0 && len(p.untrack) == 0 && !turned {
		return 0, nil // the pods' arrival in the cache brings us back
	}
	err = errors.Join(err, p.write(ctx, verdict))
	if deadline := p.untilDeadline(); deadline > 0 && (wait == 0 || deadline < wait) {
		wait = deadline
	}
	return wait, err
}

// settle finishes counting pods that are in the status's list and have no
// finalizer any more.
func (p *pass) settle() {
	p.mu.Lock()
	gone := p.untracked[p.job.UID]
	holding := map[types.UID]bool{}
	for _, pod := range p.pods {
		if tracked(pod) {
			holding[pod.UID] = true
		}
	}
	for uid := range gone {
		if !holding[uid] {
			delete(gone, uid) // the cache has caught up
		} else {
			delete(holding, uid)
		}
	}
	if len(gone) == 0 {
		delete(p.untracked, p.job.UID)
	}
	p.mu.Unlock()
	p.count(func(uid types.UID) bool { return !holding[uid] })
}

// count moves the listed pods for which counted holds into the counters.
func (p *pass) count(counted func(types.UID) bool) {
	s := &p.job.Status
	move := func(list []types.UID, counter *int32) []types.UID {
		return slices.DeleteFunc(list, func(uid types.UID) bool {
			if !counted(uid) {
				return false
			}
			*counter++
			return true
		})
	}
	// Successes of an Indexed Job are never listed: their number follows from the set.
	s.UncountedTerminatedPods.Succeeded = move(s.UncountedTerminatedPods.Succeeded, &s.Succeeded)
	s.UncountedTerminatedPods.Failed = move(s.UncountedTerminatedPods.Failed, &s.Failed)
}

// sort puts each pod where it belongs.
func (p *pass) sort() {
	s := &p.job.Status
	if p.indexed() {
		p.done = parseIndexes(s.CompletedIndexes, p.completions())
		if p.job.Spec.BackoffLimitPerIndex != nil {
			if s.FailedIndexes != nil {
				p.lost = parseIndexes(*s.FailedIndexes, p.completions())
			}
			p.perIndex = map[int]indexRetry{}
		}
	}
	listed := map[types.UID]bool{}
	for _, uid := range s.UncountedTerminatedPods.Succeeded {
		listed[uid] = true
	}
	for _, uid := range s.UncountedTerminatedPods.Failed {
		listed[uid] = true
	}
	p.mu.Lock()
	gone := p.untracked[p.job.UID]
	p.mu.Unlock()
	for _, pod := range p.pods {
		switch {
		case controllers.PodActive(pod):
			p.active = append(p.active, pod)
			if conditions.PodReady(pod) {
				p.ready++
			}
		case !controllers.PodFinished(pod):
			p.terminating++
		}
		failed := p.podFailed(pod)
		if failed && p.perIndex != nil {
			p.noteIndexFailure(pod)
		}
		if !tracked(pod) || gone[pod.UID] {
			continue
		}
		ended := pod.Status.Phase == corev1.PodSucceeded
		if p.job.DeletionTimestamp != nil || ended || failed {
			p.untrack = append(p.untrack, pod)
		}
		switch {
		case listed[pod.UID]:
		case ended:
			p.succeeded = append(p.succeeded, pod)
		case failed:
			if p.ignored(pod) {
				continue
			}
			p.failed = append(p.failed, pod)
		}
	}
	p.list()
}

// podFailed says whether a pod counts as failed: it did, or it is being deleted
// and will be replaced at once.
func (p *pass) podFailed(pod *corev1.Pod) bool {
	if pod.Status.Phase == corev1.PodFailed {
		return true
	}
	return !p.onlyFailed() && pod.DeletionTimestamp != nil && pod.Status.Phase != corev1.PodSucceeded
}

// list enters the newly ended pods into the status: the first step of counting.
func (p *pass) list() {
	s := &p.job.Status
	room := maxUncounted - len(s.UncountedTerminatedPods.Succeeded) - len(s.UncountedTerminatedPods.Failed)
	deferred := map[types.UID]bool{}
	take := func(pod *corev1.Pod) bool {
		if room <= 0 {
			deferred[pod.UID] = true // the next pass counts it
			return false
		}
		room--
		return true
	}
	for _, pod := range p.succeeded {
		if p.indexed() {
			if i := indexOf(pod); i >= 0 && i < p.completions() {
				p.done.add(i)
			}
		} else if take(pod) {
			s.UncountedTerminatedPods.Succeeded = append(s.UncountedTerminatedPods.Succeeded, pod.UID)
		}
	}
	for _, pod := range p.failed {
		if take(pod) {
			s.UncountedTerminatedPods.Failed = append(s.UncountedTerminatedPods.Failed, pod.UID)
		}
	}
	if p.indexed() {
		s.Succeeded = int32(p.done.len())
		s.CompletedIndexes = p.done.String()
		if p.perIndex != nil {
			p.loseIndexes()
			text := p.lost.String()
			s.FailedIndexes = &text
		}
	}
	p.untrack = slices.DeleteFunc(p.untrack, func(pod *corev1.Pod) bool { return deferred[pod.UID] })
}

// totals counts pods with those that the counters do not hold yet.
func (p *pass) totals() (succeeded, failed int32) {
	s := &p.job.Status
	return s.Succeeded + int32(len(s.UncountedTerminatedPods.Succeeded)), s.Failed + int32(len(s.UncountedTerminatedPods.Failed))
}

// write stores the status, lets counted pods go, and stores the counters. With
// nothing to count it writes once, and only what changed.
func (p *pass) write(ctx context.Context, v *verdict) error {
	s := &p.job.Status
	s.Active = int32(len(p.active))
	s.Ready, s.Terminating = &p.ready, &p.terminating
	v.announce(p)
	if len(p.untrack) > 0 {
		// 1. The list first, unless it is stored already.
		if err := p.store(ctx); err != nil {
			return err
		}
		p.remember()
		// 2. Then the finalizers.
		if err := p.letGo(ctx); err != nil {
			return err
		}
		// 3. Now they count.
		p.count(p.isUntracked)
	} else {
		p.remember()
	}
	finishedNow := v.conclude(p)
	if err := p.store(ctx); err != nil {
		return err
	}
	if finishedNow {
		v.report(p)
	}
	return nil
}

// store writes the status if it differs from what the server has.
func (p *pass) store(ctx context.Context) error {
	if equality.Semantic.DeepEqual(normal(&p.cached.Status), normal(&p.job.Status)) {
		return nil
	}
	updated, err := p.Client.BatchV1().Jobs(p.job.Namespace).UpdateStatus(ctx, p.job, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	p.replaced(p.cached)
	p.cached = updated
	if p.notice[0] != "" {
		p.Recorder.Event(updated, corev1.EventTypeNormal, p.notice[0], p.notice[1])
		p.notice = [2]string{}
	}
	p.job = updated.DeepCopy()
	if p.job.Status.UncountedTerminatedPods == nil {
		p.job.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
	}
	return nil
}

// normal returns a status in which things that mean the same are the same.
func normal(s *batchv1.JobStatus) *batchv1.JobStatus {
	out := *s
	if u := out.UncountedTerminatedPods; u != nil && len(u.Succeeded) == 0 && len(u.Failed) == 0 {
		out.UncountedTerminatedPods = nil
	}
	zero := int32(0)
	if out.Ready == nil {
		out.Ready = &zero
	}
	if out.Terminating == nil {
		out.Terminating = &zero
	}
	return &out
}

// letGo takes the finalizer off the pods in untrack.
func (p *pass) letGo(ctx context.Context) error {
	return controllers.Parallel(len(p.untrack), 32, func(i int) error {
		pod := p.untrack[i]
		p.setUntracked(pod.UID, true)
		if err := p.dropFinalizer(ctx, pod); err != nil {
			p.setUntracked(pod.UID, false)
			return err
		}
		return nil
	})
}

func (p *pass) setUntracked(uid types.UID, gone bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	set := p.untracked[p.job.UID]
	if set == nil {
		set = map[types.UID]bool{}
		p.untracked[p.job.UID] = set
	}
	if gone {
		set[uid] = true
	} else {
		delete(set, uid)
	}
}

func (p *pass) isUntracked(uid types.UID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.untracked[p.job.UID][uid]
}
