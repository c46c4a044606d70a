package openapi

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"

	"google.golang.org/protobuf/proto"
)

// everything answers with the document of everything (OpenAPI v2).
func (h *Handler) everything(w http.ResponseWriter, r *http.Request, all []group, others foreign) {
	etags := make([]string, 0, len(all))
	for i := range all {
		etags = append(etags, h.etag(&all[i]))
	}
	custom := h.Schemas
	if h.SchemasV2 != nil {
		custom = h.SchemasV2
	}
	own := state{all: all, etag: h.etag, custom: custom}
	s := source{media: mediaV2, asked: mediaV2Asked}
	if len(others.texts) == 0 {
		s.packed = func(protobuf bool) ([]byte, error) {
			if protobuf {
				return h.whole.protobuf(own)
			}
			return h.whole.json(own)
		}
	} else {
		s.protobuf = v2Protobuf
		s.json = func() ([]byte, error) {
			b, err := h.whole.json(own)
			if err != nil {
				return nil, err
			}
			text, err := uncompress(b)
			if err != nil {
				return nil, err
			}
			return others.merge(text)
		}
	}
	h.serve(w, r, "v2", hash(append(etags, others.etags...)...), s)
}

// v2Protobuf turns a document into gnostic's protobuf form.
func v2Protobuf(document []byte) ([]byte, error) {
	d, err := documentV2(document)
	if err != nil {
		return nil, err
	}
	return proto.Marshal(d)
}

// sharedParameters are written once and referred to: they would be most of the document.
type sharedParameters struct{ out object }

func (s *sharedParameters) refs(list []parameter) []object {
	out := []object{}
	for _, p := range list {
		o := object{"name": p.name, "in": p.in, "description": p.description, "type": p.kind, "uniqueItems": true}
		if p.required {
			o["required"] = true
		}
		out = append(out, s.ref(p.name, p.description, o))
	}
	return out
}

// ref enters a parameter under its name and a hash of what it says.
func (s *sharedParameters) ref(name, text string, o object) object {
	sum := sha256.Sum256([]byte(text))
	key := name + "-" + base64.RawURLEncoding.EncodeToString(sum[:6])
	s.out[key] = o
	return object{"$ref": "#/parameters/" + key}
}

func (op *operation) v2(shared *sharedParameters) object {
	ref := func(model string) object {
		if model == "" {
			return object{"type": "string"}
		}
		return object{"$ref": definitions + model}
	}
	responses := object{"401": object{"description": "Unauthorized"}}
	for code, model := range op.answers {
		responses[strconv.Itoa(code)] = object{"description": codeText(code), "schema": ref(model)}
	}
	out := op.common(responses)
	out["schemes"] = []string{"https"}
	if op.produces != nil {
		out["produces"], out["consumes"] = op.produces, op.consumes()
	}
	list := shared.refs(op.query)
	if op.body != "" {
		body := object{"name": "body", "in": "body", "schema": ref(op.body)}
		if !op.bodyOptional {
			body["required"] = true
		}
		list = append(list, shared.ref("body", op.body+strconv.FormatBool(op.bodyOptional), body))
	}
	if len(list) > 0 {
		out["parameters"] = list
	}
	return out
}
