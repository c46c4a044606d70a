package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// burst is how many pods one reconciliation creates or deletes at most.
const burst = 500

// ReplicaOwner is what ReplicaSet and ReplicationController have in common: a
// number of pods to keep. It is read from the cache; nothing in it may be changed.
type ReplicaOwner struct {
	Object interface {
		metav1.Object
		runtime.Object
	}
	Replicas int32
	Selector labels.Selector
	Template *corev1.PodTemplateSpec
	MinReady int32
	Status   appsv1.ReplicaSetStatus

	NoTerminating bool // the kind's status has no count of terminating pods
}

// ReplicaKind gives ReplicaReconciler access to one kind of ReplicaOwner.
type ReplicaKind struct {
	GVK schema.GroupVersionKind
	// Get reads from the cache.
	Get func(Key) (*ReplicaOwner, error)
	// Live reads from the API server.
	Live func(ctx context.Context, key Key) (metav1.Object, error)
	// UpdateStatus writes the status of an owner that Get returned.
	UpdateStatus func(ctx context.Context, owner *ReplicaOwner, status appsv1.ReplicaSetStatus) error
	// InNamespace lists the owners in a namespace, for finding who adopts an orphan.
	InNamespace func(namespace string) []*ReplicaOwner
	// Related returns the UIDs of all owners of the same workload, this one among them.
	Related func(*ReplicaOwner) []types.UID
}

// ReplicaReconciler keeps the declared number of pods for each owner of one kind.
type ReplicaReconciler struct {
	*Setup
	kind   ReplicaKind
	pods   cache.Indexer
	expect *Expectations
}

var _ Reconciler = (*ReplicaReconciler)(nil)

// NewReplicaReconciler returns a reconciler for one kind; it watches the pods. The
// caller watches the owners.
func NewReplicaReconciler(s *Setup, kind ReplicaKind) (*ReplicaReconciler, error) {
	informer := s.Informers.Core().V1().Pods().Informer()
	if err := IndexByController(informer); err != nil {
		return nil, err
	}
	r := &ReplicaReconciler{Setup: s, kind: kind, pods: informer.GetIndexer(), expect: NewExpectations(s.Clock)}
	s.Watch(informer, On(r.podChanged))
	return r, nil
}

func (r *ReplicaReconciler) podChanged(old, now *corev1.Pod) {
	var before, after *metav1.OwnerReference
	if old != nil {
		before = metav1.GetControllerOfNoCopy(old)
	}
	if now != nil {
		after = metav1.GetControllerOfNoCopy(now)
	}
	if old != nil && before != nil && (after == nil || after.UID != before.UID) {
		if key, ok := OwnerKey(old, r.kind.GVK.Group, r.kind.GVK.Kind); ok {
			r.expect.Gone(key, old.UID)
			r.Queue.Add(key)
		}
	}
	switch {
	case now == nil:
	case after != nil:
		if key, ok := OwnerKey(now, r.kind.GVK.Group, r.kind.GVK.Kind); ok {
			r.Queue.Add(key)
		}
	case old == nil, before != nil, !labels.Equals(old.Labels, now.Labels):
		r.offer(now)
	}
}

// offer wakes the owners that could adopt an orphan.
func (r *ReplicaReconciler) offer(pod *corev1.Pod) {
	if pod.DeletionTimestamp != nil {
		return
	}
	for _, owner := range r.kind.InNamespace(pod.Namespace) {
		if !owner.Selector.Empty() && owner.Selector.Matches(labels.Set(pod.Labels)) {
			r.Queue.Add(KeyOf(owner.Object))
		}
	}
}

