package apps

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/defaults"
	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
	"github.com/periplus/periplus/apiserver/validation"
)

var deploymentHalves = kind.Split(func(obj *appsv1.Deployment) (*appsv1.DeploymentSpec, *appsv1.DeploymentStatus) {
	return &obj.Spec, &obj.Status
})

func deployments() *registry.Resource {
	s := deploymentHalves.Main()
	s.DefaultFunc = defaultDeployment
	s.PrepareUpdate = func(_ context.Context, d, old *appsv1.Deployment) {
		deploymentHalves.KeepStatus(d, old)
		// Annotations count as well: the controller copies them to replica sets.
		kind.SetGeneration(d, old, !validation.Equal(d.Spec, old.Spec) || !validation.Equal(d.Annotations, old.Annotations))
	}
	s.ValidateCreate = func(_ context.Context, d *appsv1.Deployment) field.ErrorList {
		return deploymentSpec(&d.Spec, nil)
	}
	s.ValidateChange = func(_ context.Context, d, old *appsv1.Deployment) field.ErrorList {
		errs := deploymentSpec(&d.Spec, &old.Spec)
		return append(errs, validation.Immutable(d.Spec.Selector, old.Spec.Selector, field.NewPath("spec", "selector"))...)
	}
	s.WarningsFunc = func(_ context.Context, d, old *appsv1.Deployment) []string {
		switch {
		case old == nil:
			return validation.WorkloadWarnings(d.Name, &d.Spec.Template, templatePath)
		case old.Generation != d.Generation:
			return validation.TemplateWarnings(&d.Spec.Template, templatePath)
		}
		return nil
	}
	status := deploymentHalves.Status()
	status.DefaultFunc = defaultDeployment
	status.PrepareUpdate = func(_ context.Context, d, old *appsv1.Deployment) {
		deploymentHalves.KeepSpec(d, old)
		d.Labels = old.Labels
	}
	status.ValidateChange = func(_ context.Context, d, old *appsv1.Deployment) field.ErrorList {
		return deploymentStatus(&d.Status, &old.Status)
	}
	return &registry.Resource{
		GVR:        version.WithResource("deployments"),
		Kind:       "Deployment",
		Singular:   "deployment",
		ShortNames: []string{"deploy"},
		Categories: []string{"all"},
		Namespaced: true,
		New:        kind.Make[appsv1.Deployment],
		NewList:    kind.Make[appsv1.DeploymentList],
		Strategy:   s,
		Status:     status,
		Scale: kind.ReplicasOf[*appsv1.Deployment](func(obj *appsv1.Deployment) (**int32, int32, string, error) {
			selector, err := selectorText(obj.Spec.Selector)
			return &obj.Spec.Replicas, obj.Status.Replicas, selector, err
		}).Scale(),
	}
}

func defaultDeployment(d *appsv1.Deployment) {
	spec := &d.Spec
	defaults.PodTemplate(&spec.Template)
	setInt(&spec.Replicas, 1)
	setInt(&spec.RevisionHistoryLimit, 10)
	setInt(&spec.ProgressDeadlineSeconds, 600)
	if spec.Strategy.Type == "" {
		spec.Strategy.Type = appsv1.RollingUpdateDeploymentStrategyType
	}
	if spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType {
		return
	}
	if spec.Strategy.RollingUpdate == nil {
		spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{}
	}
	setIntOrString(&spec.Strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
	setIntOrString(&spec.Strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
}

func deploymentSpec(spec, old *appsv1.DeploymentSpec) field.ErrorList {
	at := field.NewPath("spec")
	errs := nonnegative(at, number{"replicas", spec.Replicas})
	var before = oldTemplate(old != nil, func() *podTemplate { return &old.Template })
	errs = append(errs, selectorAndTemplate(spec.Selector, &spec.Template, before, "ReplicaSet", "empty selector is invalid for deployment", at)...)
	errs = append(errs, deploymentStrategy(&spec.Strategy, at.Child("strategy"))...)
	errs = append(errs, validation.Nonnegative(int64(spec.MinReadySeconds), at.Child("minReadySeconds"))...)
	errs = append(errs, nonnegative(at, number{"revisionHistoryLimit", spec.RevisionHistoryLimit}, number{"progressDeadlineSeconds", spec.ProgressDeadlineSeconds})...)
	if d := spec.ProgressDeadlineSeconds; d != nil && *d <= spec.MinReadySeconds {
		errs = append(errs, field.Invalid(at.Child("progressDeadlineSeconds"), d, "must be greater than minReadySeconds"))
	}
	return errs
}

func deploymentStrategy(s *appsv1.DeploymentStrategy, at *field.Path) field.ErrorList {
	rolling := at.Child("rollingUpdate")
	switch s.Type {
	case appsv1.RecreateDeploymentStrategyType:
		if s.RollingUpdate != nil {
			return field.ErrorList{field.Forbidden(rolling, "may not be specified when strategy `type` is 'Recreate'")}
		}
		return nil
	case appsv1.RollingUpdateDeploymentStrategyType:
	default:
		return field.ErrorList{field.NotSupported(at, s, []string{string(appsv1.RecreateDeploymentStrategyType), string(appsv1.RollingUpdateDeploymentStrategyType)})}
	}
	r := s.RollingUpdate
	if r == nil || r.MaxUnavailable == nil || r.MaxSurge == nil {
		return field.ErrorList{field.Required(rolling, "this should be defaulted and never be nil")}
	}
	errs := validation.PositiveIntOrPercent(*r.MaxUnavailable, rolling.Child("maxUnavailable"))
	errs = append(errs, validation.PositiveIntOrPercent(*r.MaxSurge, rolling.Child("maxSurge"))...)
	if validation.IntOrPercent(*r.MaxUnavailable) == 0 && validation.IntOrPercent(*r.MaxSurge) == 0 {
		errs = append(errs, field.Invalid(rolling.Child("maxUnavailable"), r.MaxUnavailable, "may not be 0 when `maxSurge` is 0"))
	}
	return append(errs, validation.NotMoreThan100Percent(*r.MaxUnavailable, rolling.Child("maxUnavailable"))...)
}

func deploymentStatus(s, old *appsv1.DeploymentStatus) field.ErrorList {
	at := field.NewPath("status")
	errs := validation.Nonnegative(s.ObservedGeneration, at.Child("observedGeneration"))
	errs = append(errs, nonnegative(at,
		number{"replicas", &s.Replicas}, number{"updatedReplicas", &s.UpdatedReplicas}, number{"readyReplicas", &s.ReadyReplicas},
		number{"availableReplicas", &s.AvailableReplicas}, number{"unavailableReplicas", &s.UnavailableReplicas},
		number{"terminatingReplicas", s.TerminatingReplicas}, number{"collisionCount", s.CollisionCount})...)
	errs = append(errs, notAbove(at, s.Replicas, "cannot be greater than status.replicas",
		number{"updatedReplicas", &s.UpdatedReplicas}, number{"readyReplicas", &s.ReadyReplicas}, number{"availableReplicas", &s.AvailableReplicas})...)
	errs = append(errs, notAbove(at, s.ReadyReplicas, "cannot be greater than readyReplicas", number{"availableReplicas", &s.AvailableReplicas})...)
	return append(errs, notDecremented(s.CollisionCount, old.CollisionCount, at.Child("collisionCount"))...)
}
