package rest

import (
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
// the version that an object is kept in the bytes are made once and shared. now says
// that it is of a change, which others read at the same time.
func (e *endpoint) encodeItem(media string, obj *cacher.Object, now bool) ([]byte, error) {
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
		if m, ok := e.message(obj); ok {
			return m.append(make([]byte, 0, m.size())), nil
		}
		return obj.Encoded(cacher.Protobuf, now, codecs.EncodeProtobuf)
	case mediaCBOR:
		return codecs.EncodeCBOR(obj.Obj)
	case mediaYAML:
		j, err := obj.Encoded(cacher.JSON, now, codecs.EncodeJSON)
		if err != nil {
			return nil, err
		}
		return yaml.JSONToYAML(j)
	default:
		return obj.Encoded(cacher.JSON, now, codecs.EncodeJSON)
	}
}

// writeObject answers with one object in the form that the client accepts.
func (e *endpoint) writeObject(w http.ResponseWriter, r *http.Request, c *call, code int, obj *cacher.Object) error {
	var body []byte
	var err error
	switch c.format.as {
	case "":
		if m, ok := e.message(obj); ok && c.format.media == mediaProtobuf {
			e.auditItem(r, c, obj, nil)
			b := getBuffer()
			*b = m.append(*b)
			writeBytes(w, r, c.format, code, *b)
			putBuffer(b)
			return nil
		}
		body, err = e.encodeItem(c.format.media, obj, false)
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
	e.auditItem(r, c, obj, body)
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
	e.auditList(r, p)
	if c.format.media == mediaProtobuf {
		return e.writeListProtobuf(w, r, c, p)
	}
	if c.format.media == mediaJSON && len(p.items) > fewItems && !forEyes(r) {
		return e.streamListJSON(w, r, c, p)
	}
	body, err := e.listJSON(p)
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
	e.server.codecs.auditResponse(r, obj)
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
