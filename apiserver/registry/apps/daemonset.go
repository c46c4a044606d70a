package apps

import (
	"context"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/defaults"
	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
	"github.com/periplus/periplus/apiserver/validation"
)

var daemonSetHalves = kind.Split(func(obj *appsv1.DaemonSet) (*appsv1.DaemonSetSpec, *appsv1.DaemonSetStatus) {
	return &obj.Spec, &obj.Status
})

func daemonSets() *registry.Resource {
	s := daemonSetHalves.Main()
	s.DefaultFunc = defaultDaemonSet
	s.PrepareCreate = func(_ context.Context, ds *appsv1.DaemonSet) {
		daemonSetHalves.DropStatus(ds)
		ds.Generation = 1
		setTemplateGeneration(ds, max(templateGeneration(ds), 1))
	}
	s.PrepareUpdate = func(_ context.Context, ds, old *appsv1.DaemonSet) {
		daemonSetHalves.KeepStatus(ds, old)
		generation := templateGeneration(old)
		if !validation.Equal(ds.Spec.Template, old.Spec.Template) {
			generation++
		}
		setTemplateGeneration(ds, generation)
		daemonSetHalves.BumpGeneration(ds, old)
	}
	s.ValidateCreate = func(_ context.Context, ds *appsv1.DaemonSet) field.ErrorList { return daemonSetSpec(&ds.Spec, nil) }
	s.ValidateChange = func(_ context.Context, ds, old *appsv1.DaemonSet) field.ErrorList {
		errs := daemonSetSpec(&ds.Spec, &old.Spec)
		return append(errs, validation.Immutable(ds.Spec.Selector, old.Spec.Selector, field.NewPath("spec", "selector"))...)
	}
	s.WarningsFunc = func(_ context.Context, ds, old *appsv1.DaemonSet) []string {
		if old != nil && templateGeneration(ds) == templateGeneration(old) {
			return nil
		}
		return validation.TemplateWarnings(&ds.Spec.Template, templatePath)
	}
	status := daemonSetHalves.Status()
	status.DefaultFunc = defaultDaemonSet
	status.PrepareUpdate = func(_ context.Context, ds, old *appsv1.DaemonSet) {
		daemonSetHalves.KeepSpec(ds, old)
		setTemplateGeneration(ds, templateGeneration(old))
	}
	status.ValidateChange = func(_ context.Context, ds, old *appsv1.DaemonSet) field.ErrorList {
		return daemonSetStatus(&ds.Status, &old.Status)
	}
	return &registry.Resource{
		GVR:        version.WithResource("daemonsets"),
		Kind:       "DaemonSet",
		Singular:   "daemonset",
		ShortNames: []string{"ds"},
		Categories: []string{"all"},
		Namespaced: true,
		New:        kind.Make[appsv1.DaemonSet],
		NewList:    kind.Make[appsv1.DaemonSetList],
		Strategy:   s,
		Status:     status,
	}
}

