package autoscaling

import (
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/validation"
)

const (
	maxPeriod        = 1800 // seconds of a scaling policy
	maxStabilization = 3600 // seconds
)

// versionRule is how strictly the apiVersion of a reference is looked at.
type versionRule struct {
	anything bool // it was stored like that
	noGroup  bool // it may be of the core group
}

// autoscalerSpec checks a spec; old is nil on create.
func autoscalerSpec(spec, old *autoscalingv2.HorizontalPodAutoscalerSpec) field.ErrorList {
	var errs field.ErrorList
	at := field.NewPath("spec")
	if n := spec.MinReplicas; n != nil && *n < 0 {
		errs = append(errs, field.Invalid(at.Child("minReplicas"), *n, "must be greater than or equal to 0"))
	}
	most := at.Child("maxReplicas")
	switch {
	case spec.MaxReplicas == 0:
		errs = append(errs, field.Required(most, ""))
	case spec.MaxReplicas < 0:
		errs = append(errs, field.Invalid(most, spec.MaxReplicas, "must be greater than or equal to 1"))
	}
	if spec.MinReplicas != nil && spec.MaxReplicas < *spec.MinReplicas {
		errs = append(errs, field.Invalid(most, spec.MaxReplicas, "must be greater than or equal to `minReplicas`"))
	}

	target := versionRule{noGroup: spec.ScaleTargetRef.Kind == "ReplicationController"}
	if old != nil && old.ScaleTargetRef.APIVersion == spec.ScaleTargetRef.APIVersion && old.ScaleTargetRef.Kind == spec.ScaleTargetRef.Kind {
		target = versionRule{anything: true}
	}
	errs = append(errs, reference(&spec.ScaleTargetRef, target, at.Child("scaleTargetRef"))...)

	described := versionRule{noGroup: true}
	if old != nil {
		for i := range old.Metrics {
			if o := old.Metrics[i].Object; o != nil && old.Metrics[i].Type == autoscalingv2.ObjectMetricSourceType {
				described.anything = described.anything || apiVersion(&o.DescribedObject, versionRule{noGroup: true}) != nil
			}
		}
	}
	errs = append(errs, metrics(spec, described, at.Child("metrics"))...)
	if b := spec.Behavior; b != nil {
		errs = append(errs, scalingRules(b.ScaleUp, at.Child("behavior", "scaleUp"))...)
		errs = append(errs, scalingRules(b.ScaleDown, at.Child("behavior", "scaleDown"))...)
	}
	return errs
}

func reference(ref *autoscalingv2.CrossVersionObjectReference, rule versionRule, at *field.Path) field.ErrorList {
	errs := pathSegment(ref.Kind, "", at.Child("kind"))
	errs = append(errs, pathSegment(ref.Name, "", at.Child("name"))...)
	if err := apiVersion(ref, rule); err != nil {
		errs = append(errs, field.Invalid(at.Child("apiVersion"), ref.APIVersion, err.Error()))
	}
	return errs
}

func apiVersion(ref *autoscalingv2.CrossVersionObjectReference, rule versionRule) error {
	if rule.anything {
		return nil
	}
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err == nil && gv.Group == "" && !rule.noGroup {
		err = fmt.Errorf("apiVersion must specify API group")
	}
	return err
}

// pathSegment checks a value that becomes part of a URL.
func pathSegment(value, missing string, at *field.Path) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(at, missing)}
	}
	var errs field.ErrorList
	for _, text := range content.IsPathSegmentName(value) {
		errs = append(errs, field.Invalid(at, value, text))
	}
	return errs
}

func scalingRules(r *autoscalingv2.HPAScalingRules, at *field.Path) field.ErrorList {
	if r == nil {
		return nil
	}
	var errs field.ErrorList
	if w := r.StabilizationWindowSeconds; w != nil {
		switch window := at.Child("stabilizationWindowSeconds"); {
		case *w < 0:
			errs = append(errs, field.Invalid(window, *w, "must be greater than or equal to zero"))
		case *w > maxStabilization:
			errs = append(errs, field.Invalid(window, *w, fmt.Sprintf("must be less than or equal to %v", maxStabilization)))
		}
	}
	if s := r.SelectPolicy; s != nil {
		switch *s {
		case autoscalingv2.MaxChangePolicySelect, autoscalingv2.MinChangePolicySelect, autoscalingv2.DisabledPolicySelect:
		default:
			errs = append(errs, field.NotSupported(at.Child("selectPolicy"), *s, []autoscalingv2.ScalingPolicySelect{
				autoscalingv2.DisabledPolicySelect, autoscalingv2.MaxChangePolicySelect, autoscalingv2.MinChangePolicySelect,
			}))
		}
	}
	policies := at.Child("policies")
	if len(r.Policies) == 0 {
		errs = append(errs, field.Required(policies, "must specify at least one Policy"))
	}
	for i := range r.Policies {
		errs = append(errs, scalingPolicy(&r.Policies[i], policies.Index(i))...)
	}
	if r.Tolerance != nil && r.Tolerance.Sign() < 0 {
		errs = append(errs, field.Invalid(at.Child("tolerance"), r.Tolerance.String(), "must be greater than or equal to 0"))
	}
	return errs
}

func scalingPolicy(p *autoscalingv2.HPAScalingPolicy, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if p.Type != autoscalingv2.PodsScalingPolicy && p.Type != autoscalingv2.PercentScalingPolicy {
		errs = append(errs, field.NotSupported(at.Child("type"), p.Type, []autoscalingv2.HPAScalingPolicyType{
			autoscalingv2.PercentScalingPolicy, autoscalingv2.PodsScalingPolicy,
		}))
	}
	if p.Value <= 0 {
		errs = append(errs, field.Invalid(at.Child("value"), p.Value, "must be greater than zero"))
	}
	switch period := at.Child("periodSeconds"); {
	case p.PeriodSeconds <= 0:
		errs = append(errs, field.Invalid(period, p.PeriodSeconds, "must be greater than zero"))
	case p.PeriodSeconds > maxPeriod:
		errs = append(errs, field.Invalid(period, p.PeriodSeconds, fmt.Sprintf("must be less than or equal to %v", maxPeriod)))
	}
	return errs
}

// autoscalerStatus checks what a controller reports.
func autoscalerStatus(s *autoscalingv2.HorizontalPodAutoscalerStatus) field.ErrorList {
	var errs field.ErrorList
	at := field.NewPath("status")
	for i := range s.Conditions {
		if g := s.Conditions[i].ObservedGeneration; g != nil {
			errs = append(errs, validation.Nonnegative(*g, at.Child("conditions").Index(i).Child("observedGeneration"))...)
		}
	}
	errs = append(errs, validation.Nonnegative(int64(s.CurrentReplicas), at.Child("currentReplicas"))...)
	return append(errs, validation.Nonnegative(int64(s.DesiredReplicas), at.Child("desiredReplicas"))...)
}
