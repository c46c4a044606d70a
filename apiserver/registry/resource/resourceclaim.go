package resource

import (
	"context"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
	"github.com/periplus/periplus/apiserver/validation"
)

var resourceClaimHalves = kind.Split(func(obj *resourcev1.ResourceClaim) (*resourcev1.ResourceClaimSpec, *resourcev1.ResourceClaimStatus) {
	return &obj.Spec, &obj.Status
})

func resourceClaims(env registry.Env) *registry.Resource {
	objects, may := env.Objects, authorized{env.Authz}
	s := resourceClaimHalves.MainWithoutGeneration()
	s.DefaultFunc = func(claim *resourcev1.ResourceClaim) { defaultRequests(&claim.Spec) }
	create, update := s.PrepareCreate, s.PrepareUpdate
	s.PrepareCreate = func(ctx context.Context, c *resourcev1.ResourceClaim) {
		dropAlphaClaim(&c.Spec, nil)
		create(ctx, c)
	}
	s.PrepareUpdate = func(ctx context.Context, c, old *resourcev1.ResourceClaim) {
		dropAlphaClaim(&c.Spec, &old.Spec)
		update(ctx, c, old)
	}
	s.ValidateCreate = func(_ context.Context, c *resourcev1.ResourceClaim) field.ErrorList {
		return append(adminAccess(objects, c.Namespace, &c.Spec), claimSpec(&c.Spec, field.NewPath("spec"))...)
	}
	s.ValidateChange = func(_ context.Context, c, old *resourcev1.ResourceClaim) field.ErrorList {
		return validation.Frozen(c.Spec, old.Spec, field.NewPath("spec"))
	}
	status := resourceClaimHalves.StatusKeepingMeta()
	status.ValidateChange = func(ctx context.Context, c, old *resourcev1.ResourceClaim) field.ErrorList {
		errs := adminResults(objects, c.Namespace, c.Status.Allocation, old.Status.Allocation)
		errs = append(errs, may.status(ctx, &c.Status, &old.Status)...)
		return append(errs, claimStatus(c, old)...)
	}
	keep := status.PrepareUpdate
	status.PrepareUpdate = func(ctx context.Context, c, old *resourcev1.ResourceClaim) {
		keep(ctx, c, old)
		dropAlphaResults(c.Status.Allocation, old.Status.Allocation)
		dropDeallocated(&c.Status, &old.Status)
	}
	return &registry.Resource{
		GVR:        version.WithResource("resourceclaims"),
		Kind:       "ResourceClaim",
		Singular:   "resourceclaim",
		Namespaced: true,
		New:        kind.Make[resourcev1.ResourceClaim],
		NewList:    kind.Make[resourcev1.ResourceClaimList],
		Also:       olderResourceClaim(),
		Strategy:   s,
		Status:     status,
	}
}
