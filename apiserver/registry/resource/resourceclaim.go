package resource

import (
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

var resourceClaimHalves = kind.Split(func(obj *resourcev1.ResourceClaim) (*resourcev1.ResourceClaimSpec, *resourcev1.ResourceClaimStatus) {
	return &obj.Spec, &obj.Status
})

func resourceClaims() *registry.Resource {
	s := resourceClaimHalves.MainWithoutGeneration()
	s.DefaultFunc = func(claim *resourcev1.ResourceClaim) { defaultRequests(&claim.Spec) }
	return &registry.Resource{
		GVR:        version.WithResource("resourceclaims"),
		Kind:       "ResourceClaim",
		Singular:   "resourceclaim",
		Namespaced: true,
		New:        kind.Make[resourcev1.ResourceClaim],
		NewList:    kind.Make[resourcev1.ResourceClaimList],
		Also:       olderResourceClaim(),
		Strategy:   s,
		Status:     resourceClaimHalves.StatusKeepingMeta(),
	}
}
