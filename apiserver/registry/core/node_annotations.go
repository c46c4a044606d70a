package core

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// avoidedPods checks the annotation that names controllers whose pods a node rather
// does not want.
func avoidedPods(annotations map[string]string) (errs field.ErrorList) {
	text := annotations[corev1.PreferAvoidPodsAnnotationKey]
	if text == "" {
		return nil
	}
	at := field.NewPath("metadata", "annotations")
	var avoid corev1.AvoidPods
	if err := json.Unmarshal([]byte(text), &avoid); err != nil {
		return field.ErrorList{field.Invalid(at.Child("AvoidPods"), corev1.PreferAvoidPodsAnnotationKey, err.Error())}
	}
	for i, entry := range avoid.PreferAvoidPods {
		p, owner := at.Child(corev1.PreferAvoidPodsAnnotationKey).Index(i).Child("PodSignature"), entry.PodSignature.PodController
		if owner == nil {
			errs = append(errs, field.Required(p, ""))
		} else if owner.Controller == nil || !*owner.Controller {
			errs = append(errs, field.Invalid(p.Child("PodController", "Controller"), false, "must point to a controller"))
		}
	}
	return errs
}
