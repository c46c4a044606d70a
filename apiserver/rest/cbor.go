package rest

import (
	"bytes"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/periplus/periplus/apiserver/registry"
)

// CBOR (RFC 8949, KEP-4222) is what JSON is, in fewer bytes. Streams of it have no
// framing of their own.
const (
	mediaCBOR       = "application/cbor"
	mediaCBORStream = "application/cbor-seq"
)

// EncodeCBOR returns obj as CBOR.
func (c *Codecs) EncodeCBOR(obj runtime.Object) ([]byte, error) {
	if d, ok := obj.(registry.Decoder); ok {
		text, err := d.MarshalJSON()
		if err != nil {
			return nil, err
		}
		return c.jsonToCBOR(text)
	}
	var b bytes.Buffer
	if err := c.cbor.Encode(obj, &b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// jsonToCBOR rewrites an object.
func (c *Codecs) jsonToCBOR(text []byte) ([]byte, error) {
	tree := map[string]any{}
	if err := utiljson.Unmarshal(text, &tree); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := c.cbor.Encode(&unstructured.Unstructured{Object: tree}, &b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// cborToJSON rewrites an object.
func cborToJSON(data []byte) ([]byte, error) {
	tree := map[string]any{}
	if err := direct.Unmarshal(data, &tree); err != nil {
		return nil, fmt.Errorf("error converting CBOR to JSON: %w", err)
	}
	return json.Marshal(tree)
}

// decodeCBOR decodes an object as decodeStrict does.
func (c *Codecs) decodeCBOR(data []byte, want schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if _, own := into.(registry.Decoder); own {
		text, err := cborToJSON(data)
		if err != nil {
			return nil, nil, err
		}
		return c.decodeStrict(text, want, into)
	}
	return c.cbor.Decode(data, &want, into)
}

// frameCBOR writes the map of an event; object is an encoded object.
func frameCBOR(out *bytes.Buffer, t watch.EventType, object []byte) {
	// A map of two pairs of text strings and values. Kinds of events are shorter
	// than 24 bytes, so that their length is part of their head.
	out.WriteByte(0xA2)
	text := func(s string) {
		out.WriteByte(0x60 | byte(len(s)))
		out.WriteString(s)
	}
	text("type")
	text(string(t))
	text("object")
	out.Write(object)
}

// asYAML turns a patch to be applied into the other kind of those.
func asYAML(body []byte) (types.PatchType, []byte, error) {
	text, err := cborToJSON(body)
	if err != nil {
		return "", nil, apierrors.NewBadRequest(err.Error())
	}
	return types.ApplyYAMLPatchType, text, nil
}
