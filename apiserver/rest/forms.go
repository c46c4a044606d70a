package rest

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/apiserver/admission"
)

// forms shows a resource's objects to admission in all its versions.
type forms struct{ o *Objects }

var _ admission.Forms = forms{}

// asked is the version that a request to gvr is made in, empty for the stored one
// and when the request is about something else.
func (o *Objects) asked(gvr schema.GroupVersionResource) schema.GroupVersion {
	if gvr == o.Resource.GVR || o.endpoint(gvr.GroupVersion()) == nil || gvr.Resource != o.Resource.GVR.Resource {
		return schema.GroupVersion{}
	}
	return gvr.GroupVersion()
}

// endpoint returns the endpoint of a version, or nil.
func (o *Objects) endpoint(gv schema.GroupVersion) *endpoint {
	o.server.mu.RLock()
	defer o.server.mu.RUnlock()
	if e := o.server.endpoints[gv.WithResource(o.Resource.GVR.Resource)]; e != nil && e.objects == o {
		return e
	}
	return nil
}

// Versions implements admission.Forms.
func (f forms) Versions() []schema.GroupVersion {
	var out []schema.GroupVersion
	f.o.server.mu.RLock()
	for gvr, e := range f.o.server.endpoints {
		if e.objects == f.o {
			out = append(out, gvr.GroupVersion())
		}
	}
	f.o.server.mu.RUnlock()
	slices.SortFunc(out, func(a, b schema.GroupVersion) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version))
	})
	return out
}

// Kind implements admission.Forms.
func (f forms) Kind(gv schema.GroupVersion, subresource string) schema.GroupVersionKind {
	if subresource == "scale" {
		return scaleKind
	}
	return gv.WithKind(f.o.Resource.Kind)
}

// Encode implements admission.Forms.
func (f forms) Encode(obj runtime.Object, gv schema.GroupVersion, subresource string) ([]byte, error) {
	e := f.o.endpoint(gv)
	if e == nil {
		return nil, fmt.Errorf("%s is not served in version %s", f.o.Resource.GVR.GroupResource(), gv)
	}
	if subresource == "scale" && e.view.Scale != nil {
		scale, err := e.view.Scale.Get(obj)
		if err != nil {
			return nil, err
		}
		scale.SetGroupVersionKind(scaleKind)
		return e.server.codecs.EncodeJSON(scale)
	}
	if obj.GetObjectKind().GroupVersionKind() != f.o.Resource.GVK() {
		obj.GetObjectKind().SetGroupVersionKind(f.o.Resource.GVK())
	}
	shown, err := e.versioned(obj)
	if err != nil {
		return nil, err
	}
	return e.server.codecs.EncodeJSON(shown)
}

// Decode implements admission.Forms.
func (f forms) Decode(data []byte, gv schema.GroupVersion, subresource string, obj runtime.Object) error {
	e := f.o.endpoint(gv)
	if e == nil {
		return fmt.Errorf("%s is not served in version %s", f.o.Resource.GVR.GroupResource(), gv)
	}
	codecs := e.server.codecs
	if subresource == "scale" && e.view.Scale != nil {
		scale := &autoscalingv1.Scale{}
		if _, _, err := codecs.json.Decode(data, &scaleKind, scale); err != nil {
			return err
		}
		return e.view.Scale.Set(obj, scale.Spec.Replicas)
	}
	read, _, err := codecs.decodeStrict(data, e.gvk, e.new())
	if err != nil && !runtime.IsStrictDecodingError(err) {
		return err
	}
	stored, err := e.stored(read)
	if err != nil {
		return err
	}
	e.view.Strategy.Default(stored)
	before, after := metaOf(obj), metaOf(stored)
	after.Namespace, after.UID, after.ResourceVersion = before.Namespace, before.UID, before.ResourceVersion
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(stored).Elem())
	return nil
}
