package resourcequota

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/periplus/periplus/quota"
)

// kinds are what a configuration may call itself.
var kinds = []metav1.TypeMeta{
	{APIVersion: "apiserver.config.k8s.io/v1", Kind: "ResourceQuotaConfiguration"},
	{APIVersion: "resourcequota.admission.k8s.io/v1beta1", Kind: "Configuration"},
}

// A Configuration names what may be taken only where a quota allows it
// (apiserver.config.k8s.io/v1 ResourceQuotaConfiguration).
type Configuration struct {
	metav1.TypeMeta  `json:",inline"`
	LimitedResources []LimitedResource `json:"limitedResources"`
}

// A LimitedResource is a kind of objects that need a quota which covers what they take,
// if its name contains one of MatchContains, and each of MatchScopes that they are in.
type LimitedResource struct {
	APIGroup      string                                     `json:"apiGroup,omitempty"`
	Resource      string                                     `json:"resource"`
	MatchContains []string                                   `json:"matchContains,omitempty"`
	MatchScopes   []corev1.ScopedResourceSelectorRequirement `json:"matchScopes,omitempty"`
}

// limits are the limited resources by kind.
type limits map[schema.GroupResource][]LimitedResource

// load reads a configuration; there may be none.
func load(data []byte) (limits, error) {
	if len(data) == 0 {
		return nil, nil
	}
	c := &Configuration{}
	if err := yaml.UnmarshalStrict(data, c); err != nil {
		return nil, err
	}
	if !slices.Contains(kinds, c.TypeMeta) {
		return nil, fmt.Errorf("it is a %s of %q, want a %s of %s", c.Kind, c.APIVersion, kinds[0].Kind, kinds[0].APIVersion)
	}
	out := limits{}
	for i, l := range c.LimitedResources {
		if l.Resource == "" {
			return nil, field.Required(field.NewPath("limitedResources").Index(i).Child("resource"), "")
		}
		gr := schema.GroupResource{Group: l.APIGroup, Resource: l.Resource}
		out[gr] = append(out[gr], l)
	}
	return out, nil
}

// names are those of what is taken that need a quota.
func (l limits) names(gr schema.GroupResource, taken corev1.ResourceList) (out []corev1.ResourceName) {
	for name := range taken {
		needs := func(part string) bool { return strings.Contains(string(name), part) }
		if slices.ContainsFunc(l[gr], func(r LimitedResource) bool { return slices.ContainsFunc(r.MatchContains, needs) }) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// scopes are those that an object is in and that need a quota.
func (l limits) scopes(gr schema.GroupResource, obj runtime.Object) (out []corev1.ScopedResourceSelectorRequirement) {
	for _, r := range l[gr] {
		for _, s := range r.MatchScopes {
			if quota.Selects(s, obj) {
				out = append(out, s)
			}
		}
	}
	return out
}
