package openapi

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/scheme"
)

// A parameter is one of a path or a query.
type parameter struct {
	name, in, kind, description string
	required                    bool
}

var pretty = parameter{name: "pretty", in: "query", kind: "string",
	description: "If 'true', the output is pretty printed. Defaults to 'false', unless the user agent is a browser or a command-line HTTP tool (curl, wget)."}

// params are the parameters that all operations of a path have.
func (d *describer) params(one bool) []parameter {
	var out []parameter
	if one {
		out = append(out, parameter{name: "name", in: "path", kind: "string", required: true, description: "name of the " + d.listing.GVK.Kind})
	}
	if d.listing.Resource.Namespaced {
		out = append(out, parameter{name: "namespace", in: "path", kind: "string", required: true, description: "object name and auth scope, such as for teams and projects"})
	}
	return append(out, pretty)
}

// queries are the query parameters of the verbs.
type queries struct{ list, create, update, patch, delete []parameter }

func newQueries() *queries {
	return &queries{
		list:   queryOf(reflect.TypeFor[metav1.ListOptions]()),
		create: queryOf(reflect.TypeFor[metav1.CreateOptions]()),
		update: queryOf(reflect.TypeFor[metav1.UpdateOptions]()),
		patch:  queryOf(reflect.TypeFor[metav1.PatchOptions]()),
		delete: queryOf(reflect.TypeFor[metav1.DeleteOptions]()),
	}
}

// notServed are options that this server does not know.
var notServed = sets.New("shardSelector", "ignoreStoreReadErrorWithClusterBreakingPotential")

// queryOf makes parameters of the fields of an options type.
func queryOf(t reflect.Type) []parameter {
	docs := docsOf(t)
	var out []parameter
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || f.Anonymous || notServed.Has(name) {
			continue
		}
		kind := ""
		switch ft := f.Type; {
		case ft.Kind() == reflect.Pointer && ft.Elem() == reflect.TypeFor[metav1.Time]():
			kind = "string"
		case ft.Kind() == reflect.Pointer:
			kind = jsonKind(ft.Elem().Kind())
		case ft.Kind() == reflect.Slice:
			kind = jsonKind(ft.Elem().Kind())
		default:
			kind = jsonKind(ft.Kind())
		}
		if kind != "" {
			out = append(out, parameter{name: name, in: "query", kind: kind, description: docs[name]})
		}
	}
	slices.SortFunc(out, func(a, b parameter) int { return cmp.Compare(a.name, b.name) })
	return out
}

func jsonKind(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "integer"
	}
	return ""
}

// optionsQuery makes parameters of an options kind of the core group.
func optionsQuery(kind string) []parameter {
	obj, err := scheme.Scheme.New(corev1.SchemeGroupVersion.WithKind(kind))
	if err != nil {
		return nil
	}
	return queryOf(reflect.TypeOf(obj).Elem())
}

// merged joins lists of parameters, sorted; the first of a name counts.
func merged(lists ...[]parameter) []parameter {
	var out []parameter
	for _, p := range slices.Concat(lists...) {
		if !slices.ContainsFunc(out, func(o parameter) bool { return o.name == p.name }) {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b parameter) int { return cmp.Compare(a.name, b.name) })
	return out
}

// modelOf returns the model name of a kind of client-go's scheme.
func modelOf(gvk schema.GroupVersionKind) string {
	obj, err := scheme.Scheme.New(gvk)
	if err != nil {
		return ""
	}
	return modelName(reflect.TypeOf(obj).Elem())
}

// answersWithObject are the resources whose deletion answers with the object.
var answersWithObject = sets.New("csidrivers", "csinodes", "deviceclasses", "persistentvolumeclaims", "persistentvolumes",
	"pods", "podtemplates", "resourceclaims", "resourceclaimtemplates", "resourcequotas", "resourceslices", "serviceaccounts", "services",
	"storageclasses", "volumeattachments", "volumeattributesclasses")