// The generation of the template has no field in apps/v1; upstream keeps it in
// this annotation.
func templateGeneration(ds *appsv1.DaemonSet) int64 {
	n, err := strconv.ParseInt(ds.Annotations[appsv1.DeprecatedTemplateGeneration], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func setTemplateGeneration(ds *appsv1.DaemonSet, generation int64) {
	if ds.Annotations == nil {
		ds.Annotations = map[string]string{}
	}
	ds.Annotations[appsv1.DeprecatedTemplateGeneration] = strconv.FormatInt(generation, 10)
}

func defaultDaemonSet(ds *appsv1.DaemonSet) {
	defaults.PodTemplate(&ds.Spec.Template)
	setInt(&ds.Spec.RevisionHistoryLimit, 10)
	strategy := &ds.Spec.UpdateStrategy
	if strategy.Type == "" {
		strategy.Type = appsv1.RollingUpdateDaemonSetStrategyType
	}
	if strategy.Type != appsv1.RollingUpdateDaemonSetStrategyType {
		if r := strategy.RollingUpdate; r != nil { // upstream's own type knows no absent numbers
			setIntOrString(&r.MaxUnavailable, intstr.FromInt32(0))
			setIntOrString(&r.MaxSurge, intstr.FromInt32(0))
		}
		return
	}
	if strategy.RollingUpdate == nil {
		strategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{}
	}
	setIntOrString(&strategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
	setIntOrString(&strategy.RollingUpdate.MaxSurge, intstr.FromInt32(0))
}

func daemonSetSpec(spec, old *appsv1.DaemonSetSpec) field.ErrorList {
	at := field.NewPath("spec")
	before := oldTemplate(old != nil, func() *podTemplate { return &old.Template })
	selectorAt, template := at.Child("selector"), at.Child("template")
	var oldSelector *metav1.LabelSelector
	if old != nil {
		oldSelector = old.Selector
	}
	errs := validation.LabelSelector(spec.Selector, oldSelector, selectorAt)
	if selector, err := metav1.LabelSelectorAsSelector(spec.Selector); err == nil && !selector.Matches(labels.Set(spec.Template.Labels)) {
		errs = append(errs, field.Invalid(template.Child("metadata", "labels"), spec.Template.Labels, "`selector` does not match template `labels`"))
	}
	if s := spec.Selector; s != nil && len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		errs = append(errs, field.Invalid(selectorAt, s, "empty selector is invalid for daemonset"))
	}
	errs = append(errs, validation.PodTemplate(&spec.Template, before, template)...)
	errs = append(errs, validation.RunsForever(&spec.Template, "DaemonSet", template)...)
	errs = append(errs, nonnegative(at, number{"minReadySeconds", &spec.MinReadySeconds}, number{"revisionHistoryLimit", spec.RevisionHistoryLimit})...)
	return append(errs, daemonSetStrategy(&spec.UpdateStrategy, at.Child("updateStrategy"))...)
}

func daemonSetStrategy(s *appsv1.DaemonSetUpdateStrategy, at *field.Path) field.ErrorList {
	rolling := at.Child("rollingUpdate")
	switch s.Type {
	case appsv1.OnDeleteDaemonSetStrategyType:
		return nil
	case appsv1.RollingUpdateDaemonSetStrategyType:
	default:
		return field.ErrorList{field.NotSupported(at, s, []string{string(appsv1.RollingUpdateDaemonSetStrategyType), string(appsv1.OnDeleteDaemonSetStrategyType)})}
	}
	r := s.RollingUpdate
	if r == nil || r.MaxUnavailable == nil || r.MaxSurge == nil {
		return field.ErrorList{field.Required(rolling, "")}
	}
	unavailable, surge := rolling.Child("maxUnavailable"), rolling.Child("maxSurge")
	errs := validation.PositiveIntOrPercent(*r.MaxUnavailable, unavailable)
	errs = append(errs, validation.PositiveIntOrPercent(*r.MaxSurge, surge)...)
	errs = append(errs, validation.NotMoreThan100Percent(*r.MaxUnavailable, unavailable)...)
	errs = append(errs, validation.NotMoreThan100Percent(*r.MaxSurge, surge)...)
	switch hasUnavailable, hasSurge := validation.IntOrPercent(*r.MaxUnavailable) != 0, validation.IntOrPercent(*r.MaxSurge) != 0; {
	case hasUnavailable && hasSurge:
		errs = append(errs, field.Invalid(surge, r.MaxSurge, "may not be set when maxUnavailable is non-zero"))
	case !hasUnavailable && !hasSurge:
		errs = append(errs, field.Required(unavailable, "cannot be 0 when maxSurge is 0"))
	}
	return errs
}

func daemonSetStatus(s, old *appsv1.DaemonSetStatus) field.ErrorList {
	at := field.NewPath("status")
	errs := nonnegative(at,
		number{"currentNumberScheduled", &s.CurrentNumberScheduled}, number{"numberMisscheduled", &s.NumberMisscheduled},
		number{"desiredNumberScheduled", &s.DesiredNumberScheduled}, number{"numberReady", &s.NumberReady},
		number{"updatedNumberScheduled", &s.UpdatedNumberScheduled}, number{"numberAvailable", &s.NumberAvailable},
		number{"numberUnavailable", &s.NumberUnavailable}, number{"collisionCount", s.CollisionCount})
	errs = append(errs, validation.Nonnegative(s.ObservedGeneration, at.Child("observedGeneration"))...)
	return append(errs, notDecremented(s.CollisionCount, old.CollisionCount, at.Child("collisionCount"))...)
}
