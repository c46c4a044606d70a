package validation

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var metadata = field.NewPath("metadata")

// ObjectMeta checks the metadata of a new object of a built-in kind; name checks its name.
func ObjectMeta(meta *metav1.ObjectMeta, namespaced bool, name apivalidation.ValidateNameFunc) field.ErrorList {
	return append(apivalidation.ValidateObjectMeta(meta, namespaced, name, metadata), finalizers(meta.Finalizers)...)
}

// ObjectMetaUpdate checks changed metadata of an object of a built-in kind.
func ObjectMetaUpdate(meta, old *metav1.ObjectMeta, namespaced bool) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(meta, namespaced, segment, metadata)
	errs = append(errs, apivalidation.ValidateObjectMetaUpdate(meta, old, metadata)...)
	return append(errs, finalizers(meta.Finalizers)...)
}

// AnyName accepts names that fit into a path: upstream's rule for the kinds of which
// it checks no more (events, disruption budgets, certificate signing requests).
func AnyName(name string, prefix bool) []string { return segment(name, prefix) }

// segment accepts names that fit into a path: what a name has to look like was
// checked when the object was made.
func segment(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}

// finalizers refuses short names that mean nothing.
func finalizers(list []string) (errs field.ErrorList) {
	for i, name := range list {
		if strings.Contains(name, "/") {
			continue
		}
		switch name {
		case string(corev1.FinalizerKubernetes), metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents:
		default:
			errs = append(errs, field.Invalid(metadata.Child("finalizers").Index(i), name, "name is neither a standard finalizer name nor is it fully qualified"))
		}
	}
	return errs
}

// LabelSelector checks a selector. Values that no label can have are taken if old,
// the selector before the change, was not valid either; nil is for what is new.
func LabelSelector(s, old *metav1.LabelSelector, at *field.Path) field.ErrorList {
	var o metav1validation.LabelSelectorValidationOptions
	if old != nil && len(metav1validation.ValidateLabelSelector(old, o, nil)) > 0 {
		o.AllowInvalidLabelValueInSelector = true
	}
	return metav1validation.ValidateLabelSelector(s, o, at)
}

// PathSegment checks a name that may hold anything that fits into a path.
func PathSegment(value string, at *field.Path) field.ErrorList {
	return messages(content.IsPathSegmentName(value), value, at)
}

// ObjectName checks a value that is the name of an object.
func ObjectName(value string, rule apivalidation.ValidateNameFunc, at *field.Path) field.ErrorList {
	return messages(rule(value, false), value, at)
}

// Frozen refuses a change as upstream's generated rules do, which do not tell the value.
func Frozen(value, old any, at *field.Path) field.ErrorList {
	if Equal(value, old) {
		return nil
	}
	return field.ErrorList{field.Invalid(at, nil, ImmutableError)}
}

// Overhead checks what a pod needs besides its containers.
func Overhead(list corev1.ResourceList, at *field.Path) field.ErrorList {
	return requirements(&corev1.ResourceRequirements{Limits: list}, ContainerResourceName, nil, at)
}

// Tolerations checks a list of tolerations.
func Tolerations(list []corev1.Toleration, at *field.Path) field.ErrorList {
	var e errorList
	tolerations(&e, list, at)
	return e.list
}

// NodeSelector checks a selector of nodes.
func NodeSelector(s *corev1.NodeSelector, at *field.Path) field.ErrorList {
	var e errorList
	nodeSelector(&e, s, at)
	return e.list
}

// IsExtendedResource reports a name that a device plug-in may give a resource.
func IsExtendedResource(name string) bool { return isExtended(corev1.ResourceName(name)) }
