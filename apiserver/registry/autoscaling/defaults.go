package autoscaling

import autoscalingv2 "k8s.io/api/autoscaling/v2"

const (
	defaultUtilization = 80 // percent of the requested cpu
	scalingPeriod      = 15 // seconds
)

func defaultAutoscaler(hpa *autoscalingv2.HorizontalPodAutoscaler) {
	spec := &hpa.Spec
	if spec.MinReplicas == nil {
		one := int32(1)
		spec.MinReplicas = &one
	}
	if len(spec.Metrics) == 0 {
		spec.Metrics = []autoscalingv2.MetricSpec{cpuUtilization(defaultUtilization)}
	}
	if b := spec.Behavior; b != nil {
		at := int32(0)
		b.ScaleUp = completeRules(b.ScaleUp, autoscalingv2.HPAScalingRules{
			StabilizationWindowSeconds: &at,
			Policies: []autoscalingv2.HPAScalingPolicy{
				{Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: scalingPeriod},
				{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: scalingPeriod},
			},
		})
		b.ScaleDown = completeRules(b.ScaleDown, autoscalingv2.HPAScalingRules{
			Policies: []autoscalingv2.HPAScalingPolicy{{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: scalingPeriod}},
		})
	}
}

// completeRules fills what given leaves out.
func completeRules(given *autoscalingv2.HPAScalingRules, rules autoscalingv2.HPAScalingRules) *autoscalingv2.HPAScalingRules {
	most := autoscalingv2.MaxChangePolicySelect
	rules.SelectPolicy = &most
	if given == nil {
		return &rules
	}
	if given.SelectPolicy != nil {
		rules.SelectPolicy = given.SelectPolicy
	}
	if given.StabilizationWindowSeconds != nil {
		rules.StabilizationWindowSeconds = given.StabilizationWindowSeconds
	}
	if given.Policies != nil {
		rules.Policies = given.Policies
	}
	if given.Tolerance != nil {
		rules.Tolerance = given.Tolerance
	}
	return &rules
}
