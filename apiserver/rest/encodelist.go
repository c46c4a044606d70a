package rest

import (
	"bytes"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/periplus/periplus/apiserver/cacher"
)

// fewItems are lists that are put together before they are sent, with their length.
const fewItems = 50

// listEnds returns what is before and after the items of a list in JSON, and what items of
// built-in kinds do not carry, as upstream's do not: their leading kind and apiVersion.
func (e *endpoint) listEnds(p *page) (head, tail, typeMeta []byte, err error) {
	head, err = e.server.codecs.EncodeJSON(&metav1.PartialObjectMetadataList{
		TypeMeta: metav1.TypeMeta{APIVersion: e.gvk.GroupVersion().String(), Kind: e.objects.Resource.ListKindOf()},
		ListMeta: p.meta(),
	})
	if err != nil {
		return nil, nil, nil, err
	}
	head = append(head[:bytes.LastIndex(head, []byte(`"items":`))], `"items":[`...)
	if !e.objects.Resource.KeepItemType {
		typeMeta = []byte(`{"kind":"` + e.gvk.Kind + `","apiVersion":"` + e.gvk.GroupVersion().String() + `",`)
	}
	return head, []byte("]}"), typeMeta, nil
}

// appendItemJSON appends the i-th item.
func (e *endpoint) appendItemJSON(out []byte, i int, obj *cacher.Object, typeMeta []byte) ([]byte, error) {
	item, err := e.encodeItem(mediaJSON, obj, false)
	if err != nil {
		return out, err
	}
	if i > 0 {
		out = append(out, ',')
	}
	if rest, ok := bytes.CutPrefix(item, typeMeta); ok && len(typeMeta) > 0 {
		out, item = append(out, '{'), rest
	}
	return append(out, item...), nil
}

// listJSON joins the items' encodings: {"kind":…,"items":[{…},{…}]}.
func (e *endpoint) listJSON(p *page) ([]byte, error) {
	out, tail, typeMeta, err := e.listEnds(p)
	if err != nil {
		return nil, err
	}
	for i, obj := range p.items {
		if out, err = e.appendItemJSON(out, i, obj, typeMeta); err != nil {
			return nil, err
		}
	}
	return append(out, tail...), nil
}

// streamListJSON sends the items as they are encoded: the list is never as a whole in
// memory. Its length is not known in advance. An item that cannot be encoded ends the
// connection, as the status has been sent.
func (e *endpoint) streamListJSON(w http.ResponseWriter, r *http.Request, c *call, p *page) error {
	head, tail, typeMeta, err := e.listEnds(p)
	if err != nil {
		return err
	}
	estimate := 0
	for _, obj := range p.items {
		if estimate += len(obj.Stored()); estimate > compressFrom {
			break
		}
	}
	stream := beginStream(w, r, c.format, estimate, -1)
	defer stream.end()
	stream.buf = append(stream.buf, head...)
	for i, obj := range p.items {
		if stream.buf, err = e.appendItemJSON(stream.buf, i, obj, typeMeta); err != nil {
			panic(http.ErrAbortHandler)
		}
		if !stream.room() {
			return nil
		}
	}
	stream.buf = append(stream.buf, tail...)
	return nil
}

// writeListProtobuf joins the items' messages: a List is ListMeta (field 1) and
// items (field 2, repeated), in the Unknown envelope.
func (e *endpoint) writeListProtobuf(w http.ResponseWriter, r *http.Request, c *call, p *page) error {
	meta := p.meta()
	head, err := meta.Marshal()
	if err != nil {
		return err
	}
	size := 1 + uvarintLen(len(head)) + len(head)
	made := map[int][]byte{} // of items that are not sent as they are stored
	for i, obj := range p.items {
		n := 0
		if m, ok := e.message(obj); ok {
			n = m.rawSize()
		} else {
			item, err := e.encodeItem(mediaProtobuf, obj, false)
			if err != nil {
				return err
			}
			if made[i], err = rawOf(item); err != nil {
				return err
			}
			n = len(made[i])
		}
		size += 1 + uvarintLen(n) + n
	}
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: e.gvk.GroupVersion().String(), Kind: e.objects.Resource.ListKindOf()}}
	typeMeta, err := envelope.TypeMeta.Marshal()
	if err != nil {
		return err
	}
	start := appendMessage(append(make([]byte, 0, 128), protobufPrefix...), 1, typeMeta)
	start = appendUvarint(append(start, 2<<3|2), size)
	end := []byte{3<<3 | 2, 0, 4<<3 | 2, 0} // contentEncoding and contentType are empty, as upstream writes them
	whole := len(start) + size + len(end)
	stream := beginStream(w, r, c.format, whole, whole)
	defer stream.end()
	stream.buf = appendMessage(append(stream.buf, start...), 1, head)
	for i, obj := range p.items {
		if m, ok := e.message(obj); ok {
			stream.buf = m.appendRaw(appendUvarint(append(stream.buf, 2<<3|2), m.rawSize()))
		} else {
			stream.buf = appendMessage(stream.buf, 2, made[i])
		}
		if !stream.room() {
			return nil
		}
	}
	stream.buf = append(stream.buf, end...)
	return nil
}
