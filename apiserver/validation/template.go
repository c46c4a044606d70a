package validation

import (
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// PodTemplate checks the template of a workload. With old, an unchanged
// template is taken as it is.
func PodTemplate(t, old *corev1.PodTemplateSpec, at *field.Path) field.ErrorList {
	if old != nil && Equal(t, old) {
		return nil
	}
	c := newPodSpecCheck(&t.Spec, nil)
	c.add(metav1validation.ValidateLabels(t.Labels, at.Child("labels"))...)
	c.add(apivalidation.ValidateAnnotations(t.Annotations, at.Child("annotations"))...)
	c.podAnnotations(t.Annotations, at.Child("annotations"))
	c.check(at.Child("spec"))
	c.profileAnnotations(t.Annotations, at.Child("spec"))
	if len(t.Spec.EphemeralContainers) > 0 {
		c.forbidden(at.Child("spec", "ephemeralContainers"), "ephemeral containers not allowed in pod template")
	}
	return c.list
}

// ReplicatedTemplate checks the template of pods that run forever and are found
// by a selector; kind is for messages.
func ReplicatedTemplate(t, old *corev1.PodTemplateSpec, selector labels.Selector, kind string, at *field.Path) field.ErrorList {
	var e errorList
	if !selector.Empty() && !selector.Matches(labels.Set(t.Labels)) {
		e.invalid(at.Child("metadata", "labels"), t.Labels, "`selector` does not match template `labels`")
	}
	e.add(PodTemplate(t, old, at)...)
	e.add(RunsForever(t, kind, at)...)
	return e.list
}

// RunsForever checks that the pods of a template do not end.
func RunsForever(t *corev1.PodTemplateSpec, kind string, at *field.Path) field.ErrorList {
	var e errorList
	if t.Spec.RestartPolicy != corev1.RestartPolicyAlways {
		e.add(field.NotSupported(at.Child("spec", "restartPolicy"), t.Spec.RestartPolicy, []corev1.RestartPolicy{corev1.RestartPolicyAlways}))
	}
	if t.Spec.ActiveDeadlineSeconds != nil {
		e.forbidden(at.Child("spec", "activeDeadlineSeconds"), "activeDeadlineSeconds in "+kind+" is not Supported")
	}
	return e.list
}
