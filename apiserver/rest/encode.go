package rest

import (
	"bytes"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/periplus/periplus/apiserver/cacher"
)

// served returns obj in the endpoint's version.
func (e *endpoint) served(obj *cacher.Object) (runtime.Object, error) {
	if e.also == nil || e.has(obj) {
		return obj.Obj, nil
	}
	out, err := e.also.From(obj.Obj)
	if err != nil {
		return nil, err
	}
	out.GetObjectKind().SetGroupVersionKind(e.gvk)
	return out, nil
}

// has reports whether obj is of the endpoint's version as it is.
func (e *endpoint) has(obj *cacher.Object) bool {
	return obj.Obj.GetObjectKind().GroupVersionKind() == e.gvk
}

// prepare converts many objects at once, where somebody else does that.
func (e *endpoint) prepare(items []*cacher.Object) error {
	if e.also == nil || e.also.Prepare == nil {
		return nil
	}
	objects := make([]runtime.Object, len(items))
	for i, o := range items {
		objects[i] = o.Obj
	}
	if err := e.also.Prepare(objects); err != nil {
		return apierrors.NewInternalError(err)
	}
	return nil
}

// hub returns an object in the version that is stored now.
func (o *Objects) hub(obj runtime.Object) (runtime.Object, error) {
	if o.Resource.Self == nil || obj.GetObjectKind().GroupVersionKind() == o.Resource.GVK() {
		return obj, nil
	}
	out, err := o.Resource.Self.From(obj)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return out, nil
}

// encodeItem returns an object in the endpoint's version and a media type. For
// the version that an object is kept in the bytes are made once and shared.
func (e *endpoint) encodeItem(media string, obj *cacher.Object) ([]byte, error) {
	codecs := e.server.codecs
	if e.also != nil && !e.has(obj) {
		out, err := e.served(obj)
		if err != nil {
			return nil, err
		}
		return codecs.encode(format{media: media}, out)
	}
	switch media {
	case mediaProtobuf:
		return obj.Encoded(cacher.Protobuf, func(o runtime.Object) ([]byte, error) {
			if stored := obj.Stored(); obj.Rev != 0 && e.objects.codec.isPlain(stored) {
				return withRevision(stored, obj.Rev)
			}
			return codecs.EncodeProtobuf(o)
		})
	case mediaCBOR:
		return codecs.EncodeCBOR(obj.Obj)
	case mediaYAML:
		j, err := obj.Encoded(cacher.JSON, codecs.EncodeJSON)
		if err != nil {
			return nil, err
		}
		return yaml.JSONToYAML(j)
	default:
		return obj.Encoded(cacher.JSON, codecs.EncodeJSON)
	}
}

// writeObject answers with one object in the form that the client accepts.
func (e *endpoint) writeObject(w http.ResponseWriter, r *http.Request, c *call, code int, obj *cacher.Object) error {
	var body []byte
	var err error
	switch c.format.as {
	case "":
		body, err = e.encodeItem(c.format.media, obj)
	case "Table":
		table, terr := e.table(c, &page{items: []*cacher.Object{obj}, rev: obj.Rev}, true)
		if terr != nil {
			return terr
		}
		body, err = e.server.codecs.encode(c.format, table)
	default:
		body, err = e.server.codecs.encode(c.format, partial(c.format, obj))
	}
	if err != nil {
		return err
	}
	writeBytes(w, r, c.format, code, body)
	return nil
}

// partial returns an object's metadata alone.
func partial(f format, obj *cacher.Object) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: f.asGV.String(), Kind: "PartialObjectMetadata"},
		ObjectMeta: *obj.Meta.(*metav1.ObjectMeta),
	}
}

// writeList answers with a page.
func (e *endpoint) writeList(w http.ResponseWriter, r *http.Request, c *call, p *page) error {
	if err := e.prepare(p.items); err != nil {
		return err
	}
	switch c.format.as {
	case "Table":
		table, err := e.table(c, p, true)
		if err != nil {
			return err
		}
		return e.writeEncoded(w, r, c, table)
	case "PartialObjectMetadata", "PartialObjectMetadataList":
		list := &metav1.PartialObjectMetadataList{
			TypeMeta: metav1.TypeMeta{APIVersion: c.format.asGV.String(), Kind: "PartialObjectMetadataList"},
			ListMeta: p.meta(), Items: make([]metav1.PartialObjectMetadata, len(p.items)),
		}
		for i, obj := range p.items {
			list.Items[i] = *partial(c.format, obj)
			list.Items[i].TypeMeta = metav1.TypeMeta{}
		}
		return e.writeEncoded(w, r, c, list)
	}
	var body []byte
	var err error
	if c.format.media == mediaProtobuf {
		body, err = e.listProtobuf(p)
	} else {
		body, err = e.listJSON(p)
	}
	if err == nil && c.format.media == mediaYAML {
		body, err = yaml.JSONToYAML(body)
	}
	if err == nil && c.format.media == mediaCBOR {
		body, err = e.server.codecs.jsonToCBOR(body)
	}
	if err != nil {
		return err
	}
	writeBytes(w, r, c.format, http.StatusOK, body)
	return nil
}

