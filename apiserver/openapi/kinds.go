package openapi

import (
	"cmp"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/periplus/periplus/apiserver/rest"
)

// Model names of what every group version uses.
var (
	deleteOptionsModel = metav1.DeleteOptions{}.OpenAPIModelName()
	patchModel         = metav1.Patch{}.OpenAPIModelName()
	statusModel        = metav1.Status{}.OpenAPIModelName()
	watchEventModel    = metav1.WatchEvent{}.OpenAPIModelName()
	resourceListModel  = metav1.APIResourceList{}.OpenAPIModelName()
)

// A group is one group version with the resources that it serves.
type group struct {
	gv   schema.GroupVersion
	list []rest.Listing // by resource
}

// path is where the group version is served, without the first slash: "apis/apps/v1".
func (g *group) path() string {
	if g.gv.Group == "" {
		return "api/" + g.gv.Version
	}
	return "apis/" + g.gv.String()
}

// groups sorts what is served by group version and resource.
func groups(listings []rest.Listing) []group {
	slices.SortFunc(listings, func(a, b rest.Listing) int {
		return cmp.Or(cmp.Compare(a.GVR.Group, b.GVR.Group), cmp.Compare(a.GVR.Version, b.GVR.Version), cmp.Compare(a.GVR.Resource, b.GVR.Resource))
	})
	var out []group
	for _, l := range listings {
		if gv := l.GVR.GroupVersion(); len(out) == 0 || out[len(out)-1].gv != gv {
			out = append(out, group{gv: gv})
		}
		last := &out[len(out)-1]
		last.list = append(last.list, l)
	}
	return out
}

// models are the definitions that an operation of a resource refers to.
type models struct{ object, list string }

// constructors returns what makes an object and a list of the served version.
func constructors(l *rest.Listing) (obj, list func() runtime.Object) {
	for i := range l.Resource.Also {
		if also := &l.Resource.Also[i]; also.GV == l.GVR.GroupVersion() && l.GVR != l.Resource.GVR {
			return also.New, also.NewList
		}
	}
	return l.Resource.New, l.Resource.NewList
}

// common defines what every group version refers to.
func (l *library) common() {
	for _, name := range []string{deleteOptionsModel, patchModel, statusModel, watchEventModel, resourceListModel} {
		l.copy(name)
	}
	l.kind(statusModel, schema.GroupVersionKind{Version: "v1", Kind: "Status"})
	l.kind(resourceListModel, schema.GroupVersionKind{Version: "v1", Kind: "APIResourceList"})
	l.everywhere(schema.GroupVersion{Version: "v1"})
}

// everywhere are the kinds that every group version has.
func (l *library) everywhere(gv schema.GroupVersion) {
	l.kind(deleteOptionsModel, gv.WithKind("DeleteOptions"))
	l.kind(watchEventModel, gv.WithKind("WatchEvent"))
}

// addGroup defines all kinds of a group version. custom gives the schemas of
// kinds that have no Go type.
func (l *library) addGroup(g *group, custom func(schema.GroupVersionKind) *spec.Schema) map[string]models {
	l.common()
	l.everywhere(g.gv)
	out := map[string]models{}
	for i := range g.list {
		r := &g.list[i]
		newObject, newList := constructors(r)
		m := models{}
		if newObject != nil {
			m.object = l.object(newObject(), r.GVK, custom)
		}
		if newList != nil {
			gvk := r.GVK
			gvk.Kind = r.Resource.ListKindOf()
			if m.list = l.object(newList(), gvk, nil); m.list == customName(gvk) {
				l.listOf(m.list, m.object, r.GVK)
			}
		}
		if r.Resource.Scale != nil {
			l.external(schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"})
		}
		for _, s := range r.Subresources {
			l.external(s.Kind())
		}
		out[r.GVR.Resource] = m
	}
	return out
}

// object defines the kind of obj.
func (l *library) object(obj runtime.Object, gvk schema.GroupVersionKind, custom func(schema.GroupVersionKind) *spec.Schema) string {
	if _, ok := obj.(runtime.Unstructured); ok {
		name := customName(gvk)
		l.out[name] = l.customSchema(gvk, custom)
		l.kind(name, gvk)
		return name
	}
	name := l.define(reflect.TypeOf(obj).Elem())
	if name != "" {
		l.kind(name, gvk)
	}
	return name
}

// customSchema completes the schema of a kind without a Go type with what all
// kinds have.
func (l *library) customSchema(gvk schema.GroupVersionKind, custom func(schema.GroupVersionKind) *spec.Schema) *spec.Schema {
	s := &spec.Schema{}
	if custom != nil {
		if given := custom(gvk); given != nil {
			*s = *given
			s.Properties = nil
			for name, p := range given.Properties {
				s.SetProperty(name, p)
			}
		}
	}
	s.Type = []string{"object"}
	if s.Properties == nil {
		s.AddExtension(preserveExtension, true)
	}
	docs := metav1.TypeMeta{}.SwaggerDoc()
	for _, name := range []string{"apiVersion", "kind"} {
		s.SetProperty(name, spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"string"}, Description: docs[name]}})
	}
	meta := l.schema(reflect.TypeFor[metav1.ObjectMeta]())
	meta.Description = "Standard object's metadata."
	s.SetProperty("metadata", meta)
	return s
}

// listOf completes the definition of a list of a kind without a Go type.
func (l *library) listOf(name, object string, gvk schema.GroupVersionKind) {
	s := l.out[name]
	s.Description = gvk.Kind + "List is a list of " + gvk.Kind
	delete(s.Extensions, preserveExtension)
	item := spec.Schema{SchemaProps: spec.SchemaProps{Ref: spec.MustCreateRef(definitions + object)}}
	s.SetProperty("items", spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"array"}, Items: &spec.SchemaOrArray{Schema: &item}}})
	meta := l.schema(reflect.TypeFor[metav1.ListMeta]())
	meta.Description = "Standard list metadata."
	s.SetProperty("metadata", meta)
	s.Required = []string{"items"}
}

// external defines a kind of client-go's scheme and returns its model name.
func (l *library) external(gvk schema.GroupVersionKind) string {
	obj, err := scheme.Scheme.New(gvk)
	if err != nil || isOptions(gvk) {
		return ""
	}
	return l.object(obj, gvk, nil)
}

// isOptions reports whether a kind is a set of query parameters.
func isOptions(gvk schema.GroupVersionKind) bool {
	return optionKinds.Has(gvk.Kind)
}

var optionKinds = sets.New("PodExecOptions", "PodAttachOptions", "PodPortForwardOptions", "PodProxyOptions", "NodeProxyOptions", "ServiceProxyOptions", "PodLogOptions")

var _ runtime.Unstructured = (*unstructured.Unstructured)(nil)

// Definitions returns the definitions of kinds and of all that they refer to, by
// model name, with references of the form "#/definitions/NAME", for those who need schemas of
// kinds (field management, expressions). custom gives the schemas of kinds without
// a Go type.
func Definitions(kinds map[schema.GroupVersionKind]runtime.Object, custom func(schema.GroupVersionKind) *spec.Schema) (map[string]*spec.Schema, error) {
	l, err := newLibrary()
	if err != nil {
		return nil, err
	}
	for gvk, obj := range kinds {
		l.object(obj, gvk, custom)
	}
	return l.out, nil
}

// typeOf is the struct type of an object.
func typeOf(obj runtime.Object) reflect.Type { return reflect.TypeOf(obj).Elem() }
