package crd

import (
	"encoding/json"
	"fmt"
	"maps"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	kjson "sigs.k8s.io/json"

	"github.com/periplus/periplus/apiserver/ownership"
	"github.com/periplus/periplus/apiserver/registry"
)

// An Object is one custom resource. Content holds its fields other than
// apiVersion, kind and metadata, as JSON values (map[string]any, []any, string,
// int64, float64, bool, nil).
type Object struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Content map[string]any

	version *version // whose schema it follows; nil for one without
}

var (
	_ runtime.Unstructured      = (*Object)(nil)
	_ registry.Decoder          = (*Object)(nil)
	_ ownership.Custom          = (*Object)(nil)
	_ metav1.ObjectMetaAccessor = (*Object)(nil)
	_ json.Marshaler            = (*Object)(nil)
	_ json.Unmarshaler          = (*Object)(nil)
)

// DeepCopyObject implements runtime.Object.
func (o *Object) DeepCopyObject() runtime.Object {
	out := o.shallow()
	o.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	if o.Content != nil {
		out.Content = runtime.DeepCopyJSON(o.Content)
	}
	return out
}

// shallow returns a copy that shares metadata and content.
func (o *Object) shallow() *Object {
	return &Object{TypeMeta: o.TypeMeta, ObjectMeta: o.ObjectMeta, Content: o.Content, version: o.version}
}

// MarshalJSON writes apiVersion, kind and metadata first, then the rest by name.
func (o *Object) MarshalJSON() ([]byte, error) {
	meta, err := json.Marshal(&o.ObjectMeta)
	if err != nil {
		return nil, err
	}
	head, err := json.Marshal(&o.TypeMeta)
	if err != nil {
		return nil, err
	}
	var rest []byte
	if len(o.Content) > 0 {
		if rest, err = utiljson.Marshal(o.Content); err != nil {
			return nil, err
		}
	}
	out := make([]byte, 0, len(head)+len(meta)+len(rest)+16)
	out = append(out, head[:len(head)-1]...)
	if len(head) > 2 {
		out = append(out, ',')
	}
	out = append(out, `"metadata":`...)
	out = append(out, meta...)
	if len(rest) > 2 {
		out = append(out, ',')
		return append(out, rest[1:]...), nil
	}
	return append(out, '}'), nil
}

// UnmarshalJSON reads a stored object: metadata that is no longer valid is
// dropped rather than refused.
func (o *Object) UnmarshalJSON(data []byte) error {
	all := map[string]any{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &all); err != nil {
		return err
	}
	return o.take(all, nil)
}

// readStored reads a stored object in the version that it was stored in, of those
// that are known by their apiVersion; in the version other if it is none of them.
func readStored(data []byte, versions map[string]*version, other *version) (*Object, error) {
	all := map[string]any{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &all); err != nil {
		return nil, err
	}
	name, _ := all["apiVersion"].(string)
	v := versions[name]
	if v == nil {
		v = other
	}
	o := v.new()
	if err := o.take(all, nil); err != nil {
		return nil, err
	}
	o.SetGroupVersionKind(v.gvk)
	return o, nil
}

// DecodeStrict implements registry.Decoder.
func (o *Object) DecodeStrict(data []byte) ([]error, error) {
	all := map[string]any{}
	strict, err := kjson.UnmarshalStrict(data, &all)
	if err != nil {
		return nil, err
	}
	unknown := []string{}
	if err := o.take(all, &unknown); err != nil {
		return nil, err
	}
	for _, path := range unknown {
		strict = append(strict, fmt.Errorf("unknown field %q", path))
	}
	return strict, nil
}

// take fills o from JSON values, which it keeps. unknown, if not nil, collects the
// paths of what the schema does not know, and malformed metadata is an error.
func (o *Object) take(all map[string]any, unknown *[]string) error {
	for key, into := range map[string]*string{"apiVersion": &o.APIVersion, "kind": &o.Kind} {
		switch v := all[key].(type) {
		case string:
			*into = v
		case nil:
			*into = ""
		default:
			return fmt.Errorf(".%s accessor error: %v is of the type %T, expected string", key, v, v)
		}
	}
	if err := o.takeMeta(all, unknown); err != nil {
		return err
	}
	delete(all, "apiVersion")
	delete(all, "kind")
	delete(all, "metadata")
	o.Content = all
	if o.version != nil {
		return o.version.coerce(o.Content, unknown)
	}
	return nil
}

func (o *Object) takeMeta(all map[string]any, unknown *[]string) error {
	o.ObjectMeta = metav1.ObjectMeta{}
	raw, found := all["metadata"]
	if !found || raw == nil {
		return nil
	}
	// The usual case: nothing unknown, nothing malformed. What is wrong is told by the longer way.
	if m, ok := raw.(map[string]any); ok && runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(m, &o.ObjectMeta, unknown != nil) == nil {
		return nil
	}
	o.ObjectMeta = metav1.ObjectMeta{}
	meta, _, paths, err := objectmeta.GetObjectMetaWithOptions(all, objectmeta.ObjectMetaOptions{
		DropMalformedFields: unknown == nil, ReturnUnknownFieldPaths: unknown != nil,
	})
	if err != nil {
		return err
	}
	if meta != nil {
		o.ObjectMeta = *meta
	}
	if unknown != nil {
		*unknown = append(*unknown, paths...)
	}
	return nil
}

// Parts implements ownership.Custom.
func (o *Object) Parts() (*metav1.ObjectMeta, map[string]any) { return &o.ObjectMeta, o.Content }

// UnstructuredContent returns the whole object as JSON values. The fields outside
// of metadata are the object's own: do not modify them.
func (o *Object) UnstructuredContent() map[string]any {
	out := make(map[string]any, len(o.Content)+3)
	maps.Copy(out, o.Content)
	if o.APIVersion != "" {
		out["apiVersion"] = o.APIVersion
	}
	if o.Kind != "" {
		out["kind"] = o.Kind
	}
	meta, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&o.ObjectMeta)
	if err != nil { // cannot happen: the converter knows all types of ObjectMeta
		meta = map[string]any{}
	}
	out["metadata"] = meta
	return out
}

// SetUnstructuredContent implements runtime.Unstructured. Metadata that is malformed is dropped.
func (o *Object) SetUnstructuredContent(content map[string]any) {
	_ = o.take(maps.Clone(content), nil) // only malformed type metadata fails, and is empty then
}

// NewEmptyInstance implements runtime.Unstructured.
func (o *Object) NewEmptyInstance() runtime.Unstructured { return &Object{version: o.version} }

// IsList implements runtime.Unstructured.
func (o *Object) IsList() bool { return false }

// EachListItem implements runtime.Unstructured.
func (o *Object) EachListItem(func(runtime.Object) error) error {
	return fmt.Errorf("a %s is not a list", o.Kind)
}

// EachListItemWithAlloc implements runtime.Unstructured.
func (o *Object) EachListItemWithAlloc(f func(runtime.Object) error) error { return o.EachListItem(f) }
