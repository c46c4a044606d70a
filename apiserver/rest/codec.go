package rest

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"sigs.k8s.io/yaml"

	"github.com/periplus/periplus/apiserver/registry"
)

// Media types of requests and answers.
const (
	mediaJSON     = "application/json"
	mediaYAML     = "application/yaml"
	mediaProtobuf = "application/vnd.kubernetes.protobuf"
)

// protobufPrefix marks Kubernetes' protobuf envelope (runtime.Unknown).
var protobufPrefix = []byte{'k', '8', 's', 0}

// Codecs encode and decode the types of one scheme, without version conversion.
type Codecs struct {
	scheme *runtime.Scheme
	json   runtime.Serializer
	strict runtime.Serializer
	proto  *protobuf.Serializer
	cbor   cbor.Serializer
}

// NewCodecs returns codecs for the types of scheme.
func NewCodecs(scheme *runtime.Scheme) *Codecs {
	return &Codecs{
		scheme: scheme,
		json:   json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{}),
		strict: json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Strict: true}),
		proto:  protobuf.NewSerializer(scheme, scheme),
		cbor:   cbor.NewSerializer(scheme, scheme, cbor.Strict(true)),
	}
}

// decodeStrict decodes JSON into an object. What a strict client wants to know is
// a strict decoding error; the object is then returned, too.
func (c *Codecs) decodeStrict(data []byte, want schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	d, ok := into.(registry.Decoder)
	if !ok {
		return c.strict.Decode(data, &want, into)
	}
	strict, err := d.DecodeStrict(data)
	if err != nil {
		return nil, nil, err
	}
	got := d.GetObjectKind().GroupVersionKind()
	if got.Kind == "" {
		return nil, nil, runtime.NewMissingKindErr(string(data))
	}
	if got.Version == "" {
		return nil, nil, runtime.NewMissingVersionErr(string(data))
	}
	if len(strict) > 0 {
		return d, &got, runtime.NewStrictDecodingError(strict)
	}
	return d, &got, nil
}

// EncodeJSON returns obj as JSON without a line end.
func (c *Codecs) EncodeJSON(obj runtime.Object) ([]byte, error) {
	if d, ok := obj.(registry.Decoder); ok { // writes itself: nothing needs to look at it again
		return d.MarshalJSON()
	}
	b := texts.Get().(*bytes.Buffer)
	defer func() {
		if b.Cap() <= 1<<20 {
			b.Reset()
			texts.Put(b)
		}
	}()
	if err := c.json.Encode(obj, b); err != nil {
		return nil, err
	}
	return bytes.Clone(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}

// texts are the buffers in which JSON is made: what is kept of it is as long as it is.
var texts = sync.Pool{New: func() any { return &bytes.Buffer{} }}

// message is implemented by the types that have a protobuf form.
type message interface {
	Size() int
	MarshalToSizedBuffer([]byte) (int, error)
}

// EncodeProtobuf returns obj in Kubernetes' protobuf envelope.
func (c *Codecs) EncodeProtobuf(obj runtime.Object) ([]byte, error) {
	m, ok := obj.(message)
	if !ok {
		var b bytes.Buffer
		err := c.proto.Encode(obj, &b)
		return b.Bytes(), err
	}
	var t runtime.TypeMeta
	t.APIVersion, t.Kind = obj.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	head, n := t.Size(), m.Size()
	// "k8s\0", the type (field 1), the object (field 2), and two empty fields, as upstream writes them.
	size := len(protobufPrefix) + 1 + uvarintLen(head) + head + 1 + uvarintLen(n) + n + 4
	out := append(make([]byte, 0, size), protobufPrefix...)
	out = appendUvarint(append(out, 1<<3|2), head)
	at := len(out)
	if _, err := t.MarshalToSizedBuffer(out[at : at+head]); err != nil {
		return nil, err
	}
	out = appendUvarint(append(out[:at+head], 2<<3|2), n)
	at = len(out)
	if _, err := m.MarshalToSizedBuffer(out[at : at+n]); err != nil {
		return nil, err
	}
	return append(out[:at+n], 3<<3|2, 0, 4<<3|2, 0), nil
}

// rawOf returns the object's own message inside a protobuf envelope.
func rawOf(envelope []byte) ([]byte, error) {
	var u runtime.Unknown
	if !bytes.HasPrefix(envelope, protobufPrefix) {
		return nil, fmt.Errorf("the data does not begin with the protobuf envelope")
	}
	if err := u.Unmarshal(envelope[len(protobufPrefix):]); err != nil {
		return nil, err
	}
	return u.Raw, nil
}

// A format is how an answer is encoded.
type format struct {
	media string // one of the media types above
	as    string // "", "Table", "PartialObjectMetadata" or "PartialObjectMetadataList"
	asGV  schema.GroupVersion
}

// encode returns obj in the format's media type.
func (c *Codecs) encode(f format, obj runtime.Object) ([]byte, error) {
	switch f.media {
	case mediaProtobuf:
		return c.EncodeProtobuf(obj)
	case mediaCBOR:
		return c.EncodeCBOR(obj)
	case mediaYAML:
		j, err := c.EncodeJSON(obj)
		if err != nil {
			return nil, err
		}
		return yaml.JSONToYAML(j)
	default:
		return c.EncodeJSON(obj)
	}
}

// offers is what an answer can be encoded as.
type offers struct {
	forms    bool // as tables and partial metadata, too
	jsonOnly bool // plain objects have no protobuf form
}

// offers returns the formats that the endpoint has.
func (e *endpoint) offers() offers { return offers{forms: true, jsonOnly: e.objects.Resource.JSONOnly} }

// negotiate picks the answer's format from an Accept header (RFC 9110 §12.5.1):
// the first clause with the highest weight that can be served. ok is false when none can.
func negotiate(accept string, o offers) (f format, ok bool) {
	if accept == "" {
		return format{media: mediaJSON}, true
	}
	best := -1.0
	for clause := range strings.SplitSeq(accept, ",") {
		g, weight, good := parseClause(clause, o)
		if good && weight > best {
			f, best, ok = g, weight, true
		}
	}
	return f, ok
}

func parseClause(clause string, o offers) (format, float64, bool) {
	media, params, _ := strings.Cut(clause, ";")
	var f format
	switch strings.TrimSpace(media) {
	case mediaJSON, "application/*", "*/*":
		f.media = mediaJSON
	case mediaProtobuf:
		f.media = mediaProtobuf
	case mediaYAML:
		f.media = mediaYAML
	case mediaCBOR, mediaCBORStream:
		f.media = mediaCBOR
	default:
		return f, 0, false
	}
	weight := 1.0
	for p := range strings.SplitSeq(params, ";") {
		k, v, _ := strings.Cut(strings.TrimSpace(p), "=")
		switch k {
		case "as":
			f.as = v
		case "g":
			f.asGV.Group = v
		case "v":
			f.asGV.Version = v
		case "q":
			if q, err := strconv.ParseFloat(v, 64); err == nil {
				weight = q
			}
		}
	}
	switch f.as {
	case "":
		if o.jsonOnly && f.media == mediaProtobuf {
			return f, 0, false
		}
	case "Table", "PartialObjectMetadata", "PartialObjectMetadataList":
		known := f.asGV == metav1.SchemeGroupVersion || f.asGV == schema.GroupVersion{Group: metav1.GroupName, Version: "v1beta1"}
		if !o.forms || !known {
			return f, 0, false
		}
		// A table has no protobuf form.
		if f.as == "Table" && f.media == mediaProtobuf {
			return f, 0, false
		}
	default:
		return f, 0, false
	}
	return f, weight, true
}
