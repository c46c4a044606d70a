package disruption

import (
	"context"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	policylisters "k8s.io/client-go/listers/policy/v1"

	"github.com/periplus/periplus/client/conditions"
	"github.com/periplus/periplus/controllers"
)

// evictionTime is how long an evicted pod may take to be deleted before it counts
// as healthy again.
const evictionTime = 2 * time.Minute

// Controller declares the disruption controller.
func Controller() controllers.Controller {
	core, apps := corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion
	budgets := policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets")
	return controllers.Controller{
		Name: "disruption-controller",
		Reads: []schema.GroupVersionResource{
			budgets, core.WithResource("pods"), core.WithResource("replicationcontrollers"),
			apps.WithResource("deployments"), apps.WithResource("replicasets"), apps.WithResource("statefulsets"),
		},
		Writes: []schema.GroupVersionResource{budgets},
		New:    build,
	}
}

type reconciler struct {
	*controllers.Setup
	budgets     policylisters.PodDisruptionBudgetLister
	pods        corelisters.PodLister
	rcs         corelisters.ReplicationControllerLister
	deployments appslisters.DeploymentLister
	sets        appslisters.ReplicaSetLister
	stateful    appslisters.StatefulSetLister
}

func build(s *controllers.Setup) (controllers.Reconciler, error) {
	core, apps, policy := s.Informers.Core().V1(), s.Informers.Apps().V1(), s.Informers.Policy().V1()
	r := &reconciler{
		Setup: s, budgets: policy.PodDisruptionBudgets().Lister(), pods: core.Pods().Lister(), rcs: core.ReplicationControllers().Lister(),
		deployments: apps.Deployments().Lister(), sets: apps.ReplicaSets().Lister(), stateful: apps.StatefulSets().Lister(),
	}
	s.Watch(policy.PodDisruptionBudgets().Informer(), controllers.Self(s.Queue))
	s.Watch(core.Pods().Informer(), controllers.On(r.podChanged))
	// The size of an owner is the base of percentages.
	s.Watch(apps.Deployments().Informer(), controllers.On(func(old, now *appsv1.Deployment) {
		if old != nil && now != nil && *old.Spec.Replicas != *now.Spec.Replicas {
			r.wake(now.Namespace, now.Spec.Template.Labels)
		}
	}))
	s.Watch(apps.ReplicaSets().Informer(), controllers.On(func(old, now *appsv1.ReplicaSet) {
		if old != nil && now != nil && *old.Spec.Replicas != *now.Spec.Replicas {
			r.wake(now.Namespace, now.Spec.Template.Labels)
		}
	}))
	s.Watch(apps.StatefulSets().Informer(), controllers.On(func(old, now *appsv1.StatefulSet) {
		if old != nil && now != nil && *old.Spec.Replicas != *now.Spec.Replicas {
			r.wake(now.Namespace, now.Spec.Template.Labels)
		}
	}))
	s.Watch(core.ReplicationControllers().Informer(), controllers.On(func(old, now *corev1.ReplicationController) {
		if old != nil && now != nil && *old.Spec.Replicas != *now.Spec.Replicas && now.Spec.Template != nil {
			r.wake(now.Namespace, now.Spec.Template.Labels)
		}
	}))
	return r, nil
}

// podChanged wakes the budgets of a pod whose part in them changed.
func (r *reconciler) podChanged(old, now *corev1.Pod) {
	switch {
	case old == nil:
		r.wake(now.Namespace, now.Labels)
	case now == nil:
		r.wake(old.Namespace, old.Labels)
	case !maps.Equal(old.Labels, now.Labels):
		r.wake(old.Namespace, old.Labels)
		r.wake(now.Namespace, now.Labels)
	case conditions.PodReady(old) != conditions.PodReady(now),
		(old.DeletionTimestamp == nil) != (now.DeletionTimestamp == nil),
		!equality.Semantic.DeepEqual(old.OwnerReferences, now.OwnerReferences):
		r.wake(now.Namespace, now.Labels)
	}
}

func (r *reconciler) wake(namespace string, of map[string]string) {
	list, err := r.budgets.PodDisruptionBudgets(namespace).List(labels.Everything())
	if err != nil {
		return
	}
	for _, b := range list {
		if s, err := metav1.LabelSelectorAsSelector(b.Spec.Selector); err == nil && s.Matches(labels.Set(of)) {
			r.Queue.Add(controllers.KeyOf(b))
		}
	}
}

