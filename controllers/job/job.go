package job

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	batchlisters "k8s.io/client-go/listers/batch/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/periplus/periplus/controllers"
)

var kind = batchv1.SchemeGroupVersion.WithKind("Job")

// podPrefix marks the keys of pods whose Job is gone: their finalizer goes too. No
// Job's name holds a slash.
const podPrefix = "pod/"

// Controller declares the Job controller.
func Controller() controllers.Controller {
	jobs := batchv1.SchemeGroupVersion.WithResource("jobs")
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	both := []schema.GroupVersionResource{jobs, pods}
	return controllers.Controller{Name: "job-controller", Reads: both, Writes: both, New: build}
}

type reconciler struct {
	*controllers.Setup
	jobs   batchlisters.JobLister
	pods   corelisters.PodLister
	index  cache.Indexer
	expect *controllers.Expectations

	mu        sync.Mutex
	untracked map[types.UID]map[types.UID]bool // by Job: pods that lost their finalizer, until the cache shows it; guarded by mu
	backoffs  map[types.UID]backoff            // by Job; guarded by mu
	old       map[types.UID]map[string]bool    // by Job: resource versions that own writes have replaced; guarded by mu
}

func build(s *controllers.Setup) (controllers.Reconciler, error) {
	jobs := s.Informers.Batch().V1().Jobs()
	pods := s.Informers.Core().V1().Pods()
	if err := controllers.IndexByController(pods.Informer()); err != nil {
		return nil, err
	}
	r := &reconciler{
		Setup: s, jobs: jobs.Lister(), pods: pods.Lister(), index: pods.Informer().GetIndexer(),
		expect:    controllers.NewExpectations(s.Clock),
		untracked: map[types.UID]map[types.UID]bool{}, backoffs: map[types.UID]backoff{},
		old: map[types.UID]map[string]bool{},
	}
	s.Watch(jobs.Informer(), controllers.On(r.jobChanged))
	s.Watch(pods.Informer(), controllers.On(r.podChanged))
	return r, nil
}

func (r *reconciler) jobChanged(old, now *batchv1.Job) {
	if now != nil {
		r.Queue.Add(controllers.KeyOf(now))
	}
	if old != nil && (now == nil || now.UID != old.UID) {
		r.forget(old)
		for _, p := range controllers.Children[*corev1.Pod](r.index, old.UID) {
			r.enqueueLeft(p)
		}
	}
}

func (r *reconciler) forget(job *batchv1.Job) {
	r.expect.Forget(controllers.KeyOf(job))
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.untracked, job.UID)
	delete(r.backoffs, job.UID)
	delete(r.old, job.UID)
}

// enqueueLeft has the finalizer of a pod whose Job may be gone looked at.
func (r *reconciler) enqueueLeft(p *corev1.Pod) {
	if tracked(p) {
		r.Queue.Add(controllers.Key{Namespace: p.Namespace, Name: podPrefix + p.Name})
	}
}

func (r *reconciler) podChanged(old, now *corev1.Pod) {
	var before, after *metav1.OwnerReference
	if old != nil {
		before = metav1.GetControllerOfNoCopy(old)
	}
	if now != nil {
		after = metav1.GetControllerOfNoCopy(now)
	}
	if before != nil && (after == nil || after.UID != before.UID) {
		if key, ok := controllers.OwnerKey(old, kind.Group, kind.Kind); ok {
			r.expect.Gone(key, old.UID)
			r.Queue.Add(key)
		}
	}
	switch {
	case now == nil:
	case after != nil:
		key, ok := controllers.OwnerKey(now, kind.Group, kind.Kind)
		if !ok {
			return
		}
		r.Queue.Add(key)
		if job, err := r.jobs.Jobs(key.Namespace).Get(key.Name); err != nil || job.UID != after.UID {
			r.enqueueLeft(now)
		}
	case old == nil, before != nil, !labels.Equals(old.Labels, now.Labels):
		r.offer(now)
		r.enqueueLeft(now)
	}
}

// offer wakes the Jobs that could adopt an orphan.
func (r *reconciler) offer(p *corev1.Pod) {
	if p.DeletionTimestamp != nil {
		return
	}
	jobs, err := r.jobs.Jobs(p.Namespace).List(labels.Everything())
	if err != nil {
		return
	}
	for _, job := range jobs {
		if selectorOf(job).Matches(labels.Set(p.Labels)) {
			r.Queue.Add(controllers.KeyOf(job))
		}
	}
}

