package openapi

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strconv"

	openapiv2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// v2 builds the document of everything.
func v2(all []group, version string, custom func(schema.GroupVersionKind) *spec.Schema) ([]byte, error) {
	l, err := newLibrary()
	if err != nil {
		return nil, err
	}
	p, q := paths{}, newQueries()
	for i := range all {
		p.addGroup(&all[i], l.addGroup(&all[i], custom), q)
	}
	for _, g := range generals(all) {
		g.define(l)
		g.add(p)
	}
	formV2(l.out)
	shared := &sharedParameters{out: object{}}
	items := object{}
	for path, item := range p {
		out := object{}
		for method, op := range item.operations {
			out[method] = op.v2(shared)
		}
		if item.parameters != nil {
			out["parameters"] = shared.refs(item.parameters)
		}
		items[path] = out
	}
	return json.Marshal(object{
		"swagger":             "2.0",
		"info":                object{"title": "Kubernetes", "version": version},
		"paths":               items,
		"definitions":         l.out,
		"parameters":          shared.out,
		"securityDefinitions": object{"BearerToken": bearer()},
		"security":            []object{{"BearerToken": []string{}}},
	})
}

// v2Protobuf turns a document into gnostic's protobuf form.
func v2Protobuf(document []byte) ([]byte, error) {
	d, err := openapiv2.ParseDocument(document)
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
