package core

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/defaults"
	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
	"github.com/periplus/periplus/apiserver/validation"
)

var replicationControllerHalves = kind.Split(func(obj *corev1.ReplicationController) (*corev1.ReplicationControllerSpec, *corev1.ReplicationControllerStatus) {
	return &obj.Spec, &obj.Status
})

func replicationControllers() *registry.Resource {
	s := replicationControllerHalves.Main()
	s.DefaultFunc = defaultReplicationController
	s.ValidateCreate = func(_ context.Context, rc *corev1.ReplicationController) field.ErrorList {
		return replicationControllerSpec(&rc.Spec, nil)
	}
	s.ValidateChange = func(_ context.Context, rc, old *corev1.ReplicationController) field.ErrorList {
		return replicationControllerSpec(&rc.Spec, &old.Spec)
	}
	s.Name = func(name string, prefix bool) []string {
		if prefix {
			return apivalidation.NameIsDNSSubdomain(name, prefix)
		}
		return content.IsDNS1123Subdomain(name) // a rule that upstream generates: in other words
	}
	status := replicationControllerHalves.Status()
	status.DefaultFunc = defaultReplicationController
	status.ValidateChange = func(_ context.Context, rc, _ *corev1.ReplicationController) field.ErrorList {
		return replicationControllerStatus(&rc.Status)
	}
	s.WarningsFunc = func(_ context.Context, rc, old *corev1.ReplicationController) []string {
		at := field.NewPath("spec", "template")
		switch {
		case old == nil && rc.Spec.Template != nil:
			return validation.WorkloadWarnings(rc.Name, rc.Spec.Template, at)
		case old != nil && old.Generation != rc.Generation && old.Spec.Template != nil:
			return validation.TemplateWarnings(old.Spec.Template, at) // of the old one, as upstream
		}
		return nil
	}
	return &registry.Resource{
		GVR:              version.WithResource("replicationcontrollers"),
		Kind:             "ReplicationController",
		Singular:         "replicationcontroller",
		ShortNames:       []string{"rc"},
		Categories:       []string{"all"},
		Namespaced:       true,
		New:              kind.Make[corev1.ReplicationController],
		NewList:          kind.Make[corev1.ReplicationControllerList],
		StoragePrefix:    "controllers",
		Dependents:       registry.OrphanDependents, // as v1 began
		Strategy:         s,
		Status:           status,
		SelectableFields: []string{"status.replicas"},
		Fields: func(obj runtime.Object) fields.Set {
			return fields.Set{"status.replicas": itoa(obj.(*corev1.ReplicationController).Status.Replicas)}
		},
		Scale: kind.ReplicasOf[*corev1.ReplicationController](func(obj *corev1.ReplicationController) (**int32, int32, string, error) {
			return &obj.Spec.Replicas, obj.Status.Replicas, labels.SelectorFromSet(obj.Spec.Selector).String(), nil
		}).Scale(),
	}
}

// defaultReplicationController takes selector and labels from the template.
func defaultReplicationController(rc *corev1.ReplicationController) {
	if rc.Spec.Replicas == nil {
		one := int32(1)
		rc.Spec.Replicas = &one
	}
	template := rc.Spec.Template
	if template == nil {
		return
	}
	defaults.PodTemplate(template)
	if len(rc.Spec.Selector) == 0 {
		rc.Spec.Selector = copyLabels(template.Labels)
	}
	if len(rc.Labels) == 0 {
		rc.Labels = copyLabels(template.Labels)
	}
}

func replicationControllerSpec(spec, old *corev1.ReplicationControllerSpec) field.ErrorList {
	at := field.NewPath("spec")
	errs := validation.Nonnegative(int64(spec.MinReadySeconds), at.Child("minReadySeconds"))
	if len(spec.Selector) == 0 {
		errs = append(errs, field.Required(at.Child("selector"), ""))
	}
	if spec.Replicas != nil {
		errs = append(errs, validation.Nonnegative(int64(*spec.Replicas), at.Child("replicas"))...)
	}
	if spec.Template == nil {
		return append(errs, field.Required(at.Child("template"), ""))
	}
	var before *corev1.PodTemplateSpec
	if old != nil {
		before = old.Template
	}
	return append(errs, validation.ReplicatedTemplate(spec.Template, before, labels.SelectorFromSet(spec.Selector), "ReplicationController", at.Child("template"))...)
}

func replicationControllerStatus(s *corev1.ReplicationControllerStatus) field.ErrorList {
	at := field.NewPath("status")
	errs := validation.Nonnegative(int64(s.Replicas), at.Child("replicas"))
	errs = append(errs, validation.Nonnegative(s.ObservedGeneration, at.Child("observedGeneration"))...)
	for _, n := range []struct {
		name  string
		value int32
	}{{"fullyLabeledReplicas", s.FullyLabeledReplicas}, {"readyReplicas", s.ReadyReplicas}, {"availableReplicas", s.AvailableReplicas}} {
		errs = append(errs, validation.Nonnegative(int64(n.value), at.Child(n.name))...)
		if n.value > s.Replicas {
			errs = append(errs, field.Invalid(at.Child(n.name), n.value, "cannot be greater than status.replicas"))
		}
	}
	if s.AvailableReplicas > s.ReadyReplicas {
		errs = append(errs, field.Invalid(at.Child("availableReplicas"), s.AvailableReplicas, "cannot be greater than readyReplicas"))
	}
	return errs
}
