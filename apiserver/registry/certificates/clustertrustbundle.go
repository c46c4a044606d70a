package certificates

import (
	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func clusterTrustBundles() *registry.Resource {
	s := registry.Funcs[*certificatesv1.ClusterTrustBundle]{}
	s.Name = clusterTrustBundleName
	s.Fixed.NoUnconditionalUpdate = true
	return &registry.Resource{
		GVR:      version.WithResource("clustertrustbundles"),
		Kind:     "ClusterTrustBundle",
		Singular: "clustertrustbundle",
		New:      kind.Make[certificatesv1.ClusterTrustBundle],
		NewList:  kind.Make[certificatesv1.ClusterTrustBundleList],
		Strategy: s,
	}
}
