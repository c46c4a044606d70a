package scheduling

import (
	"context"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

var podGroupHalves = kind.Split(func(obj *schedulingv1beta1.PodGroup) (*schedulingv1beta1.PodGroupSpec, *schedulingv1beta1.PodGroupStatus) {
	return &obj.Spec, &obj.Status
})

// podGroups are only served as beta (KEP-4671).
func podGroups() *registry.Resource {
	s := podGroupHalves.MainWithoutGeneration()
	s.Fixed.NoUnconditionalUpdate = true
	status := podGroupHalves.StatusKeepingMeta()
	status.ValidateChange = func(_ context.Context, g, _ *schedulingv1beta1.PodGroup) field.ErrorList { return podGroupStatus(g) }
	return &registry.Resource{
		GVR:        schedulingv1beta1.SchemeGroupVersion.WithResource("podgroups"),
		Kind:       "PodGroup",
		Singular:   "podgroup",
		Namespaced: true,
		New:        kind.Make[schedulingv1beta1.PodGroup],
		NewList:    kind.Make[schedulingv1beta1.PodGroupList],
		Strategy:   s,
		Status:     status,
	}
}

func podGroupStatus(g *schedulingv1beta1.PodGroup) field.ErrorList {
	at := field.NewPath("status")
	errs := metav1validation.ValidateConditions(g.Status.Conditions, at.Child("conditions"))
	claims := map[string]bool{}
	for i := range g.Spec.ResourceClaims {
		claims[g.Spec.ResourceClaims[i].Name] = true
	}
	for i := range g.Status.ResourceClaimStatuses {
		if name := g.Status.ResourceClaimStatuses[i].Name; !claims[name] {
			errs = append(errs, field.Invalid(at.Child("resourceClaimStatuses").Index(i).Child("name"), name, "must match the name of an entry in `spec.resourceClaims`"))
		}
	}
	return errs
}
