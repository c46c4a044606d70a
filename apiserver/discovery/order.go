package discovery

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/periplus/periplus/apiserver/rest"
)

// An Order is where a group version comes in discovery: higher numbers first. Group is
// the highest of those of a group's versions.
type Order struct{ Group, Version int32 }

// A Table says in which order groups come, and which group versions others serve.
// It does not change.
type Table struct {
	// Order of group versions; those that are not in it have Priority's.
	Order map[schema.GroupVersion]Order
	// Remote are the group versions of extension API servers. They replace local ones.
	Remote map[schema.GroupVersion]Remote
}

// A Remote is a group version that an extension API server serves.
type Remote struct {
	Resources []metav1.APIResource
	// Stale says that the server could not be asked.
	Stale bool
}

func (t *Table) order(gv schema.GroupVersion) Order {
	if t != nil {
		if o, ok := t.Order[gv]; ok {
			return o
		}
	}
	return Priority(gv)
}

// groupPriorities and versionPriorities are upstream's of built-in groups.
var groupPriorities = map[string]int32{
	"apiregistration.k8s.io": 20000, "": 18000, "apps": 17800, "events.k8s.io": 17750, "authentication.k8s.io": 17700,
	"authorization.k8s.io": 17600, "autoscaling": 17500, "batch": 17400, "certificates.k8s.io": 17300, "networking.k8s.io": 17200,
	"policy": 17100, "rbac.authorization.k8s.io": 17000, "storage.k8s.io": 16800, "apiextensions.k8s.io": 16700,
	"admissionregistration.k8s.io": 16700, "scheduling.k8s.io": 16600, "coordination.k8s.io": 16500, "node.k8s.io": 16300,
	"discovery.k8s.io": 16200, "flowcontrol.apiserver.k8s.io": 16100, "internal.apiserver.k8s.io": 16000,
	"resource.k8s.io": 15900, "storagemigration.k8s.io": 15800, "metrics.k8s.io": 100,
}

var versionPriorities = map[schema.GroupVersion]int32{
	{Version: "v1"}:                                             1,
	{Group: "autoscaling", Version: "v2"}:                       30,
	{Group: "flowcontrol.apiserver.k8s.io", Version: "v1"}:      21,
	{Group: "resource.k8s.io", Version: "v1"}:                   20,
	{Group: "resource.k8s.io", Version: "v1beta2"}:              15,
	{Group: "coordination.k8s.io", Version: "v1beta1"}:          13,
	{Group: "admissionregistration.k8s.io", Version: "v1beta1"}: 12,
	{Group: "discovery.k8s.io", Version: "v1beta1"}:             12,
	{Group: "events.k8s.io", Version: "v1beta1"}:                5,
	{Group: "metrics.k8s.io", Version: "v1beta1"}:               100,
}

// Priority is the place of a group version that the server itself serves: upstream's of
// built-in groups; 1000 and 100 of custom resources.
func Priority(gv schema.GroupVersion) Order {
	group, ok := groupPriorities[gv.Group]
	if !ok {
		return Order{1000, 100}
	}
	if v, ok := versionPriorities[gv]; ok {
		return Order{group, v}
	}
	switch {
	case !strings.Contains(gv.Version, "alpha") && !strings.Contains(gv.Version, "beta"):
		return Order{group, 15}
	case strings.Contains(gv.Version, "alpha"):
		return Order{group, 1}
	}
	return Order{group, 9}
}

// A groupVersion is one line of discovery: local listings or a remote.
type groupVersion struct {
	listings []rest.Listing
	remote   *Remote
}

func (v *groupVersion) resources() []metav1.APIResource {
	if v.remote != nil {
		return v.remote.Resources
	}
	return resources(v.listings)
}

// A groupMap holds what is served, by group and version.
type groupMap map[string]map[string]*groupVersion

func (m groupMap) at(gv schema.GroupVersion) *groupVersion {
	g := m[gv.Group]
	if g == nil {
		g = map[string]*groupVersion{}
		m[gv.Group] = g
	}
	v := g[gv.Version]
	if v == nil {
		v = &groupVersion{}
		g[gv.Version] = v
	}
	return v
}

// groups sorts what is served by group.
func (h *Handler) groups() (names []string, all groupMap, table *Table) {
	all = groupMap{}
	if h.Table != nil {
		table = h.Table()
	}
	if table != nil {
		for gv, r := range table.Remote {
			all.at(gv).remote = &r
		}
	}
	for _, l := range h.Resources() {
		v := all.at(l.GVR.GroupVersion())
		v.listings = append(v.listings, l)
	}
	rank := map[string]int32{}
	for name, g := range all {
		names = append(names, name)
		for v := range g {
			rank[name] = max(rank[name], table.order(schema.GroupVersion{Group: name, Version: v}).Group)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(rank[b], rank[a]), cmp.Compare(a, b)) })
	return names, all, table
}

// versions sorts a group's versions: the preferred one first.
func (t *Table) versions(group string, g map[string]*groupVersion) []string {
	var out []string
	for v := range g {
		out = append(out, v)
	}
	rank := func(v string) int32 { return t.order(schema.GroupVersion{Group: group, Version: v}).Version }
	slices.SortFunc(out, func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(b), rank(a)), -version.CompareKubeAwareVersionStrings(a, b))
	})
	return out
}
