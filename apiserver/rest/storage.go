package rest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/apiserver/ownership"
	"github.com/periplus/periplus/apiserver/registry"
)

// Storage returns the codec of a kind's stored form: protobuf, or JSON for
// kinds that upstream stores as JSON.
func (c *Codecs) Storage(r *registry.Resource) *StorageCodec {
	s := &StorageCodec{codecs: c, gvk: r.GVK(), new: r.New, json: r.StoredAsJSON, as: r.StoredAs, others: map[schema.GroupVersionKind]*registry.Served{}}
	if s.read = r.Read; r.JSONOnly {
		return s // custom resources read all their versions themselves
	}
	for _, list := range [][]registry.Served{r.AlsoStored, r.Also} {
		for i := range list {
			s.others[list[i].GV.WithKind(r.Kind)] = &list[i]
		}
	}
	if r.StoredAs != nil {
		s.others[r.KeptAs()] = r.StoredAs
	}
	return s
}

// A StorageCodec encodes one kind as it is stored.
type StorageCodec struct {
	codecs *Codecs
	gvk    schema.GroupVersionKind
	new    func() runtime.Object
	json   bool
	read   func(stored []byte) (runtime.Object, error)  // nil: by kind
	as     *registry.Served                             // the version that is written, nil for gvk's
	others map[schema.GroupVersionKind]*registry.Served // further versions that are read
}

// Encode returns obj as it is stored: without a resource version.
func (s *StorageCodec) Encode(obj runtime.Object) ([]byte, error) {
	obj.GetObjectKind().SetGroupVersionKind(s.gvk)
	if s.as != nil {
		older, err := s.as.From(obj)
		if err != nil {
			return nil, err
		}
		obj = older
		obj.GetObjectKind().SetGroupVersionKind(s.as.GV.WithKind(s.gvk.Kind))
	}
	if s.json {
		return s.codecs.EncodeJSON(obj)
	}
	return s.codecs.EncodeProtobuf(obj)
}

// Decode returns the object with its type metadata set.
func (s *StorageCodec) Decode(stored []byte) (runtime.Object, error) {
	if s.read != nil {
		obj, err := s.read(stored)
		if err == nil {
			ownership.Share(metaOf(obj).ManagedFields)
		}
		return obj, err
	}
	gvk, into := s.gvk, s.new()
	var other *registry.Served
	if len(s.others) > 0 {
		got, err := kindOf(stored)
		if err != nil {
			return nil, err
		}
		if other = s.others[got]; other != nil {
			gvk, into = got, other.New()
		}
	}
	var d runtime.Decoder = s.codecs.json
	if bytes.HasPrefix(stored, protobufPrefix) {
		d = s.codecs.proto
	}
	obj, _, err := d.Decode(stored, &gvk, into)
	if err != nil {
		return nil, err
	}
	if obj != into {
		return nil, fmt.Errorf("stored object is a %T, want %T", obj, into)
	}
	if other != nil {
		if obj, err = other.To(obj); err != nil {
			return nil, err
		}
	}
	obj.GetObjectKind().SetGroupVersionKind(s.gvk)
	ownership.Share(metaOf(obj).ManagedFields)
	return obj, nil
}

// isPlain reports whether stored is the protobuf form of the kind's own version,
// so that it can be sent as it is.
func (s *StorageCodec) isPlain(stored []byte) bool {
	if s.as != nil || !bytes.HasPrefix(stored, protobufPrefix) {
		return false
	}
	if len(s.others) == 0 {
		return true
	}
	got, err := kindOf(stored)
	return err == nil && got == s.gvk
}

// kindOf reads the kind of what is stored.
func kindOf(stored []byte) (schema.GroupVersionKind, error) {
	var t runtime.TypeMeta
	if data, ok := bytes.CutPrefix(stored, protobufPrefix); ok {
		// The envelope begins with the type: 0A len apiVersion, kind.
		if len(data) == 0 || data[0] != 1<<3|2 {
			return schema.GroupVersionKind{}, fmt.Errorf("the envelope of a stored object does not begin with its type")
		}
		n, skip := binary.Uvarint(data[1:])
		if data = data[1:]; skip <= 0 || n > uint64(len(data)-skip) {
			return schema.GroupVersionKind{}, io.ErrUnexpectedEOF
		}
		if err := t.Unmarshal(data[skip : skip+int(n)]); err != nil {
			return schema.GroupVersionKind{}, err
		}
	} else if kind, version, ok := typeAtStart(stored); ok {
		t.Kind, t.APIVersion = kind, version
	} else if err := json.Unmarshal(stored, &t); err != nil {
		return schema.GroupVersionKind{}, err
	}
	return schema.FromAPIVersionAndKind(t.APIVersion, t.Kind), nil
}

// typeAtStart reads {"kind":"K","apiVersion":"V", without looking at the rest.
func typeAtStart(data []byte) (kind, version string, ok bool) {
	rest, ok := bytes.CutPrefix(data, []byte(`{"kind":"`))
	if !ok {
		return "", "", false
	}
	k, rest, ok := bytes.Cut(rest, []byte(`","apiVersion":"`))
	if !ok || bytes.IndexByte(k, '"') >= 0 {
		return "", "", false
	}
	v, _, ok := bytes.Cut(rest, []byte(`"`))
	return string(k), string(v), ok
}
