package apiserver

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	apiversion "k8s.io/apimachinery/pkg/version"

	"github.com/periplus/periplus/apiserver/registry"
)

// runtimeConfig says which versions are served, as --runtime-config of upstream.
// Keys, from the widest to the narrowest:
//
//	api/all                     every version
//	api/ga, api/beta, api/alpha every version of that maturity
//	apps/v1, v1                 one group version ("v1": the core group)
//	apps/v1/deployments         one resource of it
//
// By default GA versions are served and no others.
type runtimeConfig map[string]bool

func (c runtimeConfig) validate() error {
	for _, key := range slices.Sorted(maps.Keys(c)) {
		if parts := strings.Split(key, "/"); len(parts) > 3 || slices.Contains(parts, "") {
			return fmt.Errorf("apiserver: config: RuntimeConfig has the key %q, want api/all, api/ga, api/beta, api/alpha, group/version or group/version/resource", key)
		}
	}
	return nil
}

// serves reports whether a version of a resource is served.
func (c runtimeConfig) serves(gvr schema.GroupVersionResource) bool {
	on := maturity(gvr.Version) == "ga"
	gv := gvr.GroupVersion().String()
	for _, key := range []string{"api/all", "api/" + maturity(gvr.Version), "api/" + gv, gv, gv + "/" + gvr.Resource} {
		if key == "api/"+gv && gvr.Group != "" {
			continue
		}
		if v, ok := c[key]; ok {
			on = v
		}
	}
	return on
}

func maturity(version string) string {
	switch {
	case strings.Contains(version, "alpha"):
		return "alpha"
	case strings.Contains(version, "beta"):
		return "beta"
	}
	return "ga"
}

// narrow leaves of a resource the versions that are served, and reports whether
// there are any.
func (c runtimeConfig) narrow(r *registry.Resource) bool {
	r.Unserved = r.Unserved || !c.serves(r.GVR)
	r.Also = slices.DeleteFunc(slices.Clone(r.Also), func(s registry.Served) bool { return !c.serves(s.GV.WithResource(r.GVR.Resource)) })
	slices.SortStableFunc(r.Also, func(a, b registry.Served) int {
		return cmp.Or(cmp.Compare(a.GV.Group, b.GV.Group), -apiversion.CompareKubeAwareVersionStrings(a.GV.Version, b.GV.Version))
	})
	return !r.Unserved || len(r.Also) > 0
}
