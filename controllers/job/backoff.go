package job

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

const (
	firstBackoff = 10 * time.Second
	lastBackoff  = 10 * time.Minute
)

// backoff is how a Job's pods have failed since one last succeeded. It is kept in
// memory only: after a restart of the controller, the first retry comes at once.
type backoff struct {
	failures int
	last     time.Time
}

// left returns how long no new pod may start.
func (b backoff) left(now time.Time) time.Duration {
	if b.failures == 0 {
		return 0
	}
	d := lastBackoff
	if n := b.failures - 1; n < 6 { // 10 s << 6 is more than the longest
		d = min(firstBackoff<<n, lastBackoff)
	}
	return max(0, b.last.Add(d).Sub(now))
}

// next returns the back-off with the pods that ended since.
func (p *pass) next() backoff {
	p.mu.Lock()
	b := p.backoffs[p.job.UID]
	p.mu.Unlock()
	type end struct {
		at     time.Time
		failed bool
	}
	var ends []end
	for _, pod := range p.succeeded {
		ends = append(ends, end{p.endOf(pod), false})
	}
	for _, pod := range p.failed {
		ends = append(ends, end{p.endOf(pod), true})
	}
	slices.SortStableFunc(ends, func(a, b end) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
	for _, e := range ends {
		if e.failed {
			b = backoff{failures: b.failures + 1, last: e.at}
		} else {
			b = backoff{}
		}
	}
	return b
}

func (p *pass) backoffLeft() time.Duration {
	if p.perIndex != nil {
		return 0 // each index has its own
	}
	return p.next().left(p.now)
}

// remember keeps the back-off once the ended pods are in the stored status, so
// that each counts once.
func (p *pass) remember() {
	b := p.next()
	p.succeeded, p.failed = nil, nil
	p.mu.Lock()
	defer p.mu.Unlock()
	if b.failures == 0 {
		delete(p.backoffs, p.job.UID)
	} else {
		p.backoffs[p.job.UID] = b
	}
}

// endOf returns when a pod's last container ended.
func (p *pass) endOf(pod *corev1.Pod) time.Time {
	var at time.Time
	for _, list := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for i := range list {
			if t := list[i].State.Terminated; t != nil && t.FinishedAt.After(at) {
				at = t.FinishedAt.Time
			}
		}
	}
	if at.IsZero() && pod.DeletionTimestamp != nil {
		at = pod.DeletionTimestamp.Time
		if pod.DeletionGracePeriodSeconds != nil {
			at = at.Add(-time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second)
		}
	}
	if at.IsZero() || at.After(p.now) {
		return p.now
	}
	return at
}

// indexRetry is how often the pods of one index have failed.
type indexRetry struct {
	pods     int // failed pods there are
	failures int // and with those that were deleted meanwhile
	last     time.Time
}

func (r indexRetry) left(now time.Time) time.Duration {
	return backoff{failures: r.failures, last: r.last}.left(now)
}

// noteIndexFailure counts a failed pod for its index. Failed pods stay until the
// Job goes, so they are the record; a pod's annotation carries the count on should
// earlier ones have been deleted.
func (p *pass) noteIndexFailure(pod *corev1.Pod) {
	i := indexOf(pod)
	if action, _ := p.rule(pod); i < 0 || action == batchv1.PodFailurePolicyActionIgnore {
		return
	}
	r := p.perIndex[i]
	before, _ := strconv.Atoi(pod.Annotations[failureCount]) // zero without one
	r.pods++
	r.failures = max(r.failures, r.pods, before+1)
	if at := p.endOf(pod); at.After(r.last) {
		r.last = at
	}
	p.perIndex[i] = r
}

// loseIndexes gives up the indexes that have failed beyond their limit.
func (p *pass) loseIndexes() {
	limit := int(*p.job.Spec.BackoffLimitPerIndex)
	for i, r := range p.perIndex {
		if r.failures > limit && i < p.completions() && !p.done.has(i) {
			p.lost.add(i)
		}
	}
}
