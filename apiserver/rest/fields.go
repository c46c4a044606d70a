package rest

import (
	"context"
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
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/periplus/periplus/apiserver/ownership"
	"github.com/periplus/periplus/apiserver/request"
)

// Who owns which field is noted at every write. What is written is compared with what is stored by
// package ownership; the library that upstream uses (field managers) merges what is applied.
// Its types of a kind are read when they are first needed.
//
//	apply:          live + patch ── merge ──► object and owners
//	other writes:   live, new    ── compare ──► owners

// fieldManagers makes and keeps the field managers of one endpoint.
type fieldManagers struct {
	mu     sync.Mutex
	bySub  map[string]*managedfields.FieldManager
	custom *ownership.Types // of kinds without a Go type
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
	m, err := managedfields.NewDefaultCRDFieldManager(typesOf{types}, f, f, f, e.gvk, e.gvk.GroupVersion(), sub, e.resets(sub))
	if err != nil {
		return nil, err
	}
	if e.managers.bySub == nil {
		e.managers.bySub = map[string]*managedfields.FieldManager{}
	}
	e.managers.bySub[sub] = m
	return m, nil
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
	if e.also == nil || stored.GetObjectKind().GroupVersionKind() == e.gvk {
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
// creation), who changed what. Both are of the stored version; shown is next as the client
// wrote it, in the endpoint's version, if it wrote one. What an admission plug-in changes later
// is nobody's, as upstream.
func (e *endpoint) track(current, next, shown runtime.Object, sub, manager string) error {
	before, meta := metaOf(current), metaOf(next)
	create := before.UID == ""
	if !create && len(before.ManagedFields) == 0 && len(meta.ManagedFields) == 0 {
		meta.ManagedFields = nil // made by an older server: tracked from the first apply on
		return nil
	}
	e.view.Strategy.Default(next)
	if !e.objects.compares {
		return e.trackByLibrary(current, next, sub, manager)
	}
	if create {
		current = nil
	}
	if _, custom := shown.(ownership.Custom); !custom {
		shown = nil // defaults were filled in since
	}
	w := ownership.Write{
		Manager: manager, APIVersion: e.gvk.GroupVersion().String(), Subresource: sub, Create: create,
		Live: before.ManagedFields, Sent: meta.ManagedFields,
		Compare: func(version string, into *ownership.Change) error {
			return e.difference(version, current, next, shown, sub, into)
		},
	}
	owners, err := w.Owners()
	if err != nil { // the write itself is none the worse: the owners stay
		e.server.config.Log.Debug("owners of fields are not noted", "kind", e.gvk.Kind, "namespace", meta.Namespace, "name", meta.Name, "error", err)
	}
	meta.ManagedFields = owners
	return nil
}

// Note notes a write of the server itself, which no client sends: next replaces current,
// or is new if that is nil. Its owner is the API server, as upstream.
func (o *Objects) Note(current, next runtime.Object, sub string) error {
	e := o.endpoint(o.Resource.GVR.GroupVersion())
	if e == nil {
		return nil
	}
	if current == nil {
		current = e.blank
	}
	return e.track(current, next, nil, sub, "kube-apiserver")
}

// difference compares two objects of the stored version in terms of a version. Without
// current, next is new; shown, if not nil, is next in the endpoint's version.
func (e *endpoint) difference(version string, current, next, shown runtime.Object, sub string, into *ownership.Change) error {
	of := e
	if version != e.gvk.GroupVersion().String() {
		gv, err := schema.ParseGroupVersion(version)
		if err != nil {
			return ownership.ErrNoVersion
		}
		if of = e.objects.endpoint(gv); of == nil {
			return ownership.ErrNoVersion
		}
		shown = nil
	}
	live := of.blank
	if current != nil {
		var err error
		if live, err = of.versioned(current); err != nil {
			return err
		}
	}
	if shown == nil {
		var err error
		if shown, err = of.unstored(next); err != nil {
			return err
		}
	}
	if custom, ok := live.(ownership.Custom); ok {
		types, err := of.custom()
		if err != nil {
			return err
		}
		return types.Compare(custom, shown.(ownership.Custom), of.filter(sub), into)
	}
	return ownership.Compare(live, shown, of.filter(sub), into)
}

// unstored is versioned for an object that is not stored yet: nothing may be remembered of it.
func (e *endpoint) unstored(obj runtime.Object) (runtime.Object, error) {
	if _, custom := obj.(ownership.Custom); custom && e.also != nil {
		obj = obj.DeepCopyObject()
	}
	return e.versioned(obj)
}

// custom returns the types of a kind without a Go type, in the endpoint's version.
func (e *endpoint) custom() (*ownership.Types, error) {
	e.managers.mu.Lock()
	defer e.managers.mu.Unlock()
	if e.managers.custom != nil {
		return e.managers.custom, nil
	}
	types, err := e.objects.types()
	if err != nil {
		return nil, err
	}
	blank := &unstructured.Unstructured{}
	blank.SetGroupVersionKind(e.gvk)
	object, err := types.ObjectToTyped(blank)
	if err != nil {
		return nil, err
	}
	e.managers.custom, err = ownership.TypesOf(object)
	return e.managers.custom, err
}

// trackByLibrary notes owners of a kind that package ownership does not know.
func (e *endpoint) trackByLibrary(current, next runtime.Object, sub, manager string) error {
	m, err := e.fields(sub)
	if err != nil {
		return err
	}
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
	owners := metaOf(m.UpdateNoErrors(live, shown, manager)).ManagedFields
	ownership.Share(owners)
	metaOf(next).ManagedFields = owners
	return nil
}

// keepOwners undoes what admission has made of owners, unless it makes sense; most often
// admission has nothing to do with them.
func keepOwners(ctx context.Context, meta *metav1.ObjectMeta, before []metav1.ManagedFieldsEntry) {
	if len(before) == len(meta.ManagedFields) && (len(before) == 0 || &before[0] == &meta.ManagedFields[0]) {
		return
	}
	if err := ownership.Valid(meta.ManagedFields); err != nil {
		meta.ManagedFields = before
		request.Warn(ctx, fmt.Sprintf(".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission controller; please fix your requests: %v", err))
		return
	}
	ownership.Share(meta.ManagedFields)
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
