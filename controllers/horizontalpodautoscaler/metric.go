package horizontalpodautoscaler

import (
	"errors"
	"fmt"
	"math"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A proposal is how many replicas a metric wants, and its name for people.
type proposal struct {
	replicas int32
	name     string
}

// A metricError says why a metric proposes nothing: cause goes into an event and
// the condition, text is for the sum of all.
type metricError struct {
	reason string
	cause  error
	prefix string
}

func (e *metricError) Error() string { return e.prefix + e.cause.Error() }
func (e *metricError) Unwrap() error { return e.cause }

// metric asks one metric, and reports its value in status.
func (s *sight) metric(m *autoscalingv2.MetricSpec, scale *autoscalingv1.Scale, status *autoscalingv2.MetricStatus) (proposal, *metricError) {
	var p proposal
	var err error
	var reason, prefix string
	st := autoscalingv2.MetricStatus{Type: m.Type}
	switch m.Type {
	case autoscalingv2.ResourceMetricSourceType:
		src := m.Resource
		reason, prefix = "FailedGetResourceMetric", fmt.Sprintf("failed to get %s resource metric value: ", src.Name)
		st.Resource = &autoscalingv2.ResourceMetricStatus{Name: src.Name}
		p, err = s.resourceMetric(&src.Target, src.Name, "", scale.Spec.Replicas, &st.Resource.Current)
	case autoscalingv2.ContainerResourceMetricSourceType:
		src := m.ContainerResource
		reason, prefix = "FailedGetContainerResourceMetric", fmt.Sprintf("failed to get %s container metric value: ", src.Container)
		st.ContainerResource = &autoscalingv2.ContainerResourceMetricStatus{Name: src.Name, Container: src.Container}
		p, err = s.resourceMetric(&src.Target, src.Name, src.Container, scale.Spec.Replicas, &st.ContainerResource.Current)
	case autoscalingv2.PodsMetricSourceType:
		reason, prefix = "FailedGetPodsMetric", "failed to get pods metric value: "
		st.Pods = &autoscalingv2.PodsMetricStatus{Metric: m.Pods.Metric}
		p, err = s.podsMetric(m.Pods, scale.Spec.Replicas, &st.Pods.Current)
	case autoscalingv2.ObjectMetricSourceType:
		reason, prefix = "FailedGetObjectMetric", "failed to get object metric value: "
		st.Object = &autoscalingv2.ObjectMetricStatus{Metric: m.Object.Metric, DescribedObject: m.Object.DescribedObject}
		p, err = s.objectMetric(m.Object, scale, &st.Object.Current)
	case autoscalingv2.ExternalMetricSourceType:
		reason, prefix = "FailedGetExternalMetric", fmt.Sprintf("failed to get %s external metric value: ", m.External.Metric.Name)
		st.External = &autoscalingv2.ExternalMetricStatus{Metric: m.External.Metric}
		p, err = s.externalMetric(m.External, scale, &st.External.Current)
	default:
		reason, err = "InvalidMetricSourceType", fmt.Errorf("unknown metric source type %q", m.Type)
	}
	if err != nil {
		return proposal{}, &metricError{reason, err, prefix}
	}
	*status = st
	return p, nil
}

// resourceMetric compares what pods, or one of their containers, use with what they
// have requested or with a fixed amount.
func (s *sight) resourceMetric(t *autoscalingv2.MetricTarget, name corev1.ResourceName, container string, current int32, st *autoscalingv2.MetricValueStatus) (proposal, error) {
	// As metrics-server writes them.
	format := resource.DecimalSI
	if name == corev1.ResourceMemory {
		format = resource.BinarySI
	}
	switch {
	case t.AverageValue != nil:
		m, err := s.api.resource(s.ctx, s.key.Namespace, name, s.selector, container)
		if err != nil {
			return proposal{}, fmt.Errorf("failed to get %s usage: unable to get metrics for resource %s: %w", name, name, err)
		}
		n, average, err := s.byAverage(current, t.AverageValue.MilliValue(), m, name == corev1.ResourceCPU)
		if err != nil {
			return proposal{}, fmt.Errorf("failed to get %s usage: %w", name, err)
		}
		st.AverageValue = resource.NewMilliQuantity(average, format)
		return proposal{n, fmt.Sprintf("%s resource", name)}, nil
	case t.AverageUtilization != nil:
		n, found, err := s.byUtilization(current, *t.AverageUtilization, name, container)
		if err != nil {
			return proposal{}, fmt.Errorf("failed to get %s utilization: %w", name, err)
		}
		st.AverageUtilization, st.AverageValue = &found.percent, resource.NewMilliQuantity(found.average, format)
		kind := "resource"
		if container != "" {
			kind = "container resource"
		}
		return proposal{n, fmt.Sprintf("%s %s utilization (percentage of request)", name, kind)}, nil
	}
	return proposal{}, errors.New("invalid resource metric source: neither an average utilization target nor an average value (usage) target was set")
}

// podsMetric compares the average of a metric that each pod has.
func (s *sight) podsMetric(src *autoscalingv2.PodsMetricSource, current int32, st *autoscalingv2.MetricValueStatus) (proposal, error) {
	of, err := metav1.LabelSelectorAsSelector(src.Metric.Selector)
	if err != nil {
		return proposal{}, err
	}
	m, err := s.api.ofPods(s.ctx, s.key.Namespace, src.Metric.Name, s.selector, of)
	if err != nil {
		return proposal{}, fmt.Errorf("unable to get metric %s: %w", src.Metric.Name, err)
	}
	n, average, err := s.byAverage(current, src.Target.AverageValue.MilliValue(), m, false)
	if err != nil {
		return proposal{}, err
	}
	st.AverageValue = resource.NewMilliQuantity(average, resource.DecimalSI)
	return proposal{n, "pods metric " + src.Metric.Name}, nil
}

// objectMetric compares a metric of another object.
func (s *sight) objectMetric(src *autoscalingv2.ObjectMetricSource, scale *autoscalingv1.Scale, st *autoscalingv2.MetricValueStatus) (proposal, error) {
	of, err := metav1.LabelSelectorAsSelector(src.Metric.Selector)
	if err != nil {
		return proposal{}, err
	}
	name, ref, t := src.Metric.Name, &src.DescribedObject, &src.Target
	byValue := t.Type == autoscalingv2.ValueMetricType && t.Value != nil
	if !byValue && (t.Type != autoscalingv2.AverageValueMetricType || t.AverageValue == nil) {
		return proposal{}, errors.New("invalid object metric source: neither a value target nor an average value target was set")
	}
	value, err := s.api.ofObject(s.ctx, s.key.Namespace, ref, name, of)
	if err != nil {
		err = fmt.Errorf("unable to get metric %s on %s %s/%s: %w", name, ref.Kind, s.key.Namespace, ref.Name, err)
		if !byValue {
			err = fmt.Errorf("failed to get %s object metric: %w", name, err)
		}
		return proposal{}, err
	}
	if byValue {
		n, err := s.byValue(scale.Spec.Replicas, value, t.Value.MilliValue())
		st.Value = resource.NewMilliQuantity(value, resource.DecimalSI)
		return proposal{n, fmt.Sprintf("%s metric %s", ref.Kind, name)}, err
	}
	n, share := s.byShare(scale.Status.Replicas, value, t.AverageValue.MilliValue())
	st.AverageValue = resource.NewMilliQuantity(share, resource.DecimalSI)
	return proposal{n, fmt.Sprintf("external metric %s(%+v)", name, src.Metric.Selector)}, nil
}

// externalMetric compares the sum of a metric from outside of the cluster.
func (s *sight) externalMetric(src *autoscalingv2.ExternalMetricSource, scale *autoscalingv1.Scale, st *autoscalingv2.MetricValueStatus) (proposal, error) {
	name, t := src.Metric.Name, &src.Target
	label := fmt.Sprintf("external metric %s(%+v)", name, src.Metric.Selector)
	if t.AverageValue == nil && t.Value == nil {
		return proposal{}, errors.New("invalid external metric source: neither a value target nor an average value target was set")
	}
	value, err := s.external(src)
	switch {
	case err != nil && t.AverageValue != nil:
		return proposal{}, fmt.Errorf("failed to get %s external metric: %w", name, err)
	case err != nil:
		return proposal{}, fmt.Errorf("failed to get external metric %s: %w", name, err)
	case t.AverageValue != nil:
		n, share := s.byShare(scale.Status.Replicas, value, t.AverageValue.MilliValue())
		st.AverageValue = resource.NewMilliQuantity(share, resource.DecimalSI)
		return proposal{n, label}, nil
	}
	n, err := s.byValue(scale.Spec.Replicas, value, t.Value.MilliValue())
	if err != nil {
		return proposal{}, fmt.Errorf("failed to get external metric %s: %w", name, err)
	}
	st.Value = resource.NewMilliQuantity(value, resource.DecimalSI)
	return proposal{n, label}, nil
}

// external returns the sum of an external metric's values.
func (s *sight) external(src *autoscalingv2.ExternalMetricSource) (int64, error) {
	of, err := metav1.LabelSelectorAsSelector(src.Metric.Selector)
	if err != nil {
		return 0, err
	}
	values, err := s.api.external(s.ctx, s.key.Namespace, src.Metric.Name, of)
	if err != nil {
		return 0, fmt.Errorf("unable to get external metric %s/%s/%+v: %w", s.key.Namespace, src.Metric.Name, src.Metric.Selector, err)
	}
	sum := int64(0)
	for _, v := range values {
		if v > 0 && sum > math.MaxInt64-v {
			return math.MaxInt64, nil
		}
		sum += v
	}
	return sum, nil
}
