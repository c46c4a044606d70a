package deployment

import (
	"cmp"
	"context"
	"math"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// replicas returns the declared size of a set; zero for none.
func replicas(rs *appsv1.ReplicaSet) int32 {
	switch {
	case rs == nil:
		return 0
	case rs.Spec.Replicas == nil:
		return 1
	}
	return *rs.Spec.Replicas
}

func declared(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1
	}
	return *d.Spec.Replicas
}

func total(sets []*appsv1.ReplicaSet) int32 {
	n := int32(0)
	for _, rs := range sets {
		n += replicas(rs)
	}
	return n
}

func available(sets []*appsv1.ReplicaSet) int32 {
	n := int32(0)
	for _, rs := range sets {
		n += rs.Status.AvailableReplicas
	}
	return n
}

// bounds resolves maxSurge (rounded up) and maxUnavailable (rounded down) of a
// rolling update. They may not both be zero, or nothing could move.
func bounds(d *appsv1.Deployment) (surge, unavailable int32) {
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType || d.Spec.Strategy.RollingUpdate == nil {
		return 0, 0
	}
	n := int(declared(d))
	resolve := func(v *intstr.IntOrString, up bool) int32 {
		out, err := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(v, intstr.FromInt32(0)), n, up)
		if err != nil {
			return 0
		}
		return int32(out)
	}
	surge = resolve(d.Spec.Strategy.RollingUpdate.MaxSurge, true)
	unavailable = resolve(d.Spec.Strategy.RollingUpdate.MaxUnavailable, false)
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return surge, unavailable
}

func maxSurge(d *appsv1.Deployment) int32 {
	surge, _ := bounds(d)
	return surge
}

func maxUnavailable(d *appsv1.Deployment) int32 {
	_, unavailable := bounds(d)
	return min(unavailable, declared(d))
}

// newestSize returns the size that the newest set may have now.
func newestSize(d *appsv1.Deployment, all []*appsv1.ReplicaSet, newest *appsv1.ReplicaSet) int32 {
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return declared(d)
	}
	room := declared(d) + maxSurge(d) - total(all)
	if room <= 0 {
		return replicas(newest)
	}
	return replicas(newest) + min(room, declared(d)-replicas(newest))
}

// scaleAll brings the sets to a changed declared number. With one set that has
// pods (or none) that one takes it all. When the rollout is over, the old ones go
// to zero. Else all sets with pods share the change in proportion to their sizes,
// so that the risk of a rollout in progress stays what it was.
func (roll *rollout) scaleAll(ctx context.Context) error {
	d := roll.d
	want := declared(d)
	var active []*appsv1.ReplicaSet
	for _, rs := range roll.all() {
		if replicas(rs) > 0 {
			active = append(active, rs)
		}
	}
	if len(active) <= 1 {
		target := roll.newest
		switch {
		case len(active) == 1:
			target = active[0]
		case target == nil && len(roll.old) > 0:
			byAge(roll.old)
			target = roll.old[len(roll.old)-1]
		}
		if target == nil {
			return nil
		}
		_, err := roll.scale(ctx, target, want)
		return err
	}
	if roll.saturated() {
		for _, rs := range slices.Clone(roll.old) {
			if replicas(rs) == 0 {
				continue
			}
			if _, err := roll.scale(ctx, rs, 0); err != nil {
				return err
			}
		}
		return nil
	}
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return nil
	}
	for i, size := range shares(d, active) {
		if _, err := roll.scale(ctx, active[i], size); err != nil {
			return err
		}
	}
	return nil
}

// saturated says whether the newest set has all the pods, and all are available.
func (roll *rollout) saturated() bool {
	if roll.newest == nil {
		return false
	}
	desired, ok := intAnnotation(roll.newest, desiredAnnotation)
	want := declared(roll.d)
	return ok && replicas(roll.newest) == want && desired == want && roll.newest.Status.AvailableReplicas == want
}

// shares sorts active, the biggest first, and returns the new size of each. The
// first takes what rounding leaves over.
func shares(d *appsv1.Deployment, active []*appsv1.ReplicaSet) []int32 {
	allowed := int32(0)
	if declared(d) > 0 {
		allowed = declared(d) + maxSurge(d)
	}
	toAdd := allowed - total(active)
	// Among equals the newer grows first, the older shrinks first.
	slices.SortStableFunc(active, func(a, b *appsv1.ReplicaSet) int {
		age := compareAge(a, b)
		if toAdd > 0 {
			age = -age
		}
		return cmp.Or(cmp.Compare(replicas(b), replicas(a)), age)
	})
	sizes := make([]int32, len(active))
	added := int32(0)
	for i, rs := range active {
		sizes[i] = replicas(rs)
		if toAdd == 0 || toAdd == added {
			continue
		}
		share := fraction(d, rs)
		if left := toAdd - added; toAdd > 0 {
			share = min(share, left)
		} else {
			share = max(share, left)
		}
		sizes[i] += share
		added += share
	}
	if toAdd != 0 {
		sizes[0] = max(0, sizes[0]+toAdd-added)
	}
	return sizes
}

// fraction returns by how much rs has to change to keep its part of the whole.
func fraction(d *appsv1.Deployment, rs *appsv1.ReplicaSet) int32 {
	if declared(d) == 0 {
		return -replicas(rs)
	}
	before, ok := intAnnotation(rs, maxAnnotation)
	if !ok || before == 0 {
		if before = d.Status.Replicas; before == 0 {
			return 0
		}
	}
	size := float64(replicas(rs)) * float64(declared(d)+maxSurge(d)) / float64(before)
	return int32(math.Round(size)) - replicas(rs)
}

// byAge sorts the oldest first.
func byAge(sets []*appsv1.ReplicaSet) { slices.SortStableFunc(sets, compareAge) }

func compareAge(a, b *appsv1.ReplicaSet) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}