// Reconcile writes one budget's status.
func (r *reconciler) Reconcile(ctx context.Context, key controllers.Key) (time.Duration, error) {
	b, err := r.budgets.PodDisruptionBudgets(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		return 0, r.failed(ctx, b, err)
	}
	pods, err := r.pods.Pods(b.Namespace).List(selector)
	if err != nil {
		return 0, err
	}
	if len(pods) == 0 {
		r.Recorder.Event(b, corev1.EventTypeNormal, "NoPods", "No matching pods found")
	}
	n, unmanaged, err := r.need(b, pods)
	if err != nil {
		r.Recorder.Eventf(b, corev1.EventTypeWarning, "CalculateExpectedPodCountFailed", "Failed to calculate the number of expected pods: %v", err)
		return 0, r.failed(ctx, b, err)
	}
	if unmanaged > 0 {
		r.Recorder.Eventf(b, corev1.EventTypeWarning, "UnmanagedPods", "Pods selected by this PodDisruptionBudget (selector: %v) were found "+
			"to be unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result in undefined behavior. "+
			"To account for these pods please set \".spec.minAvailable\" field of the PDB to an integer value.", selector)
	}
	evicted, again := r.evicted(b, pods)
	healthy := int32(0)
	for _, p := range pods {
		if _, ok := evicted[p.Name]; !ok && p.DeletionTimestamp == nil && conditions.PodReady(p) {
			healthy++
		}
	}
	return again, r.write(ctx, b, policyv1.PodDisruptionBudgetStatus{
		CurrentHealthy: healthy, DesiredHealthy: n.healthy, ExpectedPods: n.expected, DisruptedPods: evicted,
	})
}

// evicted returns those of the pods in the status that are still to be deleted, and
// when the first of them will count as healthy again.
func (r *reconciler) evicted(b *policyv1.PodDisruptionBudget, pods []*corev1.Pod) (map[string]metav1.Time, time.Duration) {
	var out map[string]metav1.Time
	again := time.Duration(0)
	now := r.Clock.Now()
	for _, p := range pods {
		since, ok := b.Status.DisruptedPods[p.Name]
		if !ok || p.DeletionTimestamp != nil {
			continue
		}
		left := since.Add(evictionTime).Sub(now)
		if left <= 0 {
			r.Recorder.Eventf(p, corev1.EventTypeWarning, "NotDeleted", "Pod was expected by PDB %s/%s to be deleted but it wasn't", b.Namespace, b.Name)
			continue
		}
		if out == nil {
			out = map[string]metav1.Time{}
		}
		out[p.Name] = since
		if again == 0 || left < again {
			again = left
		}
	}
	return out, again
}

// write stores the status if it differs. Its number of allowed disruptions only
// makes sense for the pods that it was computed from, so a conflict is an error.
func (r *reconciler) write(ctx context.Context, b *policyv1.PodDisruptionBudget, s policyv1.PodDisruptionBudgetStatus) error {
	s.ObservedGeneration = b.Generation
	if s.ExpectedPods > 0 {
		s.DisruptionsAllowed = max(0, s.CurrentHealthy-s.DesiredHealthy)
	}
	s.Conditions = slices.Clone(b.Status.Conditions)
	c := metav1.Condition{
		Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.InsufficientPodsReason,
		ObservedGeneration: b.Generation, LastTransitionTime: metav1.NewTime(r.Clock.Now()),
	}
	if s.DisruptionsAllowed > 0 {
		c.Status, c.Reason = metav1.ConditionTrue, policyv1.SufficientPodsReason
	}
	meta.SetStatusCondition(&s.Conditions, c)
	return r.store(ctx, b, s)
}

// failed allows no disruption and says why.
func (r *reconciler) failed(ctx context.Context, b *policyv1.PodDisruptionBudget, cause error) error {
	s := *b.Status.DeepCopy()
	s.ObservedGeneration = b.Generation
	s.DisruptionsAllowed = 0
	meta.SetStatusCondition(&s.Conditions, metav1.Condition{
		Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason, Message: cause.Error(),
		ObservedGeneration: b.Generation, LastTransitionTime: metav1.NewTime(r.Clock.Now()),
	})
	return r.store(ctx, b, s)
}

func (r *reconciler) store(ctx context.Context, b *policyv1.PodDisruptionBudget, s policyv1.PodDisruptionBudgetStatus) error {
	if equality.Semantic.DeepEqual(&b.Status, &s) {
		return nil
	}
	out := b.DeepCopy()
	out.Status = s
	_, err := r.Client.PolicyV1().PodDisruptionBudgets(b.Namespace).UpdateStatus(ctx, out, metav1.UpdateOptions{})
	return err
}
