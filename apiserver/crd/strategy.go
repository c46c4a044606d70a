package crd

import (
	"context"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"

	"github.com/periplus/periplus/apiserver/registry"
)

// strategy is the rules of the main endpoint of a version.
type strategy struct{ v *version }

var _ registry.Strategy = strategy{}

// Default does nothing: objects are defaulted when they are decoded.
func (strategy) Default(runtime.Object) {}

// ValidateName checks metadata.name.
func (strategy) ValidateName(name string, prefix bool) []string {
	return apivalidation.NameIsDNSSubdomain(name, prefix)
}

// Traits say that an update must name the revision that it replaces.
func (strategy) Traits() registry.Traits { return registry.Traits{NoUnconditionalUpdate: true} }

func (s strategy) hasStatus() bool {
	return s.v.spec.Subresources != nil && s.v.spec.Subresources.Status != nil
}

// PrepareForCreate drops a status that belongs to /status.
func (s strategy) PrepareForCreate(_ context.Context, object runtime.Object) {
	obj := object.(*Object)
	if s.hasStatus() {
		delete(obj.Content, "status")
	}
	obj.Generation = 1
}

// PrepareForUpdate keeps a status that belongs to /status, and raises the
// generation when anything but metadata changed.
func (s strategy) PrepareForUpdate(_ context.Context, object, before runtime.Object) {
	obj, old := object.(*Object), before.(*Object)
	if s.hasStatus() {
		if status, ok := old.Content["status"]; ok {
			obj.Content["status"] = status
		} else {
			delete(obj.Content, "status")
		}
	}
	if !apiequality.Semantic.DeepEqual(obj.Content, old.Content) {
		obj.Generation = old.Generation + 1
	}
}

// Validate checks a new object against its schema and rules.
func (s strategy) Validate(ctx context.Context, object runtime.Object) field.ErrorList {
	c, all := s.v.compiled(), object.(*Object).UnstructuredContent()
	errs := validation.ValidateCustomResource(nil, all, c.validator)
	errs = append(errs, s.validateScale(all, true)...)
	if c.structural == nil {
		return errs
	}
	errs = append(errs, objectmeta.Validate(ctx, nil, all, c.structural, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, c.structural, all)...)
	return append(errs, s.validateRules(ctx, errs, all, nil)...)
}

// ValidateUpdate checks a changed object; what was wrong before and did not change is tolerated.
func (s strategy) ValidateUpdate(ctx context.Context, object, before runtime.Object) field.ErrorList {
	c, all, old := s.v.compiled(), object.(*Object).UnstructuredContent(), before.(*Object).UnstructuredContent()
	same := common.NewCorrelatedObject(all, old, &model.Structural{Structural: c.structural})
	var options []validation.ValidationOption
	if c.structural != nil {
		options = append(options, validation.WithRatcheting(same))
	}
	errs := validation.ValidateCustomResourceUpdate(nil, all, old, c.validator, options...)
	errs = append(errs, s.validateScale(all, true)...)
	if c.structural == nil {
		return errs
	}
	errs = append(errs, objectmeta.Validate(ctx, nil, all, c.structural, false)...)
	if len(listtype.ValidateListSetsAndMaps(nil, c.structural, old)) == 0 {
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, c.structural, all)...)
	}
	return append(errs, s.validateRules(ctx, errs, all, old, cel.WithRatcheting(same))...)
}

// validateRules evaluates x-kubernetes-validations, unless errs make them meaningless.
func (s strategy) validateRules(ctx context.Context, errs field.ErrorList, all, old map[string]any, options ...cel.Option) field.ErrorList {
	rules := s.v.rules()
	if rules == nil {
		return nil
	}
	for _, e := range errs {
		switch e.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return field.ErrorList{field.Invalid(nil, nil, "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation")}
		}
	}
	var before any
	if old != nil {
		before = old
	}
	refused, _ := rules.Validate(ctx, nil, s.v.compiled().structural, all, before, celconfig.RuntimeCELCostBudget, options...)
	return refused
}

var standardFinalizers = sets.New(metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents, string(corev1.FinalizerKubernetes))

// Warnings about the names of new finalizers.
func (strategy) Warnings(_ context.Context, object, before runtime.Object) []string {
	added := sets.New(object.(*Object).Finalizers...)
	if before != nil {
		added = added.Difference(sets.New(before.(*Object).Finalizers...))
	}
	var out []string
	at := field.NewPath("metadata", "finalizers").String()
	for _, name := range sets.List(added) {
		for _, text := range utilvalidation.IsQualifiedName(name) {
			out = append(out, fmt.Sprintf("%s: %q: %s", at, name, text))
		}
		switch {
		case strings.Contains(name, "/") || standardFinalizers.Has(name):
		case strings.Contains(name, "."):
			out = append(out, fmt.Sprintf("%s: %q: prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers", at, name))
		default:
			out = append(out, fmt.Sprintf("%s: %q: prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers", at, name))
		}
	}
	return out
}

// statusStrategy is the rules of /status: nothing but the status changes.
type statusStrategy struct{ strategy }

var _ registry.Strategy = statusStrategy{}

// PrepareForUpdate keeps all but the status.
func (s statusStrategy) PrepareForUpdate(_ context.Context, object, before runtime.Object) {
	obj, old := object.(*Object), before.(*Object)
	status, ok := obj.Content["status"]
	managed, version := obj.ManagedFields, obj.ResourceVersion
	obj.Content = maps.Clone(old.Content)
	if obj.Content == nil {
		obj.Content = map[string]any{}
	}
	old.ObjectMeta.DeepCopyInto(&obj.ObjectMeta)
	obj.ManagedFields, obj.ResourceVersion = managed, version
	if ok {
		obj.Content["status"] = status
	} else {
		delete(obj.Content, "status")
	}
}

// ValidateUpdate checks the status.
func (s statusStrategy) ValidateUpdate(ctx context.Context, object, before runtime.Object) field.ErrorList {
	c, all, old := s.v.compiled(), object.(*Object).UnstructuredContent(), before.(*Object).UnstructuredContent()
	same := common.NewCorrelatedObject(all, old, &model.Structural{Structural: c.structural})
	var errs field.ErrorList
	if status, ok := all["status"]; ok && c.status != nil { // a schema of the status is part of a structural one
		errs = append(errs, validation.ValidateCustomResourceUpdate(field.NewPath("status"), status, old["status"], c.status, validation.WithRatcheting(same.Key("status")))...)
	}
	errs = append(errs, s.validateScale(all, false)...)
	if c.structural == nil {
		return errs
	}
	if len(listtype.ValidateListSetsAndMaps(nil, c.structural, old)) == 0 {
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, c.structural, all)...)
	}
	return append(errs, s.validateRules(ctx, errs, all, old, cel.WithRatcheting(same))...)
}

// Warnings about a status: none.
func (statusStrategy) Warnings(context.Context, runtime.Object, runtime.Object) []string { return nil }
