package job

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/client/conditions"
	"github.com/periplus/periplus/controllers"
)

const (
	maxCreate    = 500 // pods created in one pass
	indexEnv     = "JOB_COMPLETION_INDEX"
	failureCount = "batch.kubernetes.io/job-index-failure-count"
	maxNameBase  = 63 - 5 // a generated name has five characters more
)

// manage ends the pods that should not run and starts those that should. It
// returns how many it started, and how long to wait before more may be.
func (p *pass) manage(ctx context.Context, v *verdict) (created int, wait time.Duration, err error) {
	switch {
	case v != nil:
		// Over: the rest is deleted. It counts as failed when it has ended, unless
		// there were simply more pods than completions.
		err = p.end(ctx, p.active, v.reason == batchv1.JobReasonCompletionsReached)
		v.delayed = err != nil
		return 0, 0, err
	case p.suspended():
		return 0, 0, p.end(ctx, p.active, true)
	}
	want := p.wantActive()
	have := len(p.active)
	if extra := have - want; extra > 0 {
		p.rankForRemoval()
		return 0, 0, p.end(ctx, p.active[:extra:extra], true)
	}
	missing := want - have
	if p.onlyFailed() {
		missing -= int(p.terminating)
	}
	if missing <= 0 {
		return 0, 0, nil
	}
	if wait := p.backoffLeft(); wait > 0 {
		return 0, wait, nil
	}
	return p.start(ctx, min(missing, maxCreate))
}

func (p *pass) completions() int {
	if p.job.Spec.Completions == nil {
		return 0
	}
	return int(*p.job.Spec.Completions)
}

// wantActive returns how many pods should run now.
func (p *pass) wantActive() int {
	parallelism := 1
	if p.job.Spec.Parallelism != nil {
		parallelism = int(*p.job.Spec.Parallelism)
	}
	succeeded, _ := p.totals()
	if p.job.Spec.Completions == nil {
		// A work queue: when one pod has succeeded the others finish, and no new
		// one starts.
		if succeeded > 0 {
			return min(len(p.active), parallelism)
		}
		return parallelism
	}
	return max(0, min(p.completions()-int(succeeded)-p.lost.len(), parallelism))
}

