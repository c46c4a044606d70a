package cacher

import (
	"reflect"
	"strconv"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/periplus/periplus/store"
)

// An Object is one revision of a stored object. It and all that it points to
// are shared and never modified.
type Object struct {
	Obj    runtime.Object
	Meta   metav1.Object // Obj's metadata
	Key    string        // the store's key
	Rev    int64
	stored []byte // as in the store: without its resource version

	encodings [formats]atomic.Pointer[[]byte]
	kept      *kept                  // where encodings are accounted for; nil: nowhere
	left      atomic.Pointer[Object] // see Event.Left
}

// A Format numbers the encodings that are kept with an object.
type Format int

// The formats that are kept.
const (
	JSON Format = iota
	Protobuf
	MetadataJSON // the metadata alone
	MetadataProtobuf
	formats
)

// Stored returns the bytes in the store, which lack the resource version.
func (o *Object) Stored() []byte { return o.stored }

// A Codec turns stored bytes into objects.
type Codec interface {
	// Decode returns a new object with its type metadata set.
	Decode(stored []byte) (runtime.Object, error)
}

func newObject(e store.Entry, obj runtime.Object) (*Object, error) {
	m, ok := obj.(metav1.ObjectMetaAccessor)
	if !ok {
		return nil, errNoMeta
	}
	meta := m.GetObjectMeta()
	meta.SetResourceVersion(strconv.FormatInt(e.Mod, 10))
	return &Object{Obj: obj, Meta: meta, Key: e.Key, Rev: e.Mod, stored: e.Value}, nil
}

// Gone returns the last state of a deleted object under the deletion's revision. It
// shares everything but the revision.
func (o *Object) Gone(rev int64) *Object {
	again := reflect.New(reflect.TypeOf(o.Obj).Elem())
	again.Elem().Set(reflect.ValueOf(o.Obj).Elem())
	obj := again.Interface().(runtime.Object)
	meta := obj.(metav1.ObjectMetaAccessor).GetObjectMeta()
	meta.SetResourceVersion(strconv.FormatInt(rev, 10))
	return &Object{Obj: obj, Meta: meta, Key: o.Key, Rev: rev, stored: o.stored, kept: o.kept}
}