func selectorOf(job *batchv1.Job) labels.Selector {
	selector, err := metav1.LabelSelectorAsSelector(job.Spec.Selector)
	if err != nil || selector.Empty() {
		return labels.Nothing()
	}
	return selector
}

func tracked(p *corev1.Pod) bool {
	return slices.Contains(p.Finalizers, batchv1.JobTrackingFinalizer)
}

// Reconcile counts the Job's pods, starts or ends pods, and keeps the status.
func (r *reconciler) Reconcile(ctx context.Context, key controllers.Key) (time.Duration, error) {
	if name, ok := strings.CutPrefix(key.Name, podPrefix); ok {
		return 0, r.releaseLeft(ctx, key.Namespace, name)
	}
	cached, err := r.jobs.Jobs(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if by := cached.Spec.ManagedBy; by != nil && *by != batchv1.JobControllerName {
		return 0, nil
	}
	if r.stale(cached) {
		return 0, controllers.ErrStale
	}
	children := controllers.Children[*corev1.Pod](r.index, cached.UID)
	if finished(cached) {
		for _, p := range children {
			r.enqueueLeft(p)
		}
		return 0, nil
	}
	known := make(map[types.UID]bool, len(children))
	for _, p := range children {
		known[p.UID] = p.DeletionTimestamp != nil
	}
	if wait := r.expect.Pending(key, known); wait > 0 {
		return wait, nil
	}
	pods, err := r.claim(ctx, cached, children)
	if err != nil {
		return 0, err
	}
	pass := r.newPass(key, cached, pods)
	return pass.run(ctx)
}

// stale says whether the cached Job is a version that this controller has already
// replaced. Its counters would miss pods that have lost their finalizer since, and
// those would be run once more.
func (r *reconciler) stale(job *batchv1.Job) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.old[job.UID][job.ResourceVersion] {
		return true
	}
	delete(r.old, job.UID)
	return false
}

func (r *reconciler) replaced(job *batchv1.Job) {
	if job.ResourceVersion == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.old[job.UID] == nil {
		r.old[job.UID] = map[string]bool{}
	}
	r.old[job.UID][job.ResourceVersion] = true
}

func (r *reconciler) claim(ctx context.Context, job *batchv1.Job, children []*corev1.Pod) ([]*corev1.Pod, error) {
	claim := controllers.Claim[*corev1.Pod]{
		Owner: job, OwnerGVK: kind, Selector: selectorOf(job), Finalizers: []string{batchv1.JobTrackingFinalizer},
		Live: func(ctx context.Context) (metav1.Object, error) {
			return r.Client.BatchV1().Jobs(job.Namespace).Get(ctx, job.Name, metav1.GetOptions{})
		},
		Patch: func(ctx context.Context, p *corev1.Pod, patch []byte) error {
			_, err := r.Client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
			return err
		},
	}
	var orphans []*corev1.Pod
	for _, p := range controllers.Orphans[*corev1.Pod](r.index, job.Namespace) {
		if controllers.PodActive(p) {
			orphans = append(orphans, p)
		}
	}
	return claim.Sort(ctx, children, orphans)
}

// releaseLeft takes the finalizer off a pod that no Job will count any more.
func (r *reconciler) releaseLeft(ctx context.Context, namespace, name string) error {
	p, err := r.pods.Pods(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil || !tracked(p) {
		return err
	}
	if key, ok := controllers.OwnerKey(p, kind.Group, kind.Kind); ok {
		job, err := r.Client.BatchV1().Jobs(namespace).Get(ctx, key.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return err
		case job.UID == metav1.GetControllerOfNoCopy(p).UID && !finished(job):
			return nil // it is there after all, and will count the pod
		}
	}
	return r.dropFinalizer(ctx, p)
}

var dropFinalizerPatch = []byte(`{"metadata":{"$deleteFromPrimitiveList/finalizers":["` + batchv1.JobTrackingFinalizer + `"]}}`)

func (r *reconciler) dropFinalizer(ctx context.Context, p *corev1.Pod) error {
	_, err := r.Client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, dropFinalizerPatch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
