package autoscaling

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/validation"
)

// sourceTypes are the kinds of metrics, sorted as errors list them.
var sourceTypes = []autoscalingv2.MetricSourceType{
	autoscalingv2.ContainerResourceMetricSourceType, autoscalingv2.ExternalMetricSourceType, autoscalingv2.ObjectMetricSourceType,
	autoscalingv2.PodsMetricSourceType, autoscalingv2.ResourceMetricSourceType,
}

func metrics(spec *autoscalingv2.HorizontalPodAutoscalerSpec, described versionRule, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	idle := false // can tell that there is work when no pod runs
	for i := range spec.Metrics {
		m := &spec.Metrics[i]
		errs = append(errs, metric(m, described, at.Index(i))...)
		idle = idle || m.Type == autoscalingv2.ObjectMetricSourceType || m.Type == autoscalingv2.ExternalMetricSourceType
	}
	if spec.MinReplicas != nil && *spec.MinReplicas == 0 && !idle {
		errs = append(errs, field.Forbidden(at, "must specify at least one Object or External metric to support scaling to zero replicas"))
	}
	return errs
}

// metric checks that the source of the metric's type is there, alone, and right.
func metric(m *autoscalingv2.MetricSpec, described versionRule, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if m.Type == "" {
		errs = append(errs, field.Required(at.Child("type"), "must specify a metric source type"))
	}
	sources := []struct {
		kind  autoscalingv2.MetricSourceType
		field string
		given bool
		check func(*field.Path) field.ErrorList
	}{
		{autoscalingv2.ObjectMetricSourceType, "object", m.Object != nil, func(at *field.Path) field.ErrorList { return objectSource(m.Object, described, at) }},
		{autoscalingv2.ExternalMetricSourceType, "external", m.External != nil, func(at *field.Path) field.ErrorList { return externalSource(m.External, at) }},
		{autoscalingv2.PodsMetricSourceType, "pods", m.Pods != nil, func(at *field.Path) field.ErrorList { return podsSource(m.Pods, at) }},
		{autoscalingv2.ResourceMetricSourceType, "resource", m.Resource != nil, func(at *field.Path) field.ErrorList { return resourceSource(m.Resource, at) }},
		{autoscalingv2.ContainerResourceMetricSourceType, "containerResource", m.ContainerResource != nil, func(at *field.Path) field.ErrorList { return containerSource(m.ContainerResource, at) }},
	}
	known := false
	for _, s := range sources {
		known = known || s.kind == m.Type
	}
	if !known {
		errs = append(errs, field.NotSupported(at.Child("type"), m.Type, sourceTypes))
	}
	given := 0
	for _, s := range sources {
		if s.given {
			given++
			if given == 1 {
				errs = append(errs, s.check(at.Child(s.field))...)
			}
		}
	}
	for _, s := range sources {
		if s.kind == m.Type && !s.given {
			errs = append(errs, field.Required(at.Child(s.field), "must populate information for the given metric source"))
		}
	}
	if !known { // upstream says it twice
		errs = append(errs, field.NotSupported(at.Child("type"), m.Type, sourceTypes))
	}
	if given != 1 {
		for _, s := range sources {
			if s.given && s.kind != m.Type {
				errs = append(errs, field.Forbidden(at.Child(s.field), "must populate the given metric source only"))
			}
		}
	}
	return errs
}

func objectSource(s *autoscalingv2.ObjectMetricSource, described versionRule, at *field.Path) field.ErrorList {
	errs := reference(&s.DescribedObject, described, at.Child("describedObject"))
	errs = append(errs, identifier(&s.Metric, at.Child("metric"))...)
	errs = append(errs, metricTarget(&s.Target, at.Child("target"))...)
	if s.Target.Value == nil && s.Target.AverageValue == nil {
		errs = append(errs, field.Required(at.Child("target", "averageValue"), "must set either a target value or averageValue"))
	}
	return errs
}

func externalSource(s *autoscalingv2.ExternalMetricSource, at *field.Path) field.ErrorList {
	errs := identifier(&s.Metric, at.Child("metric"))
	errs = append(errs, metricTarget(&s.Target, at.Child("target"))...)
	switch t := &s.Target; {
	case t.Value == nil && t.AverageValue == nil:
		errs = append(errs, field.Required(at.Child("target", "averageValue"), "must set either a target value for metric or a per-pod target"))
	case t.Value != nil && t.AverageValue != nil:
		errs = append(errs, field.Forbidden(at.Child("target", "value"), "may not set both a target value for metric and a per-pod target"))
	}
	return errs
}

func podsSource(s *autoscalingv2.PodsMetricSource, at *field.Path) field.ErrorList {
	errs := identifier(&s.Metric, at.Child("metric"))
	errs = append(errs, metricTarget(&s.Target, at.Child("target"))...)
	if s.Target.AverageValue == nil {
		errs = append(errs, field.Required(at.Child("target", "averageValue"), "must specify a positive target averageValue"))
	}
	return errs
}

func resourceSource(s *autoscalingv2.ResourceMetricSource, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.Name == "" {
		errs = append(errs, field.Required(at.Child("name"), "must specify a resource name"))
	}
	return append(errs, resourceTarget(&s.Target, at.Child("target"))...)
}

func containerSource(s *autoscalingv2.ContainerResourceMetricSource, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.Name == "" {
		errs = append(errs, field.Required(at.Child("name"), "must specify a resource name"))
	} else {
		errs = append(errs, validation.ContainerResourceName(s.Name, at.Child("name"))...)
	}
	if s.Container == "" {
		errs = append(errs, field.Required(at.Child("container"), "must specify a container"))
	} else {
		errs = append(errs, validation.DNSLabel(s.Container, at.Child("container"))...)
	}
	return append(errs, resourceTarget(&s.Target, at.Child("target"))...)
}

func resourceTarget(t *autoscalingv2.MetricTarget, at *field.Path) field.ErrorList {
	errs := metricTarget(t, at)
	switch {
	case t.AverageUtilization == nil && t.AverageValue == nil:
		errs = append(errs, field.Required(at.Child("averageUtilization"), "must set either a target raw value or a target utilization"))
	case t.AverageUtilization != nil && t.AverageValue != nil:
		errs = append(errs, field.Forbidden(at.Child("averageValue"), "may not set both a target raw value and a target utilization"))
	}
	return errs
}

func metricTarget(t *autoscalingv2.MetricTarget, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch t.Type {
	case autoscalingv2.UtilizationMetricType, autoscalingv2.ValueMetricType, autoscalingv2.AverageValueMetricType:
	case "":
		errs = append(errs, field.Required(at.Child("type"), "must specify a metric target type"))
		fallthrough
	default:
		errs = append(errs, field.Invalid(at.Child("type"), t.Type, "must be either Utilization, Value, or AverageValue"))
	}
	if t.Value != nil && t.Value.Sign() != 1 {
		errs = append(errs, field.Invalid(at.Child("value"), t.Value, "must be positive"))
	}
	if t.AverageValue != nil && t.AverageValue.Sign() != 1 {
		errs = append(errs, field.Invalid(at.Child("averageValue"), t.AverageValue, "must be positive"))
	}
	if t.AverageUtilization != nil && *t.AverageUtilization < 1 {
		errs = append(errs, field.Invalid(at.Child("averageUtilization"), *t.AverageUtilization, "must be greater than 0"))
	}
	return errs
}

func identifier(id *autoscalingv2.MetricIdentifier, at *field.Path) field.ErrorList {
	return pathSegment(id.Name, "must specify a metric name", at.Child("name"))
}