// rankForRemoval puts the pods first that are best to end: of indexes that are not
// wanted or have two, then those that have done the least.
func (p *pass) rankForRemoval() {
	controllers.RankForDeletion(p.active, p.active, p.now)
	if !p.indexed() {
		return
	}
	seen := map[int]bool{}
	useless := map[*corev1.Pod]bool{}
	for _, pod := range slices.Backward(p.active) { // the best of an index stays
		i := indexOf(pod)
		useless[pod] = i < 0 || i >= p.completions() || seen[i] || p.done.has(i)
		seen[i] = true
	}
	slices.SortStableFunc(p.active, func(a, b *corev1.Pod) int {
		return cmp.Compare(btoi(!useless[a]), btoi(!useless[b]))
	})
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// end deletes pods. discard takes the finalizer off before, so that they do not
// count as failed.
func (p *pass) end(ctx context.Context, pods []*corev1.Pod, discard bool) error {
	ended := make([]bool, len(pods))
	err := controllers.Parallel(len(pods), 32, func(i int) error {
		pod := pods[i]
		if discard && tracked(pod) {
			p.setUntracked(pod.UID, true)
			if err := p.dropFinalizer(ctx, pod); err != nil {
				p.setUntracked(pod.UID, false)
				return err
			}
		}
		uid := pod.UID
		err := p.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		switch {
		case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		case err != nil:
			p.Recorder.Eventf(p.cached, corev1.EventTypeWarning, "FailedDelete", "Error deleting: %v", err)
			return err
		default:
			p.Recorder.Eventf(p.cached, corev1.EventTypeNormal, "SuccessfulDelete", "Deleted pod: %v", pod.Name)
		}
		p.expect.Deleted(p.key, uid)
		ended[i] = true
		return nil
	})
	gone := map[*corev1.Pod]bool{}
	for i, pod := range pods {
		if ended[i] {
			gone[pod] = true
			p.terminating++
			if conditions.PodReady(pod) {
				p.ready--
			}
		}
	}
	p.active = slices.DeleteFunc(p.active, func(pod *corev1.Pod) bool { return gone[pod] })
	return err
}

// start creates n pods, of an Indexed Job those of the lowest indexes that are
// neither done nor running.
func (p *pass) start(ctx context.Context, n int) (int, time.Duration, error) {
	begin := time.Now()
	var indexes []int
	var wait time.Duration
	if p.indexed() {
		indexes, wait = p.nextIndexes(n)
		n = len(indexes)
	}
	if n == 0 {
		return 0, wait, nil
	}
	p.expect.Begin(p.key)
	defer p.expect.End(p.key)
	ref := metav1.NewControllerRef(p.cached, kind)
	created, err := controllers.SlowStart(n, func(i int) error {
		pod := controllers.PodFromTemplate(&p.cached.Spec.Template, p.cached, ref)
		pod.Finalizers = append(pod.Finalizers, batchv1.JobTrackingFinalizer)
		if p.indexed() {
			p.putIndex(pod, indexes[i])
		}
		out, err := p.Client.CoreV1().Pods(p.key.Namespace).Create(ctx, pod, metav1.CreateOptions{})
		switch {
		case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
			return nil
		case err != nil:
			p.Recorder.Eventf(p.cached, corev1.EventTypeWarning, "FailedCreate", "Error creating: %v", err)
			return err
		}
		p.expect.Created(p.key, out.UID)
		p.Recorder.Eventf(p.cached, corev1.EventTypeNormal, "SuccessfulCreate", "Created pod: %v", out.Name)
		return nil
	})
	p.Span(fmt.Sprintf("created %d of %d pods", created, n), kind.Kind, p.cached, begin)
	return created, wait, err
}

// nextIndexes returns up to n indexes to start. wait is how long until one of
// those that failed before may be tried again.
func (p *pass) nextIndexes(n int) (out []int, wait time.Duration) {
	running := map[int]bool{}
	for _, pod := range p.pods {
		if controllers.PodActive(pod) || p.onlyFailed() && !controllers.PodFinished(pod) {
			running[indexOf(pod)] = true
		}
	}
	for i := 0; i < p.completions() && len(out) < n; i++ {
		if p.done.has(i) || p.lost.has(i) || running[i] {
			continue
		}
		if left := p.perIndex[i].left(p.now); left > 0 {
			if wait == 0 || left < wait {
				wait = left
			}
			continue
		}
		out = append(out, i)
	}
	return out, wait
}

// putIndex gives a pod its completion index: in its name, host name, label,
// annotation, and in its containers' environment.
func (p *pass) putIndex(pod *corev1.Pod, index int) {
	text := strconv.Itoa(index)
	base := p.cached.Name + "-" + text + "-"
	if len(base) > maxNameBase {
		base = p.cached.Name[:maxNameBase-len(text)-2] + "-" + text + "-"
	}
	pod.GenerateName = base
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Annotations[batchv1.JobCompletionIndexAnnotation] = text
	pod.Labels[batchv1.JobCompletionIndexAnnotation] = text
	if p.perIndex != nil {
		pod.Annotations[failureCount] = strconv.Itoa(p.perIndex[index].failures)
	}
	pod.Spec.Hostname = p.cached.Name + "-" + text
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if slices.ContainsFunc(list[i].Env, func(e corev1.EnvVar) bool { return e.Name == indexEnv }) {
				continue
			}
			list[i].Env = append(list[i].Env, corev1.EnvVar{Name: indexEnv, ValueFrom: &corev1.EnvVarSource{
				FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['" + batchv1.JobCompletionIndexAnnotation + "']"},
			}})
		}
	}
}

// indexOf returns a pod's completion index, -1 if it has none.
func indexOf(pod *corev1.Pod) int {
	n, err := strconv.Atoi(pod.Annotations[batchv1.JobCompletionIndexAnnotation])
	if err != nil || n < 0 {
		return -1
	}
	return n
}
