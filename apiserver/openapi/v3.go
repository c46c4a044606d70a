package openapi

import (
	"encoding/json"
	"strconv"

	"github.com/google/gnostic-models/compiler"
	openapiv3 "github.com/google/gnostic-models/openapiv3"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// object is a JSON object; it is written with sorted keys.
type object = map[string]any

// v3 builds the document of one group version.
func v3(g *group, version string, custom func(schema.GroupVersionKind) *spec.Schema) ([]byte, error) {
	l, err := newLibrary()
	if err != nil {
		return nil, err
	}
	m := l.addGroup(g, custom)
	p := paths{}
	p.addGroup(g, m, newQueries())
	formV3(l.out)
	return json.Marshal(documentV3(p, l, version))
}

// documentV3 puts a document together.
func documentV3(p paths, l *library, version string) object {
	items := object{}
	for path, item := range p {
		out := object{}
		for method, op := range item.operations {
			out[method] = op.v3()
		}
		if item.parameters != nil {
			out["parameters"] = parametersV3(item.parameters)
		}
		items[path] = out
	}
	return object{
		"openapi": "3.0.0",
		"info":    object{"title": "Kubernetes", "version": version},
		"paths":   items,
		"components": object{
			"schemas":         l.out,
			"securitySchemes": object{"BearerToken": bearer()},
		},
	}
}

// v3Protobuf turns a document into gnostic's protobuf form.
func v3Protobuf(document []byte) ([]byte, error) {
	root, err := nodesOf(document)
	if err != nil {
		return nil, err
	}
	d, err := openapiv3.NewDocument(root, compiler.NewContextWithExtensions("$root", root, nil, nil))
	if err != nil {
		return nil, err
	}
	return proto.Marshal(d)
}

func bearer() object {
	return object{"description": "Bearer Token authentication", "in": "header", "name": "authorization", "type": "apiKey"}
}

func parametersV3(list []parameter) []object {
	out := []object{}
	for _, p := range list {
		o := object{"name": p.name, "in": p.in, "description": p.description, "schema": object{"type": p.kind, "uniqueItems": true}}
		if p.required {
			o["required"] = true
		}
		out = append(out, o)
	}
	return out
}

func (op *operation) v3() object {
	ref := func(model string) object {
		if model == "" {
			return object{"type": "string"}
		}
		return object{"$ref": components + model}
	}
	content := func(types []string, model string) object {
		out := object{}
		for _, t := range types {
			out[t] = object{"schema": ref(model)}
		}
		return out
	}
	responses := object{"401": object{"description": "Unauthorized"}}
	for code, model := range op.answers {
		responses[strconv.Itoa(code)] = object{"description": codeText(code), "content": content(op.produces, model)}
	}
	out := op.common(responses)
	if op.query != nil {
		out["parameters"] = parametersV3(op.query)
	}
	if op.body != "" {
		body := object{"content": content(op.consumes(), op.body)}
		if !op.bodyOptional {
			body["required"] = true
		}
		out["requestBody"] = body
	}
	return out
}

// common is what an operation has in both versions.
func (op *operation) common(responses object) object {
	out := object{"operationId": op.id, "tags": []string{op.tag}, "responses": responses}
	if op.description != "" {
		out["description"] = op.description
	}
	if op.action != "" {
		out["x-kubernetes-action"] = op.action
		out[gvkExtension] = gvkOf(op.gvk)
	}
	return out
}

func (op *operation) consumes() []string {
	if !op.patch {
		return []string{"*/*"}
	}
	out := []string{"application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"}
	if !op.custom {
		out = append(out, "application/strategic-merge-patch+json", "application/apply-patch+cbor")
	}
	return out
}

func codeText(code int) string {
	return map[int]string{200: "OK", 201: "Created", 202: "Accepted"}[code]
}
