package rest

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/periplus/periplus/apiserver/ownership"
)

// A reset is what requests to an endpoint cannot change: fields that its strategy drops
// or keeps, so that nobody comes to own them there. Either fields are listed, or what
// alone can be changed.
type reset struct{ fields, only [][]string }

var (
	specField     = []string{"spec"}
	statusField   = []string{"status"}
	metadataField = []string{"metadata"}
)

// ownResets are the endpoints that differ from the rule (see resetOf), by resource and
// subresource.
var ownResets = map[string]reset{
	"certificatesigningrequests.certificates.k8s.io":          {fields: [][]string{specField, statusField}},
	"certificatesigningrequests.certificates.k8s.io/status":   {fields: [][]string{specField, {"status", "conditions"}}},
	"certificatesigningrequests.certificates.k8s.io/approval": {fields: [][]string{specField, {"status", "certificate"}}},
	"deployments.apps/status":                                 {fields: [][]string{specField, {"metadata", "labels"}}},
	"namespaces/finalize":                                     {fields: [][]string{statusField}},
	"pods/status":                                             {fields: [][]string{specField, {"metadata", "deletionTimestamp"}, {"metadata", "ownerReferences"}}},
	"pods/ephemeralcontainers":                                {only: [][]string{{"spec", "ephemeralContainers"}}},
	"pods/resize": {only: [][]string{
		{"spec", "containers", "resources"}, {"spec", "containers", "resizePolicy"},
		{"spec", "initContainers", "resources"}, {"spec", "initContainers", "resizePolicy"},
	}},
}

// metaByStatus are the resources whose metadata may change with their status.
var metaByStatus = map[schema.GroupResource]bool{
	{Resource: "namespaces"}: true, {Resource: "nodes"}: true, {Resource: "persistentvolumes"}: true, {Resource: "persistentvolumeclaims"}: true,
	{Resource: "replicationcontrollers"}: true, {Resource: "resourcequotas"}: true, {Resource: "services"}: true,
	{Group: "apps", Resource: "daemonsets"}: true, {Group: "apps", Resource: "replicasets"}: true, {Group: "apps", Resource: "statefulsets"}: true,
	{Group: "autoscaling", Resource: "horizontalpodautoscalers"}: true, {Group: "batch", Resource: "cronjobs"}: true, {Group: "batch", Resource: "jobs"}: true,
	{Group: "networking.k8s.io", Resource: "ingresses"}: true, {Group: "policy", Resource: "poddisruptionbudgets"}: true,
	{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}: true,
}

// resetOf returns the reset of an endpoint: the status for the main resource, the rest for /status.
func (e *endpoint) resetOf(sub string) reset {
	name := e.gvr.GroupResource().String()
	if sub != "" {
		name += "/" + sub
	}
	if own, ok := ownResets[name]; ok {
		return own
	}
	switch {
	case sub == "" && e.view.Status != nil:
		return reset{fields: [][]string{statusField}}
	case sub == "status" && metaByStatus[e.gvr.GroupResource()]:
		return reset{fields: [][]string{specField}}
	case sub == "status":
		return reset{fields: [][]string{specField, metadataField}}
	}
	return reset{}
}

// filters keeps the filters of an endpoint, by subresource.
type filters struct {
	mu    sync.Mutex
	bySub map[string]*ownership.Filter
}

// filter returns the reset of an endpoint for comparisons.
func (e *endpoint) filter(sub string) *ownership.Filter {
	e.filters.mu.Lock()
	defer e.filters.mu.Unlock()
	if f, ok := e.filters.bySub[sub]; ok {
		return f
	}
	var f *ownership.Filter
	switch r := e.resetOf(sub); {
	case len(r.only) > 0:
		f = ownership.Only(r.only...)
	case len(r.fields) > 0:
		f = ownership.Except(r.fields...)
	}
	if e.filters.bySub == nil {
		e.filters.bySub = map[string]*ownership.Filter{}
	}
	e.filters.bySub[sub] = f
	return f
}

// resets returns the resets of all versions for the library.
func (e *endpoint) resets(sub string) map[fieldpath.APIVersion]fieldpath.Filter {
	out := map[fieldpath.APIVersion]fieldpath.Filter{}
	for _, gv := range (forms{e.objects}).Versions() {
		of := e.objects.endpoint(gv)
		if of == nil {
			continue
		}
		if f := of.resetOf(sub).library(); f != nil {
			out[fieldpath.APIVersion(gv.String())] = f
		}
	}
	return out
}

// wildcards are the lists on the way of a path that says what alone can change.
var wildcards = map[string]bool{"containers": true, "initContainers": true}

func (r reset) library() fieldpath.Filter {
	var matchers []*fieldpath.SetMatcher
	for _, path := range r.only {
		var parts []any
		for i, name := range path {
			if parts = append(parts, name); wildcards[name] && i < len(path)-1 {
				parts = append(parts, fieldpath.MatchAnyPathElement())
			}
		}
		matchers = append(matchers, fieldpath.MakePrefixMatcherOrDie(parts...))
	}
	if matchers != nil {
		return fieldpath.NewIncludeMatcherFilter(matchers...)
	}
	if r.fields == nil {
		return nil
	}
	set := fieldpath.NewSet()
	for _, path := range r.fields {
		var parts []any
		for _, name := range path {
			parts = append(parts, name)
		}
		set.Insert(fieldpath.MakePathOrDie(parts...))
	}
	return fieldpath.NewExcludeSetFilter(set)
}
