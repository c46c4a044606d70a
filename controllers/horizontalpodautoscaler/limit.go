package horizontalpodautoscaler

import (
	"math"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// Bounds are how many replicas there may be, and are.
type bounds struct {
	least, most, current int32
}

// A verdict is a number of replicas with why it is not another one.
type verdict struct {
	replicas        int32
	reason, message string
}

var withinRange = verdict{reason: "DesiredWithinRange", message: "the desired count is within the acceptable range"}

func (v verdict) of(replicas int32) verdict {
	v.replicas = replicas
	return v
}

// Why a wish is not granted.
var (
	tooMany  = verdict{reason: "TooManyReplicas", message: "the desired replica count is more than the maximum replica count"}
	tooFew   = verdict{reason: "TooFewReplicas", message: "the desired replica count is less than the minimum replica count"}
	tooFast  = verdict{reason: "ScaleUpLimit", message: "the desired replica count is increasing faster than the maximum scale rate"}
	tooSoon  = verdict{reason: "ScaleDownLimit", message: "the desired replica count is decreasing faster than the maximum scale rate"}
	heldUp   = verdict{reason: "ScaleUpStabilized", message: "recent recommendations were lower than current one, applying the lowest recent recommendation"}
	heldDown = verdict{reason: "ScaleDownStabilized", message: "recent recommendations were higher than current one, applying the highest recent recommendation"}
)

// stabilize returns the highest recommendation of the time in which one holds.
func (h *history) stabilize(wish int32, hold time.Duration, now time.Time) int32 {
	oldest := now.Add(-hold)
	highest := wish
	for _, r := range h.recommendations {
		if !r.at.Before(oldest) {
			highest = max(highest, r.replicas)
		}
	}
	h.recommend(wish, now, oldest)
	return highest
}

// limit applies the rules for autoscalers without behavior: at most twice as many, or four.
func limit(wish int32, b bounds) verdict {
	most, why := b.most, tooMany
	if fast := max(2*int64(b.current), 4); int64(b.most) > fast {
		most, why = int32(fast), tooFast
	}
	switch {
	case wish < b.least:
		return tooFew.of(b.least)
	case wish > most:
		return why.of(most)
	}
	return withinRange.of(wish)
}

// stabilizeBy keeps a wish between the lowest recommendation of the time that an
// increase must have been wished for and the highest of that of a decrease.
func (h *history) stabilizeBy(behavior *autoscalingv2.HorizontalPodAutoscalerBehavior, wish, current int32, hold time.Duration, now time.Time) verdict {
	window := func(rules *autoscalingv2.HPAScalingRules, otherwise time.Duration) time.Time {
		if rules.StabilizationWindowSeconds != nil {
			otherwise = seconds(*rules.StabilizationWindowSeconds)
		}
		return now.Add(-otherwise)
	}
	up, down := window(behavior.ScaleUp, 0), window(behavior.ScaleDown, hold)
	lowest, highest := wish, wish
	for _, r := range h.recommendations {
		if r.at.After(up) {
			lowest = min(lowest, r.replicas)
		}
		if r.at.After(down) {
			highest = max(highest, r.replicas)
		}
	}
	oldest := up
	if down.Before(up) {
		oldest = down
	}
	h.recommend(wish, now, oldest)
	why := heldDown
	if wish >= current {
		why = heldUp
	}
	return why.of(min(max(current, lowest), highest))
}

// limitBy applies the policies of a behavior.
func (h *history) limitBy(behavior *autoscalingv2.HorizontalPodAutoscalerBehavior, wish int32, b bounds, now time.Time) verdict {
	switch {
	case wish > b.current:
		most, why := b.most, tooMany
		if fast := max(h.highest(b.current, behavior.ScaleUp, now), b.current); most > fast {
			most, why = fast, tooFast
		}
		if wish > most {
			return why.of(most)
		}
	case wish < b.current:
		least, why := b.least, tooFew
		if fast := min(h.lowest(b.current, behavior.ScaleDown, now), b.current); least < fast {
			least, why = fast, tooSoon
		}
		if wish < least {
			return why.of(least)
		}
	}
	return withinRange.of(wish)
}

// highest returns to how many replicas the policies let a target grow.
func (h *history) highest(current int32, rules *autoscalingv2.HPAScalingRules, now time.Time) int32 {
	choose, out := higher, int32(math.MinInt32)
	switch selectPolicy(rules) {
	case autoscalingv2.DisabledPolicySelect:
		return current
	case autoscalingv2.MinChangePolicySelect:
		choose, out = lower, math.MaxInt32
	}
	for _, p := range rules.Policies {
		start := h.replicasBefore(current, p.PeriodSeconds, now)
		proposed := start + p.Value
		if p.Type == autoscalingv2.PercentScalingPolicy {
			// Rounded up: less than one more would be none, for ever.
			proposed = saturated(math.Ceil(float64(start) * (1 + float64(p.Value)/100)))
		}
		out = choose(out, proposed)
	}
	return out
}

// lowest returns to how many replicas the policies let a target shrink.
func (h *history) lowest(current int32, rules *autoscalingv2.HPAScalingRules, now time.Time) int32 {
	choose, out := lower, int32(math.MaxInt32)
	switch selectPolicy(rules) {
	case autoscalingv2.DisabledPolicySelect:
		return current
	case autoscalingv2.MinChangePolicySelect:
		choose, out = higher, math.MinInt32
	}
	for _, p := range rules.Policies {
		start := h.replicasBefore(current, p.PeriodSeconds, now)
		proposed := start - p.Value
		if p.Type == autoscalingv2.PercentScalingPolicy {
			proposed = int32(float64(start) * (1 - float64(p.Value)/100))
		}
		out = choose(out, proposed)
	}
	return out
}

// replicasBefore returns how many replicas there were at the start of a policy's period.
func (h *history) replicasBefore(current, periodSeconds int32, now time.Time) int32 {
	return current - within(h.ups, seconds(periodSeconds), now) + within(h.downs, seconds(periodSeconds), now)
}

func selectPolicy(rules *autoscalingv2.HPAScalingRules) autoscalingv2.ScalingPolicySelect {
	if rules.SelectPolicy == nil {
		return autoscalingv2.MaxChangePolicySelect
	}
	return *rules.SelectPolicy
}

func higher(a, b int32) int32 { return max(a, b) }
func lower(a, b int32) int32  { return min(a, b) }

// saturated turns a number of replicas into an int32.
func saturated(n float64) int32 {
	if n >= math.MaxInt32 {
		return math.MaxInt32
	}
	return int32(n)
}
