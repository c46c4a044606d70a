package rest

import (
	"fmt"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// Field management begins with the first apply of an object: what was there before
// is owned by the manager before-first-apply. Objects that nobody applies carry no
// managed fields and cost nothing; the types of a kind are read when the first
// object of it is applied.
//
//	apply:          live + patch ── merge ──► object and owners
//	other writes:   live, new    ── compare ──► owners, if the object has any

// fieldManagers makes and keeps the field managers of one endpoint.
type fieldManagers struct {
	mu    sync.Mutex
	bySub map[string]*managedfields.FieldManager
}

// fields returns the field manager of a subresource, "" for the main resource.
func (e *endpoint) fields(sub string) (*managedfields.FieldManager, error) {
	e.managers.mu.Lock()
	defer e.managers.mu.Unlock()
	if m := e.managers.bySub[sub]; m != nil {
		return m, nil
	}
	types, err := e.objects.types()
	if err != nil {
		return nil, err
	}
	f := form{e}
	m, err := managedfields.NewDefaultCRDFieldManager(typesOf{types}, f, f, f, e.gvk, e.gvk.GroupVersion(), sub, fieldpath.NewExcludeFilterSetMap(e.resets(sub)))
	if err != nil {
		return nil, err
	}
	if e.managers.bySub == nil {
		e.managers.bySub = map[string]*managedfields.FieldManager{}
	}
	e.managers.bySub[sub] = m
	return m, nil
}

// resets are the fields that a request to the endpoint cannot change.
func (e *endpoint) resets(sub string) map[fieldpath.APIVersion]*fieldpath.Set {
	out := fieldpath.NewSet()
	switch {
	case sub == "" && e.view.Status != nil:
		out.Insert(fieldpath.MakePathOrDie("status"))
	case sub == "status":
		out.Insert(fieldpath.MakePathOrDie("spec"))
		if e.objects.Resource.JSONOnly {
			out.Insert(fieldpath.MakePathOrDie("metadata"))
		}
	default:
		return nil
	}
	return map[fieldpath.APIVersion]*fieldpath.Set{fieldpath.APIVersion(e.gvk.GroupVersion().String()): out}
}

// typesOf hides from the library that custom resources are a type of their own.
type typesOf struct{ managedfields.TypeConverter }

func (t typesOf) ObjectToTyped(obj runtime.Object, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	if u, ok := obj.(runtime.Unstructured); ok {
		obj = &unstructured.Unstructured{Object: u.UnstructuredContent()}
	}
	return t.TypeConverter.ObjectToTyped(obj, options...)
}

// A form turns objects into the versions of a resource, for the field manager of one of them.
type form struct{ e *endpoint }

var (
	_ runtime.ObjectConvertor = form{}
	_ runtime.ObjectCreater   = form{}
	_ runtime.ObjectDefaulter = form{}
)

// Default does nothing: objects are defaulted on their way to the store.
func (form) Default(runtime.Object) {}

// New returns an empty object of the endpoint's version.
func (f form) New(schema.GroupVersionKind) (runtime.Object, error) {
	out := f.e.new()
	out.GetObjectKind().SetGroupVersionKind(f.e.gvk)
	return out, nil
}

// ConvertToVersion returns obj, in whatever form and version, as an object of a version.
func (f form) ConvertToVersion(obj runtime.Object, gv runtime.GroupVersioner) (runtime.Object, error) {
	gvk := obj.GetObjectKind().GroupVersionKind()
	target, ok := gv.KindForGroupVersionKinds([]schema.GroupVersionKind{gvk, f.e.gvk})
	if !ok {
		target = gvk
		if version, isGV := gv.(schema.GroupVersion); isGV {
			target = version.WithKind(gvk.Kind)
		}
	}
	from, to := f.e.objects.endpoint(gvk.GroupVersion()), f.e.objects.endpoint(target.GroupVersion())
	if from == nil || to == nil {
		return nil, runtime.NewNotRegisteredErrForKind(f.e.objects.Resource.GVR.String(), target)
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		var err error
		if obj, err = from.fromUnstructured(u); err != nil {
			return nil, err
		}
	}
	if from == to {
		return obj, nil
	}
	stored, err := from.stored(obj)
	if err != nil {
		return nil, err
	}
	return to.versioned(stored)
}

// Convert is not used by field managers.
func (form) Convert(in, out, context any) error {
	return fmt.Errorf("conversion of a %T is not offered", in)
}

// ConvertFieldLabel is not used by field managers.
func (form) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

func (e *endpoint) fromUnstructured(u *unstructured.Unstructured) (runtime.Object, error) {
	out := e.new()
	if own, ok := out.(runtime.Unstructured); ok {
		own.SetUnstructuredContent(u.Object)
		return own, nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out); err != nil {
		return nil, err
	}
	return out, nil
}

// versioned returns a stored object in the endpoint's version.
func (e *endpoint) versioned(stored runtime.Object) (runtime.Object, error) {
	if e.also == nil {
		return stored, nil
	}
	out, err := e.also.From(stored)
	if err != nil {
		return nil, err
	}
	out.GetObjectKind().SetGroupVersionKind(e.gvk)
	return out, nil
}

// track notes in next, which is about to replace current (an empty object for a
// creation), who changed what. Both are of the stored version.
func (e *endpoint) track(current, next runtime.Object, sub, manager string) error {
	before, meta := metaOf(current), metaOf(next)
	if len(before.ManagedFields) == 0 && len(meta.ManagedFields) == 0 {
		meta.ManagedFields = nil
		return nil
	}
	m, err := e.fields(sub)
	if err != nil {
		return err
	}
	e.view.Strategy.Default(next)
	next.GetObjectKind().SetGroupVersionKind(e.objects.Resource.GVK())
	live, err := e.versioned(current)
	if err != nil {
		return err
	}
	if live.GetObjectKind().GroupVersionKind().Empty() {
		live = live.DeepCopyObject()
		live.GetObjectKind().SetGroupVersionKind(e.gvk)
	}
	shown, err := e.versioned(next)
	if err != nil {
		return err
	}
	meta.ManagedFields = metaOf(m.UpdateNoErrors(live, shown, manager)).ManagedFields
	return nil
}

// managerOf names who sends a request: what it says itself, else its user agent
// up to the first slash.
func managerOf(named, agent string) string {
	if named != "" {
		return named
	}
	agent, _, _ = strings.Cut(agent, "/")
	var out strings.Builder
	for _, r := range agent {
		if !unicode.IsPrint(r) {
			continue
		}
		if out.Len()+utf8.RuneLen(r) > metav1validation.FieldManagerMaxLength {
			break
		}
		out.WriteRune(r)
	}
	return out.String()
}

// onlyTimesDiffer reports whether two lists of owners differ in nothing but when.
func onlyTimesDiffer(a, b []metav1.ManagedFieldsEntry) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := &a[i], &b[i]
		if x.Manager != y.Manager || x.Operation != y.Operation || x.APIVersion != y.APIVersion || x.FieldsType != y.FieldsType || x.Subresource != y.Subresource {
			return false
		}
		if (x.FieldsV1 == nil) != (y.FieldsV1 == nil) || x.FieldsV1 != nil && x.FieldsV1.GetRawString() != y.FieldsV1.GetRawString() {
			return false
		}
	}
	return true
}