// Reconcile creates or deletes pods until there are as many as declared, and
// keeps the status. While the cache lags behind earlier creations it does
// nothing, so that one status write covers a whole batch.
func (r *ReplicaReconciler) Reconcile(ctx context.Context, key Key) (time.Duration, error) {
	owner, err := r.kind.Get(key)
	if apierrors.IsNotFound(err) {
		r.expect.Forget(key)
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	children := Children[*corev1.Pod](r.pods, owner.Object.GetUID())
	cached := make(map[types.UID]bool, len(children))
	for _, p := range children {
		cached[p.UID] = p.DeletionTimestamp != nil
	}
	if wait := r.expect.Pending(key, cached); wait > 0 {
		return wait, nil
	}
	pods, err := r.claim(ctx, owner, children)
	if err != nil {
		return 0, err
	}
	var active []*corev1.Pod
	terminating := int32(0)
	for _, p := range pods {
		switch {
		case PodActive(p):
			active = append(active, p)
		case p.DeletionTimestamp != nil && !PodFinished(p) && !owner.NoTerminating:
			terminating++
		}
	}
	created := 0
	var manageErr error
	if owner.Object.GetDeletionTimestamp() == nil {
		created, manageErr = r.manage(ctx, key, owner, active)
	}
	if created > 0 && manageErr == nil {
		return 0, nil // the pods' arrival in the cache brings us back
	}
	now := r.Clock.Now()
	status, wait := replicaStatus(owner, active, terminating, manageErr, now)
	if !statusEqual(&owner.Status, &status) {
		if err := r.kind.UpdateStatus(ctx, owner, status); err != nil && !apierrors.IsNotFound(err) {
			return 0, errors.Join(manageErr, err)
		}
	}
	return wait, manageErr
}

func (r *ReplicaReconciler) claim(ctx context.Context, owner *ReplicaOwner, children []*corev1.Pod) ([]*corev1.Pod, error) {
	claim := Claim[*corev1.Pod]{
		Owner: owner.Object, OwnerGVK: r.kind.GVK, Selector: owner.Selector,
		Live: func(ctx context.Context) (metav1.Object, error) { return r.kind.Live(ctx, KeyOf(owner.Object)) },
		Patch: func(ctx context.Context, p *corev1.Pod, patch []byte) error {
			_, err := r.Client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
			return err
		},
	}
	var orphans []*corev1.Pod
	for _, p := range Orphans[*corev1.Pod](r.pods, owner.Object.GetNamespace()) {
		if PodActive(p) {
			orphans = append(orphans, p)
		}
	}
	return claim.Sort(ctx, children, orphans)
}

// manage makes the number of active pods right and returns how many it created.
func (r *ReplicaReconciler) manage(ctx context.Context, key Key, owner *ReplicaOwner, active []*corev1.Pod) (int, error) {
	switch diff := int(owner.Replicas) - len(active); {
	case diff > 0:
		return r.create(ctx, key, owner, min(diff, burst))
	case diff < 0:
		return 0, r.remove(ctx, key, owner, active, min(-diff, burst))
	}
	return 0, nil
}

func (r *ReplicaReconciler) create(ctx context.Context, key Key, owner *ReplicaOwner, n int) (int, error) {
	start := time.Now()
	r.expect.Begin(key)
	defer r.expect.End(key)
	ref := metav1.NewControllerRef(owner.Object, r.kind.GVK)
	created, err := SlowStart(n, func(int) error {
		pod, err := r.Client.CoreV1().Pods(key.Namespace).Create(ctx, PodFromTemplate(owner.Template, owner.Object, ref), metav1.CreateOptions{})
		switch {
		case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
			return nil // nothing can be created there any more
		case err != nil:
			r.Recorder.Eventf(owner.Object, corev1.EventTypeWarning, "FailedCreate", "Error creating: %v", err)
			return &manageError{"FailedCreate", err}
		}
		r.expect.Created(key, pod.UID)
		r.Recorder.Eventf(owner.Object, corev1.EventTypeNormal, "SuccessfulCreate", "Created pod: %v", pod.Name)
		return nil
	})
	r.Span(fmt.Sprintf("created %d of %d pods", created, n), r.kind.GVK.Kind, owner.Object, start)
	return created, err
}

func (r *ReplicaReconciler) remove(ctx context.Context, key Key, owner *ReplicaOwner, active []*corev1.Pod, n int) error {
	start := time.Now()
	victims := active
	if n < len(active) {
		var related []*corev1.Pod
		for _, uid := range r.kind.Related(owner) {
			related = append(related, Children[*corev1.Pod](r.pods, uid)...)
		}
		RankForDeletion(active, related, r.Clock.Now())
		victims = active[:n]
	}
	err := Parallel(n, 32, func(i int) error {
		pod := victims[i]
		uid := pod.UID
		err := r.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		switch {
		case apierrors.IsNotFound(err), apierrors.IsConflict(err):
			return nil
		case err != nil:
			r.Recorder.Eventf(owner.Object, corev1.EventTypeWarning, "FailedDelete", "Error deleting: %v", err)
			return &manageError{"FailedDelete", err}
		}
		r.expect.Deleted(key, uid)
		r.Recorder.Eventf(owner.Object, corev1.EventTypeNormal, "SuccessfulDelete", "Deleted pod: %v", pod.Name)
		return nil
	})
	r.Span(fmt.Sprintf("deleted %d pods", n), r.kind.GVK.Kind, owner.Object, start)
	return err
}

// manageError is an error that shows in the ReplicaFailure condition.
type manageError struct {
	reason string
	err    error
}

func (e *manageError) Error() string { return e.err.Error() }
func (e *manageError) Unwrap() error { return e.err }
