package scheduling

import (
	"context"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/operation"
	"k8s.io/apimachinery/pkg/api/validate"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
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
	s.DefaultFunc = defaultPodGroup
	split := s.PrepareCreate
	s.PrepareCreate = func(ctx context.Context, g *schedulingv1beta1.PodGroup) {
		split(ctx, g)
		dropFromPodGroup(&g.Spec, &schedulingv1beta1.PodGroupSpec{})
	}
	splitUpdate := s.PrepareUpdate
	s.PrepareUpdate = func(ctx context.Context, g, old *schedulingv1beta1.PodGroup) {
		splitUpdate(ctx, g, old)
		dropFromPodGroup(&g.Spec, &old.Spec)
	}
	s.ValidateCreate = func(_ context.Context, g *schedulingv1beta1.PodGroup) field.ErrorList {
		return rules{}.podGroup(field.NewPath("spec"), &g.Spec, nil)
	}
	s.ValidateChange = func(_ context.Context, g, old *schedulingv1beta1.PodGroup) field.ErrorList {
		return updateRules.podGroup(field.NewPath("spec"), &g.Spec, &old.Spec)
	}
	s.Name = apivalidation.NameIsDNSSubdomain
	s.Fixed.NoUnconditionalUpdate = true
	status := podGroupHalves.StatusKeepingMeta()
	status.DefaultFunc = defaultPodGroup
	prepare := status.PrepareUpdate
	status.PrepareUpdate = func(ctx context.Context, g, old *schedulingv1beta1.PodGroup) {
		prepare(ctx, g, old)
		if len(old.Spec.ResourceClaims) == 0 {
			g.Status.ResourceClaimStatuses = nil
		}
	}
	status.ValidateChange = func(_ context.Context, g, old *schedulingv1beta1.PodGroup) field.ErrorList {
		return podGroupStatus(g, old)
	}
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

func defaultPodGroup(g *schedulingv1beta1.PodGroup) {
	if g.Spec.DisruptionMode == nil {
		g.Spec.DisruptionMode = &schedulingv1beta1.DisruptionMode{Single: &schedulingv1beta1.SingleDisruptionMode{}}
	}
}

// dropFromPodGroup drops what belongs to features that are off in this version, unless it
// is there already: topology-aware scheduling, claims of groups, policies of preemption,
// groups of groups.
func dropFromPodGroup(spec, old *schedulingv1beta1.PodGroupSpec) {
	if old.SchedulingConstraints == nil {
		spec.SchedulingConstraints = nil
	}
	if len(old.ResourceClaims) == 0 {
		spec.ResourceClaims = nil
	}
	if old.PreemptionPolicy == nil {
		spec.PreemptionPolicy = nil
	}
	if old.ParentCompositePodGroupName == nil {
		spec.ParentCompositePodGroupName = nil
	}
}

func podGroupStatus(g, old *schedulingv1beta1.PodGroup) field.ErrorList {
	at := field.NewPath("status")
	errs := metav1validation.ValidateConditions(g.Status.Conditions, at.Child("conditions"))
	claims := map[string]bool{}
	for i := range g.Spec.ResourceClaims {
		claims[g.Spec.ResourceClaims[i].Name] = true
	}
	statuses, before, p := g.Status.ResourceClaimStatuses, old.Status.ResourceClaimStatuses, at.Child("resourceClaimStatuses")
	for i := range statuses {
		if name := statuses[i].Name; !claims[name] {
			errs = append(errs, field.Invalid(p.Index(i).Child("name"), name, "must match the name of an entry in `spec.resourceClaims`"))
		}
	}
	if updateRules.same(statuses, before, true) {
		return errs
	}
	ctx, op := context.Background(), operation.Operation(updateRules)
	if e := validate.MaxItems(ctx, op, p, statuses, before, schedulingv1beta1.MaxPodGroupResourceClaims); len(e) > 0 {
		return append(errs, e...)
	}
	named := func(a, b *schedulingv1beta1.PodGroupResourceClaimStatus) bool { return a.Name == b.Name }
	errs = append(errs, validate.ValSliceUnique(ctx, op, p, statuses, before, named)...)
	return append(errs, validate.EachValSliceVal(ctx, op, p, statuses, before, named, validate.SemanticDeepEqual,
		func(_ context.Context, _ operation.Operation, at *field.Path, s, old *schedulingv1beta1.PodGroupResourceClaimStatus) field.ErrorList {
			var name *string
			if old != nil {
				name = old.ResourceClaimName
			}
			return updateRules.longName(at.Child("resourceClaimName"), s.ResourceClaimName, name, old != nil)
		})...)
}
