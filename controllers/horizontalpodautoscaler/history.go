package horizontalpodautoscaler

import (
	"slices"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// A history is what an autoscaler has recommended and done, as far back as its
// rules look. One worker at a time has it.
type history struct {
	begun           bool
	recommendations []recommendation // before stabilization
	ups, downs      []change
}

type recommendation struct {
	replicas int32
	at       time.Time
}

// A change is by how many replicas a target has been scaled, up or down.
type change struct {
	by int32
	at time.Time
}

// begin takes the number of replicas that are found as the first recommendation.
func (h *history) begin(replicas int32, now time.Time) {
	if !h.begun {
		h.begun = true
		h.recommendations = []recommendation{{replicas, now}}
	}
}

// recommend notes a recommendation, and drops those from before a time.
func (h *history) recommend(replicas int32, now, oldest time.Time) {
	h.recommendations = slices.DeleteFunc(h.recommendations, func(r recommendation) bool { return r.at.Before(oldest) })
	h.recommendations = append(h.recommendations, recommendation{replicas, now})
}

// scaled notes a change for the rules of b; without rules nobody will ask.
func (h *history) scaled(b *autoscalingv2.HorizontalPodAutoscalerBehavior, from, to int32, now time.Time) {
	if b == nil {
		return
	}
	list, rules, by := &h.downs, b.ScaleDown, from-to
	if to > from {
		list, rules, by = &h.ups, b.ScaleUp, to-from
	}
	longest := time.Duration(0)
	for _, p := range rules.Policies {
		longest = max(longest, seconds(p.PeriodSeconds))
	}
	*list = slices.DeleteFunc(*list, func(c change) bool { return c.at.Before(now.Add(-longest)) })
	*list = append(*list, change{by, now})
}

// within adds up the changes of the last period.
func within(list []change, period time.Duration, now time.Time) (sum int32) {
	for _, c := range list {
		if c.at.After(now.Add(-period)) {
			sum += c.by
		}
	}
	return sum
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }
