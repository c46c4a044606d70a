package autoscaling

import (
	"encoding/json"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

// What autoscaling/v1 has no field for travels as JSON in these annotations.
const (
	metricsAnnotation        = "autoscaling.alpha.kubernetes.io/metrics"
	currentMetricsAnnotation = "autoscaling.alpha.kubernetes.io/current-metrics"
	conditionsAnnotation     = "autoscaling.alpha.kubernetes.io/conditions"
	behaviorAnnotation       = "autoscaling.alpha.kubernetes.io/behavior"
	// The first form of tolerances.
	toleranceDownAnnotation = "autoscaling.alpha.kubernetes.io/scale-down-tolerance"
	toleranceUpAnnotation   = "autoscaling.alpha.kubernetes.io/scale-up-tolerance"
)

// servedV1 serves the stored autoscaling/v2 objects as autoscaling/v1.
func servedV1() registry.Served {
	return registry.Served{
		GV:      autoscalingv1.SchemeGroupVersion,
		New:     kind.Make[autoscalingv1.HorizontalPodAutoscaler],
		NewList: kind.Make[autoscalingv1.HorizontalPodAutoscalerList],
		From: func(stored runtime.Object) (runtime.Object, error) {
			return toV1(stored.(*autoscalingv2.HorizontalPodAutoscaler))
		},
		To: func(served runtime.Object) (runtime.Object, error) {
			return fromV1(served.(*autoscalingv1.HorizontalPodAutoscaler))
		},
	}
}

func toV1(in *autoscalingv2.HorizontalPodAutoscaler) (*autoscalingv1.HorizontalPodAutoscaler, error) {
	in = in.DeepCopy()
	out := &autoscalingv1.HorizontalPodAutoscaler{
		ObjectMeta: in.ObjectMeta,
		Spec: autoscalingv1.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv1.CrossVersionObjectReference(in.Spec.ScaleTargetRef),
			MinReplicas:    in.Spec.MinReplicas,
			MaxReplicas:    in.Spec.MaxReplicas,
		},
		Status: autoscalingv1.HorizontalPodAutoscalerStatus{
			ObservedGeneration: in.Status.ObservedGeneration,
			LastScaleTime:      in.Status.LastScaleTime,
			CurrentReplicas:    in.Status.CurrentReplicas,
			DesiredReplicas:    in.Status.DesiredReplicas,
		},
	}
	out.SetGroupVersionKind(autoscalingv1.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"))
	dropAnnotations(out.Annotations)

	// The first CPU utilization target has a field of its own.
	var others []autoscalingv1.MetricSpec
	for _, m := range in.Spec.Metrics {
		if out.Spec.TargetCPUUtilizationPercentage == nil && m.Resource != nil && m.Type == autoscalingv2.ResourceMetricSourceType &&
			m.Resource.Name == corev1.ResourceCPU && m.Resource.Target.AverageUtilization != nil {
			out.Spec.TargetCPUUtilizationPercentage = m.Resource.Target.AverageUtilization
			continue
		}
		others = append(others, metricToV1(m))
	}
	var statuses []autoscalingv1.MetricStatus
	for _, m := range in.Status.CurrentMetrics {
		if m.Resource != nil && m.Resource.Name == corev1.ResourceCPU && m.Resource.Current.AverageUtilization != nil {
			out.Status.CurrentCPUUtilizationPercentage = m.Resource.Current.AverageUtilization
		}
		statuses = append(statuses, statusToV1(m))
	}
	var conditions []autoscalingv1.HorizontalPodAutoscalerCondition
	for _, c := range in.Status.Conditions {
		conditions = append(conditions, autoscalingv1.HorizontalPodAutoscalerCondition{
			Type: autoscalingv1.HorizontalPodAutoscalerConditionType(c.Type), Status: c.Status,
			LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message,
			ObservedGeneration: c.ObservedGeneration,
		})
	}
	for _, a := range []struct {
		key     string
		value   any
		present bool
	}{
		{metricsAnnotation, others, len(others) > 0},
		{currentMetricsAnnotation, statuses, len(statuses) > 0},
		{conditionsAnnotation, conditions, len(conditions) > 0},
		{behaviorAnnotation, in.Spec.Behavior, in.Spec.Behavior != nil},
	} {
		if !a.present {
			continue
		}
		data, err := json.Marshal(a.value)
		if err != nil {
			return nil, fmt.Errorf("annotation %s: %w", a.key, err)
		}
		if out.Annotations == nil {
			out.Annotations = map[string]string{}
		}
		out.Annotations[a.key] = string(data)
	}
	return out, nil
}

func fromV1(in *autoscalingv1.HorizontalPodAutoscaler) (*autoscalingv2.HorizontalPodAutoscaler, error) {
	in = in.DeepCopy()
	out := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: in.ObjectMeta,
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference(in.Spec.ScaleTargetRef),
			MinReplicas:    in.Spec.MinReplicas,
			MaxReplicas:    in.Spec.MaxReplicas,
		},
		Status: autoscalingv2.HorizontalPodAutoscalerStatus{
			ObservedGeneration: in.Status.ObservedGeneration,
			LastScaleTime:      in.Status.LastScaleTime,
			CurrentReplicas:    in.Status.CurrentReplicas,
			DesiredReplicas:    in.Status.DesiredReplicas,
		},
	}
	out.SetGroupVersionKind(autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"))

	// Annotations that do not parse are ignored: any client may write them.
	var metrics []autoscalingv1.MetricSpec
	if json.Unmarshal([]byte(in.Annotations[metricsAnnotation]), &metrics) == nil {
		for _, m := range metrics {
			out.Spec.Metrics = append(out.Spec.Metrics, metricFromV1(m))
		}
	}
	var behavior *autoscalingv2.HorizontalPodAutoscalerBehavior
	if json.Unmarshal([]byte(in.Annotations[behaviorAnnotation]), &behavior) == nil {
		out.Spec.Behavior = behavior
	}
	if percent := in.Spec.TargetCPUUtilizationPercentage; percent != nil {
		out.Spec.Metrics = append(out.Spec.Metrics, cpuUtilization(*percent))
	}
	var statuses []autoscalingv1.MetricStatus
	if json.Unmarshal([]byte(in.Annotations[currentMetricsAnnotation]), &statuses) == nil && len(statuses) > 0 {
		for _, m := range statuses {
			out.Status.CurrentMetrics = append(out.Status.CurrentMetrics, statusFromV1(m))
		}
	} else if percent := in.Status.CurrentCPUUtilizationPercentage; percent != nil {
		out.Status.CurrentMetrics = []autoscalingv2.MetricStatus{{
			Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricStatus{
				Name:    corev1.ResourceCPU,
				Current: autoscalingv2.MetricValueStatus{AverageUtilization: percent},
			},
		}}
	}
	var conditions []autoscalingv1.HorizontalPodAutoscalerCondition
	if json.Unmarshal([]byte(in.Annotations[conditionsAnnotation]), &conditions) == nil {
		for _, c := range conditions {
			out.Status.Conditions = append(out.Status.Conditions, autoscalingv2.HorizontalPodAutoscalerCondition{
				Type: autoscalingv2.HorizontalPodAutoscalerConditionType(c.Type), Status: c.Status,
				LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message,
				ObservedGeneration: c.ObservedGeneration,
			})
		}
	}
	dropAnnotations(out.Annotations)
	return out, nil
}

func dropAnnotations(annotations map[string]string) {
	for _, key := range []string{metricsAnnotation, currentMetricsAnnotation, conditionsAnnotation, behaviorAnnotation, toleranceDownAnnotation, toleranceUpAnnotation} {
		delete(annotations, key)
	}
}

func cpuUtilization(percent int32) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{
		Type: autoscalingv2.ResourceMetricSourceType,
		Resource: &autoscalingv2.ResourceMetricSource{
			Name:   corev1.ResourceCPU,
			Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &percent},
		},
	}
}
