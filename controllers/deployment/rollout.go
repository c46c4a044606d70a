package deployment

import (
	"context"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/controllers"
)

// rollout is one reconciliation of one Deployment.
type rollout struct {
	*reconciler
	key    controllers.Key
	d      *appsv1.Deployment // a copy; its conditions and revision change on the way
	cached *appsv1.Deployment
	sets   []*appsv1.ReplicaSet // all that belong to it

	newest *appsv1.ReplicaSet   // of the current template; nil if there is none
	old    []*appsv1.ReplicaSet // the others
}

// step chooses what kind of step the Deployment needs.
func (roll *rollout) step(ctx context.Context) (time.Duration, error) {
	d := roll.d
	if d.DeletionTimestamp != nil {
		if err := roll.identify(ctx, false); err != nil {
			return 0, err
		}
		return 0, roll.write(ctx, roll.status())
	}
	roll.markPaused()
	switch {
	case d.Spec.Paused, roll.resized():
		return roll.resize(ctx)
	case d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType:
		return roll.recreate(ctx)
	}
	return roll.rolling(ctx)
}

// resized says whether the declared number of replicas changed since the
// ReplicaSets were last scaled: then they all share the change, whatever the
// rollout's progress is.
func (roll *rollout) resized() bool {
	for _, rs := range roll.sets {
		if replicas(rs) == 0 {
			continue
		}
		if desired, ok := intAnnotation(rs, desiredAnnotation); ok && desired != declared(roll.d) {
			return true
		}
	}
	return false
}

// resize scales the ReplicaSets without moving the rollout on.
func (roll *rollout) resize(ctx context.Context) (time.Duration, error) {
	if err := roll.identify(ctx, false); err != nil {
		return 0, err
	}
	if err := roll.scaleAll(ctx); err != nil {
		return 0, err
	}
	if roll.d.Spec.Paused {
		if err := roll.prune(ctx); err != nil {
			return 0, err
		}
	}
	return 0, roll.write(ctx, roll.status())
}

// rolling replaces pods gradually: it scales the newest set up within maxSurge,
// else the older ones down within maxUnavailable.
func (roll *rollout) rolling(ctx context.Context) (time.Duration, error) {
	if err := roll.identify(ctx, true); err != nil {
		return 0, err
	}
	scaled, err := roll.growNewest(ctx)
	if err == nil && !scaled {
		scaled, err = roll.shrinkOld(ctx)
	}
	if err != nil {
		return 0, err
	}
	if !scaled && complete(roll.d, &roll.d.Status) {
		if err := roll.prune(ctx); err != nil {
			return 0, err
		}
	}
	return roll.report(ctx)
}

// recreate ends all old pods before the first new one is made.
func (roll *rollout) recreate(ctx context.Context) (time.Duration, error) {
	if err := roll.identify(ctx, false); err != nil {
		return 0, err
	}
	scaled := false
	for _, rs := range slices.Clone(roll.old) {
		if replicas(rs) == 0 {
			continue
		}
		if _, err := roll.scale(ctx, rs, 0); err != nil {
			return 0, err
		}
		scaled = true
	}
	if scaled || roll.oldPodsRun() {
		return roll.report(ctx)
	}
	if roll.newest == nil {
		if err := roll.identify(ctx, true); err != nil {
			return 0, err
		}
	}
	if _, err := roll.growNewest(ctx); err != nil {
		return 0, err
	}
	if complete(roll.d, &roll.d.Status) {
		if err := roll.prune(ctx); err != nil {
			return 0, err
		}
	}
	return roll.report(ctx)
}

// oldPodsRun says whether a pod of an older version has not ended yet; one that
// is being deleted still runs.
func (roll *rollout) oldPodsRun() bool {
	for _, rs := range roll.old {
		if slices.ContainsFunc(controllers.Children[*corev1.Pod](roll.pods, rs.UID), func(p *corev1.Pod) bool { return !controllers.PodFinished(p) }) {
			return true
		}
	}
	return false
}

// growNewest scales the newest set to what the strategy allows now.
func (roll *rollout) growNewest(ctx context.Context) (bool, error) {
	if roll.newest == nil {
		return false, nil
	}
	want := declared(roll.d)
	if replicas(roll.newest) < want {
		want = newestSize(roll.d, roll.all(), roll.newest)
	}
	return roll.scale(ctx, roll.newest, want)
}

// shrinkOld scales older sets down as far as enough pods stay available.
func (roll *rollout) shrinkOld(ctx context.Context) (bool, error) {
	total := total(roll.all())
	if sum := total - replicas(roll.newest); sum == 0 {
		return false, nil
	}
	minAvailable := declared(roll.d) - maxUnavailable(roll.d)
	newestMissing := int32(0)
	if roll.newest != nil {
		newestMissing = replicas(roll.newest) - roll.newest.Status.AvailableReplicas
	}
	budget := total - minAvailable - newestMissing
	if budget <= 0 {
		return false, nil
	}
	byAge(roll.old)

	// 1. Pods that are not available serve nobody: they go first, or a rollout
	// could hang on a broken old version.
	removed := int32(0)
	for _, rs := range slices.Clone(roll.old) {
		size := replicas(rs)
		if removed >= budget || size == 0 || size == rs.Status.AvailableReplicas {
			continue
		}
		cut := min(budget-removed, size-rs.Status.AvailableReplicas)
		if cut <= 0 {
			continue
		}
		if _, err := roll.scale(ctx, rs, size-cut); err != nil {
			return false, err
		}
		removed += cut
	}

	// 2. Then healthy ones, as many as are available beyond the minimum.
	spare := available(roll.all()) - minAvailable
	for _, rs := range slices.Clone(roll.old) {
		size := replicas(rs)
		if spare <= 0 || size == 0 {
			continue
		}
		cut := min(size, spare)
		if _, err := roll.scale(ctx, rs, size-cut); err != nil {
			return false, err
		}
		spare -= cut
		removed += cut
	}
	return removed > 0, nil
}

func (roll *rollout) all() []*appsv1.ReplicaSet {
	if roll.newest == nil {
		return roll.old
	}
	return append(slices.Clone(roll.old), roll.newest)
}

// markPaused keeps the Progressing condition of a Deployment that was paused or
// resumed, so that the time it stood still does not count as lack of progress.
func (roll *rollout) markPaused() {
	d := roll.d
	if !hasDeadline(d) {
		return
	}
	current := condition(&d.Status, appsv1.DeploymentProgressing)
	if current != nil && current.Reason == reasonTimedOut {
		return
	}
	paused := current != nil && current.Reason == reasonPaused
	switch {
	case d.Spec.Paused && !paused:
		roll.set(&d.Status, appsv1.DeploymentProgressing, corev1.ConditionUnknown, reasonPaused, "Deployment is paused")
	case !d.Spec.Paused && paused:
		roll.set(&d.Status, appsv1.DeploymentProgressing, corev1.ConditionUnknown, reasonResumed, "Deployment is resumed")
	}
}
