package core

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

var namespaceHalves = kind.Split(func(obj *corev1.Namespace) (*corev1.NamespaceSpec, *corev1.NamespaceStatus) {
	return &obj.Spec, &obj.Status
})

func namespaces() *registry.Resource {
	s := registry.Funcs[*corev1.Namespace]{
		DefaultFunc: defaultNamespace,
		PrepareCreate: func(_ context.Context, ns *corev1.Namespace) {
			ns.Status = corev1.NamespaceStatus{Phase: corev1.NamespaceActive}
			if !slices.Contains(ns.Spec.Finalizers, corev1.FinalizerKubernetes) {
				ns.Spec.Finalizers = append(ns.Spec.Finalizers, corev1.FinalizerKubernetes)
			}
			defaultNamespace(ns) // a generated name is known by now
		},
		PrepareUpdate: func(_ context.Context, ns, old *corev1.Namespace) {
			ns.Spec.Finalizers = old.Spec.Finalizers // change through /finalize
			ns.Status = old.Status
		},
		ValidateCreate: func(_ context.Context, ns *corev1.Namespace) field.ErrorList {
			at := field.NewPath("spec", "finalizers")
			return namespaceFinalizers(ns.Spec.Finalizers, func(int) *field.Path { return at })
		},
		Name: apivalidation.ValidateNamespaceName,
	}
	status := namespaceHalves.Status()
	status.DefaultFunc = defaultNamespace
	status.ValidateChange = func(_ context.Context, ns, _ *corev1.Namespace) field.ErrorList { return namespacePhase(ns) }
	return &registry.Resource{
		GVR:              version.WithResource("namespaces"),
		Kind:             "Namespace",
		Singular:         "namespace",
		ShortNames:       []string{"ns"},
		New:              kind.Make[corev1.Namespace],
		NewList:          kind.Make[corev1.NamespaceList],
		Strategy:         s,
		Verbs:            []string{"create", "delete", "get", "list", "patch", "update", "watch"},
		Status:           status,
		SelectableFields: []string{"status.phase"},
		Fields: func(obj runtime.Object) fields.Set {
			ns := obj.(*corev1.Namespace)
			return fields.Set{"status.phase": string(ns.Status.Phase)}
		},
	}
}

// defaultNamespace keeps the label by which selectors find a namespace by name.
func defaultNamespace(ns *corev1.Namespace) {
	if ns.Name != "" {
		if ns.Labels == nil {
			ns.Labels = map[string]string{}
		}
		ns.Labels[corev1.LabelMetadataName] = ns.Name
	}
	if ns.Status.Phase == "" {
		ns.Status.Phase = corev1.NamespaceActive
	}
}

// NamespaceFinalize returns the strategy of namespaces/finalize: only
// spec.finalizers is taken over.
func NamespaceFinalize() registry.Strategy {
	return registry.Funcs[*corev1.Namespace]{
		DefaultFunc:   defaultNamespace,
		PrepareUpdate: func(_ context.Context, ns, old *corev1.Namespace) { ns.Status = old.Status },
		ValidateChange: func(_ context.Context, ns, _ *corev1.Namespace) field.ErrorList {
			return namespaceFinalizers(ns.Spec.Finalizers, field.NewPath("spec", "finalizers").Index)
		},
		Name: apivalidation.ValidateNamespaceName,
	}
}

func namespaceFinalizers(finalizers []corev1.FinalizerName, at func(int) *field.Path) field.ErrorList {
	standard := []string{string(corev1.FinalizerKubernetes), metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents}
	var errs field.ErrorList
	for i, f := range finalizers {
		errs = append(errs, apivalidation.ValidateFinalizerName(string(f), at(i))...)
		if !strings.Contains(string(f), "/") && !slices.Contains(standard, string(f)) {
			errs = append(errs, field.Invalid(at(i), string(f), "name is neither a standard finalizer name nor is it fully qualified"))
		}
	}
	return errs
}

func namespacePhase(ns *corev1.Namespace) field.ErrorList {
	at := field.NewPath("status", "Phase")
	switch {
	case ns.DeletionTimestamp.IsZero() && ns.Status.Phase != corev1.NamespaceActive:
		return field.ErrorList{field.Invalid(at, ns.Status.Phase, "may only be 'Active' if `deletionTimestamp` is empty")}
	case !ns.DeletionTimestamp.IsZero() && ns.Status.Phase != corev1.NamespaceTerminating:
		return field.ErrorList{field.Invalid(at, ns.Status.Phase, "may only be 'Terminating' if `deletionTimestamp` is not empty")}
	}
	return nil
}
