package crd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiversion "k8s.io/apimachinery/pkg/version"

	"github.com/periplus/periplus/apiserver/admission/webhook"
	"github.com/periplus/periplus/apiserver/registry"
)

// resource makes what is served of a definition. Its names are the accepted ones;
// ending reports whether the definition is about to be deleted.
func resource(crd *apiextensionsv1.CustomResourceDefinition, services webhook.Services, ending func() bool) (*registry.Resource, []*version, error) {
	names := &crd.Status.AcceptedNames
	var stored *version
	var versions []*version
	for i := range crd.Spec.Versions {
		spec := &crd.Spec.Versions[i]
		if !spec.Served && !spec.Storage {
			continue
		}
		v := newVersion(crd, spec)
		versions = append(versions, v)
		if spec.Storage {
			stored = v
		}
	}
	if stored == nil {
		return nil, nil, fmt.Errorf("no version of %s is stored", crd.Name)
	}
	own := stored.view(crd)
	r := &registry.Resource{
		GVR:  schema.GroupVersionResource{Group: crd.Spec.Group, Version: stored.spec.Name, Resource: names.Plural},
		Kind: names.Kind, ListKind: names.ListKind, Singular: names.Singular, ShortNames: names.ShortNames, Categories: names.Categories,
		Namespaced: stored.namespaced,
		New:        func() runtime.Object { return stored.new() }, NewList: func() runtime.Object { return stored.new() },
		StoragePrefix: crd.Spec.Group + "/" + names.Plural, StoredAsJSON: true, KeepItemType: true, JSONOnly: true,
		Strategy: own.Strategy, Status: own.Status, Scale: own.Scale, Table: own.Table,
		SelectableFields: own.SelectableFields, Fields: own.Fields, Deprecated: own.Deprecated,
		Unserved: !stored.spec.Served,
	}
	if t := newTranslator(crd, stored, stored, services); t != nil {
		r.Self = &registry.Served{
			GV: stored.gvk.GroupVersion(), New: r.New, NewList: r.NewList,
			From: t.from, To: t.to, Prepare: t.prepare, Own: t.view(crd),
		}
		known := map[string]*version{}
		for i := range crd.Spec.Versions {
			v := newVersion(crd, &crd.Spec.Versions[i])
			known[v.gvk.GroupVersion().String()] = v
		}
		for _, v := range versions {
			known[v.gvk.GroupVersion().String()] = v
		}
		r.Read = func(data []byte) (runtime.Object, error) { return readStored(data, known, stored) }
	}
	for _, v := range versions {
		if v == stored {
			continue
		}
		also := registry.Served{
			GV:  v.gvk.GroupVersion(),
			New: func() runtime.Object { return v.new() }, NewList: func() runtime.Object { return v.new() },
		}
		if t := newTranslator(crd, stored, v, services); t != nil {
			also.From, also.To, also.Prepare, also.Own = t.from, t.to, t.prepare, t.view(crd)
			r.Also = append(r.Also, also)
			continue
		}
		c := converter{stored: stored, served: v, same: equality.Semantic.DeepEqual(stored.spec.Schema, v.spec.Schema)}
		also.From, also.To, also.Own = c.from, c.to, v.view(crd)
		r.Also = append(r.Also, also)
	}
	gr := r.GVR.GroupResource()
	r.Hooks.BeginCreate = func(_ context.Context, obj runtime.Object, _ bool) (func(bool), error) {
		if ending() {
			return nil, apierrors.NewForbidden(gr, obj.(*Object).Name, errors.New("create not allowed while custom resource definition is terminating"))
		}
		return func(bool) {}, nil
	}
	return r, versions, nil
}

func (v *version) view(crd *apiextensionsv1.CustomResourceDefinition) *registry.View {
	s := strategy{v}
	out := &registry.View{Strategy: s, Scale: v.scale(), Table: v.table(), Deprecated: deprecation(crd, v.spec)}
	if s.hasStatus() {
		out.Status = statusStrategy{s}
	}
	out.SelectableFields, out.Fields = v.selectable()
	return out
}

// deprecation is the warning that goes with a version, "" for none.
func deprecation(crd *apiextensionsv1.CustomResourceDefinition, v *apiextensionsv1.CustomResourceDefinitionVersion) string {
	if !v.Deprecated {
		return ""
	}
	if v.DeprecationWarning != nil {
		return *v.DeprecationWarning
	}
	out := fmt.Sprintf("%s/%s %s is deprecated", crd.Spec.Group, v.Name, crd.Spec.Names.Kind)
	var better []string
	for _, other := range crd.Spec.Versions {
		if other.Served && !other.Deprecated && apiversion.CompareKubeAwareVersionStrings(v.Name, other.Name) < 0 {
			better = append(better, other.Name)
		}
	}
	if len(better) == 0 {
		return out
	}
	slices.SortFunc(better, func(a, b string) int { return -apiversion.CompareKubeAwareVersionStrings(a, b) })
	return out + fmt.Sprintf("; use %s/%s %s", crd.Spec.Group, better[0], crd.Spec.Names.Kind)
}

// A converter turns objects of one version into another by rewriting apiVersion
// (conversion strategy None), and drops what the other schema does not know.
type converter struct {
	stored, served *version
	same           bool // both have the same schema
}

func (c converter) from(obj runtime.Object) (runtime.Object, error) { return c.convert(obj, c.served) }
func (c converter) to(obj runtime.Object) (runtime.Object, error)   { return c.convert(obj, c.stored) }

func (c converter) convert(object runtime.Object, to *version) (runtime.Object, error) {
	obj := object.(*Object)
	out := obj.shallow()
	out.version, out.APIVersion = to, to.gvk.GroupVersion().String()
	if c.same || obj.Content == nil {
		return out, nil
	}
	out.Content = runtime.DeepCopyJSON(obj.Content)
	return out, to.prune(out.Content)
}
