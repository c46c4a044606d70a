package printers

import (
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func policyTables() tables {
	return tables{
		"poddisruptionbudgets": table(columns{
			name(),
			text("Min Available", doc(policyv1.PodDisruptionBudgetSpec{}, "minAvailable")),
			text("Max Unavailable", doc(policyv1.PodDisruptionBudgetSpec{}, "maxUnavailable")),
			number("Allowed Disruptions", doc(policyv1.PodDisruptionBudgetStatus{}, "disruptionsAllowed")),
			age(),
		}, func(b *policyv1.PodDisruptionBudget) []any {
			bound := func(v *intstr.IntOrString) string {
				if v == nil {
					return "N/A"
				}
				return v.String()
			}
			return []any{b.Name, bound(b.Spec.MinAvailable), bound(b.Spec.MaxUnavailable), int64(b.Status.DisruptionsAllowed), old(b)}
		}),
	}
}

func schedulingTables() tables {
	return tables{
		"priorityclasses": table(columns{
			name(),
			number("Value", doc(schedulingv1.PriorityClass{}, "value")),
			yesNo("Global-Default", doc(schedulingv1.PriorityClass{}, "globalDefault")),
			age(),
			text("PreemptionPolicy", doc(schedulingv1.PriorityClass{}, "preemptionPolicy")),
		}, func(c *schedulingv1.PriorityClass) []any {
			return []any{c.Name, int64(c.Value), c.GlobalDefault, old(c), orNil(c.PreemptionPolicy, "")}
		}),
	}
}

func autoscalingTables() tables {
	return tables{
		"horizontalpodautoscalers": table(columns{
			name(),
			text("Reference", doc(autoscalingv2.HorizontalPodAutoscalerSpec{}, "scaleTargetRef")),
			text("Targets", doc(autoscalingv2.HorizontalPodAutoscalerSpec{}, "metrics")),
			text("MinPods", doc(autoscalingv2.HorizontalPodAutoscalerSpec{}, "minReplicas")),
			text("MaxPods", doc(autoscalingv2.HorizontalPodAutoscalerSpec{}, "maxReplicas")),
			text("Replicas", doc(autoscalingv2.HorizontalPodAutoscalerStatus{}, "currentReplicas")),
			age(),
		}, func(a *autoscalingv2.HorizontalPodAutoscaler) []any {
			least := unset
			if a.Spec.MinReplicas != nil {
				least = fmt.Sprint(*a.Spec.MinReplicas)
			}
			return []any{
				a.Name, a.Spec.ScaleTargetRef.Kind + "/" + a.Spec.ScaleTargetRef.Name, targets(a), least,
				int64(a.Spec.MaxReplicas), int64(a.Status.CurrentReplicas), old(a),
			}
		}),
	}
}

// targets shows the current and the wanted value of each metric.
func targets(a *autoscalingv2.HorizontalPodAutoscaler) string {
	var list []string
	for i := range a.Spec.Metrics {
		var current autoscalingv2.MetricStatus
		if i < len(a.Status.CurrentMetrics) {
			current = a.Status.CurrentMetrics[i]
		}
		list = append(list, target(&a.Spec.Metrics[i], &current))
	}
	return some(list, 2, ", ", none)
}

func target(m *autoscalingv2.MetricSpec, s *autoscalingv2.MetricStatus) string {
	switch {
	case m.Type == autoscalingv2.ExternalMetricSourceType && m.External != nil:
		var v *autoscalingv2.MetricValueStatus
		if s.External != nil {
			v = &s.External.Current
		}
		return valueTarget(&m.External.Target, v)
	case m.Type == autoscalingv2.ObjectMetricSourceType && m.Object != nil:
		var v *autoscalingv2.MetricValueStatus
		if s.Object != nil {
			v = &s.Object.Current
		}
		return valueTarget(&m.Object.Target, v)
	case m.Type == autoscalingv2.PodsMetricSourceType && m.Pods != nil:
		current := unknown
		if s.Pods != nil {
			current = quantity(s.Pods.Current.AverageValue)
		}
		return current + "/" + quantity(m.Pods.Target.AverageValue)
	case m.Type == autoscalingv2.ResourceMetricSourceType && m.Resource != nil:
		var v *autoscalingv2.MetricValueStatus
		if s.Resource != nil {
			v = &s.Resource.Current
		}
		return string(m.Resource.Name) + ": " + utilization(&m.Resource.Target, v)
	case m.Type == autoscalingv2.ContainerResourceMetricSourceType && m.ContainerResource != nil:
		var v *autoscalingv2.MetricValueStatus
		if s.ContainerResource != nil {
			v = &s.ContainerResource.Current
		}
		return string(m.ContainerResource.Name) + ": " + utilization(&m.ContainerResource.Target, v)
	}
	return "<unknown type>"
}

// valueTarget is for a metric of its own: an average a pod, or one value.
func valueTarget(t *autoscalingv2.MetricTarget, v *autoscalingv2.MetricValueStatus) string {
	current := unknown
	if t.AverageValue != nil {
		if v != nil && v.AverageValue != nil {
			current = quantity(v.AverageValue)
		}
		return current + "/" + quantity(t.AverageValue) + " (avg)"
	}
	if v != nil {
		current = quantity(v.Value)
	}
	return current + "/" + quantity(t.Value)
}

// utilization is for a resource of the pods: an amount, or a share of what they request.
func utilization(t *autoscalingv2.MetricTarget, v *autoscalingv2.MetricValueStatus) string {
	current := unknown
	if t.AverageValue != nil {
		if v != nil {
			current = quantity(v.AverageValue)
		}
		return current + "/" + quantity(t.AverageValue)
	}
	percent := func(p *int32, otherwise string) string {
		if p == nil {
			return otherwise
		}
		return fmt.Sprintf("%d%%", *p)
	}
	if v != nil {
		current = percent(v.AverageUtilization, unknown)
	}
	return current + "/" + percent(t.AverageUtilization, "<auto>")
}
