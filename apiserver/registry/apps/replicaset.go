package apps

import (
	"context"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/defaults"
	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
	"github.com/periplus/periplus/apiserver/validation"
)

var replicaSetHalves = kind.Split(func(obj *appsv1.ReplicaSet) (*appsv1.ReplicaSetSpec, *appsv1.ReplicaSetStatus) {
	return &obj.Spec, &obj.Status
})

func replicaSets() *registry.Resource {
	s := replicaSetHalves.Main()
	s.DefaultFunc = defaultReplicaSet
	s.ValidateCreate = func(_ context.Context, rs *appsv1.ReplicaSet) field.ErrorList {
		return replicaSetSpec(&rs.Spec, nil)
	}
	s.ValidateChange = func(_ context.Context, rs, old *appsv1.ReplicaSet) field.ErrorList {
		errs := replicaSetSpec(&rs.Spec, &old.Spec)
		return append(errs, validation.Immutable(rs.Spec.Selector, old.Spec.Selector, field.NewPath("spec", "selector"))...)
	}
	s.WarningsFunc = func(_ context.Context, rs, old *appsv1.ReplicaSet) []string {
		switch {
		case old == nil:
			return validation.WorkloadWarnings(rs.Name, &rs.Spec.Template, templatePath)
		case old.Generation != rs.Generation:
			return validation.TemplateWarnings(&rs.Spec.Template, templatePath)
		}
		return nil
	}
	status := replicaSetHalves.Status()
	status.DefaultFunc = defaultReplicaSet
	status.ValidateChange = func(_ context.Context, rs, _ *appsv1.ReplicaSet) field.ErrorList { return replicaSetStatus(&rs.Status) }
	return &registry.Resource{
		GVR:              version.WithResource("replicasets"),
		Kind:             "ReplicaSet",
		Singular:         "replicaset",
		ShortNames:       []string{"rs"},
		Categories:       []string{"all"},
		Namespaced:       true,
		New:              kind.Make[appsv1.ReplicaSet],
		NewList:          kind.Make[appsv1.ReplicaSetList],
		Strategy:         s,
		Status:           status,
		SelectableFields: []string{"status.replicas"},
		Fields: func(obj runtime.Object) fields.Set {
			return fields.Set{"status.replicas": strconv.Itoa(int(obj.(*appsv1.ReplicaSet).Status.Replicas))}
		},
		Scale: kind.ReplicasOf[*appsv1.ReplicaSet](func(obj *appsv1.ReplicaSet) (**int32, int32, string, error) {
			selector, err := selectorText(obj.Spec.Selector)
			return &obj.Spec.Replicas, obj.Status.Replicas, selector, err
		}).Scale(),
	}
}

func defaultReplicaSet(rs *appsv1.ReplicaSet) {
	defaults.PodTemplate(&rs.Spec.Template)
	setInt(&rs.Spec.Replicas, 1)
}

func replicaSetSpec(spec, old *appsv1.ReplicaSetSpec) field.ErrorList {
	at := field.NewPath("spec")
	errs := nonnegative(at, number{"replicas", spec.Replicas}, number{"minReadySeconds", &spec.MinReadySeconds})
	before := oldTemplate(old != nil, func() *podTemplate { return &old.Template })
	return append(errs, selectorAndTemplate(spec.Selector, &spec.Template, before, "ReplicaSet", "empty selector is invalid for deployment", at)...)
}

func replicaSetStatus(s *appsv1.ReplicaSetStatus) field.ErrorList {
	at := field.NewPath("status")
	errs := nonnegative(at,
		number{"replicas", &s.Replicas}, number{"fullyLabeledReplicas", &s.FullyLabeledReplicas}, number{"readyReplicas", &s.ReadyReplicas},
		number{"availableReplicas", &s.AvailableReplicas}, number{"terminatingReplicas", s.TerminatingReplicas})
	errs = append(errs, validation.Nonnegative(s.ObservedGeneration, at.Child("observedGeneration"))...)
	errs = append(errs, notAbove(at, s.Replicas, "cannot be greater than status.replicas",
		number{"fullyLabeledReplicas", &s.FullyLabeledReplicas}, number{"readyReplicas", &s.ReadyReplicas}, number{"availableReplicas", &s.AvailableReplicas})...)
	return append(errs, notAbove(at, s.ReadyReplicas, "cannot be greater than readyReplicas", number{"availableReplicas", &s.AvailableReplicas})...)
}