func (e *endpoint) writeEncoded(w http.ResponseWriter, r *http.Request, c *call, obj runtime.Object) error {
	body, err := e.server.codecs.encode(c.format, obj)
	if err != nil {
		return err
	}
	writeBytes(w, r, c.format, http.StatusOK, body)
	return nil
}

func (p *page) meta() metav1.ListMeta {
	m := metav1.ListMeta{Continue: p.cont, RemainingItemCount: p.remaining}
	if p.rev != 0 { // 0: not from the store
		m.ResourceVersion = strconv.FormatInt(p.rev, 10)
	}
	return m
}

// listJSON joins the items' shared encodings: {"kind":…,"items":[{…},{…}]}.
// Items of built-in kinds lose their leading kind and apiVersion, as upstream.
func (e *endpoint) listJSON(p *page) ([]byte, error) {
	head, err := e.server.codecs.EncodeJSON(&metav1.PartialObjectMetadataList{
		TypeMeta: metav1.TypeMeta{APIVersion: e.gvk.GroupVersion().String(), Kind: e.objects.Resource.ListKindOf()},
		ListMeta: p.meta(),
	})
	if err != nil {
		return nil, err
	}
	head = head[:bytes.LastIndex(head, []byte(`"items":`))]
	size := len(head) + 16
	items := make([][]byte, len(p.items))
	typeMeta := []byte(`{"kind":"` + e.gvk.Kind + `","apiVersion":"` + e.gvk.GroupVersion().String() + `",`)
	for i, obj := range p.items {
		item, err := e.encodeItem(mediaJSON, obj)
		if err != nil {
			return nil, err
		}
		items[i] = item
		size += len(item) + 1
	}
	out := make([]byte, 0, size)
	out = append(out, head...)
	out = append(out, `"items":[`...)
	for i, item := range items {
		if i > 0 {
			out = append(out, ',')
		}
		if !e.objects.Resource.KeepItemType {
			if rest, ok := bytes.CutPrefix(item, typeMeta); ok {
				out = append(out, '{')
				item = rest
			}
		}
		out = append(out, item...)
	}
	return append(out, ']', '}'), nil
}

// listProtobuf joins the items' messages: a List is ListMeta (field 1) and
// items (field 2, repeated), in the Unknown envelope.
func (e *endpoint) listProtobuf(p *page) ([]byte, error) {
	meta := p.meta()
	head, err := meta.Marshal()
	if err != nil {
		return nil, err
	}
	raws := make([][]byte, len(p.items))
	size := 1 + uvarintLen(len(head)) + len(head)
	for i, obj := range p.items {
		item, err := e.encodeItem(mediaProtobuf, obj)
		if err != nil {
			return nil, err
		}
		if raws[i], err = rawOf(item); err != nil {
			return nil, err
		}
		size += 1 + uvarintLen(len(raws[i])) + len(raws[i])
	}
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: e.gvk.GroupVersion().String(), Kind: e.objects.Resource.ListKindOf()}}
	typeMeta, err := envelope.TypeMeta.Marshal()
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, size+len(typeMeta)+32)
	out = append(out, protobufPrefix...)
	out = appendMessage(out, 1, typeMeta)
	out = append(out, 2<<3|2)
	out = appendUvarint(out, size)
	out = appendMessage(out, 1, head)
	for _, raw := range raws {
		out = appendMessage(out, 2, raw)
	}
	// contentEncoding and contentType are empty, as upstream writes them.
	return append(out, 3<<3|2, 0, 4<<3|2, 0), nil
}

func appendMessage(out []byte, fieldNumber byte, m []byte) []byte {
	out = append(out, fieldNumber<<3|2)
	out = appendUvarint(out, len(m))
	return append(out, m...)
}

func appendUvarint(out []byte, n int) []byte {
	for n >= 0x80 {
		out = append(out, byte(n)|0x80)
		n >>= 7
	}
	return append(out, byte(n))
}

func uvarintLen(n int) int {
	l := 1
	for n >= 0x80 {
		n >>= 7
		l++
	}
	return l
}
