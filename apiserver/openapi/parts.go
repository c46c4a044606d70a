package openapi

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/google/gnostic-models/compiler"
	openapiv2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// A part is what one group version adds to the document of everything (OpenAPI v2),
// encoded: when a definition of custom resources changes, only its part is made anew.
type part struct {
	paths, definitions packed            // members of JSON objects, without the braces
	parameters         map[string][]byte // JSON by name; parts may have the same
	binary             *binary2          // nil until it is asked for
}

// binary2 is a part in protobuf: the contents of the messages Paths and Definitions,
// which are merged by writing one after another.
type binary2 struct {
	paths, definitions packed
	parameters         map[string][]byte // contents of ParameterDefinitions
}

// shared are the definitions that name all group versions, so that they are of no part.
var shared = []string{deleteOptionsModel, watchEventModel}

// builtInParts makes the parts of the built-in kinds of group versions, and one of
// what is served besides; others are the definitions that shared names.
func builtInParts(all []group, general []general) (parts []*part, others map[string]*spec.Schema, err error) {
	l, err := newLibrary()
	if err != nil {
		return nil, nil, err
	}
	seen := map[string]bool{}
	added := func() []string {
		var names []string
		for name := range l.out {
			if !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
		return names
	}
	// What custom resources refer to is there in any case.
	l.define(reflect.TypeFor[metav1.ObjectMeta]())
	l.define(reflect.TypeFor[metav1.ListMeta]())
	l.external(schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"})
	l.common()
	p := paths{}
	for i := range general {
		general[i].define(l)
		general[i].add(p)
	}
	defined := [][]string{added()}
	described := []paths{p}
	for i := range all {
		m := l.addGroup(&all[i], nil)
		defined = append(defined, added())
		p := paths{}
		p.addGroup(&all[i], m, newQueries())
		described = append(described, p)
	}
	formV2(l.out)
	others = map[string]*spec.Schema{}
	for _, name := range shared {
		others[name] = l.out[name]
		delete(l.out, name)
	}
	for i, names := range defined {
		part, err := newPart(described[i], l.out, names)
		if err != nil {
			return nil, nil, err
		}
		parts = append(parts, part)
	}
	return parts, others, nil
}

// customPart makes the part of the custom kinds of a group version in an empty library.
// mixed says that it has built-in kinds, too.
func customPart(l *library, g *group, mixed bool, custom func(schema.GroupVersionKind) *spec.Schema) (*part, error) {
	m := l.addGroup(g, custom)
	own := map[string]*spec.Schema{}
	for _, r := range m {
		for _, name := range []string{r.object, r.list} {
			if s := l.out[name]; s != nil {
				own[name] = s
			}
		}
	}
	formV2(own)
	p := paths{}
	p.addGroup(g, m, newQueries())
	if mixed {
		delete(p, "/"+g.path()+"/")
	}
	return newPart(p, own, slices.Collect(maps.Keys(own)))
}

func newPart(p paths, defs map[string]*spec.Schema, names []string) (*part, error) {
	params := &sharedParameters{out: object{}}
	items := object{}
	for path, item := range p {
		out := object{}
		for method, op := range item.operations {
			out[method] = op.v2(params)
		}
		if item.parameters != nil {
			out["parameters"] = params.refs(item.parameters)
		}
		items[path] = out
	}
	own := object{}
	for _, name := range names {
		if s := defs[name]; s != nil {
			own[name] = s
		}
	}
	out := &part{parameters: map[string][]byte{}}
	for section, members := range map[*packed]object{&out.paths: items, &out.definitions: own} {
		text, err := json.Marshal(members)
		if err != nil {
			return nil, err
		}
		*section = pack(text[1 : len(text)-1])
	}
	for key, o := range params.out {
		text, err := json.Marshal(o)
		if err != nil {
			return nil, err
		}
		out.parameters[key] = text
	}
	return out, nil
}

// encode makes the protobuf form, once.
func (p *part) encode() (*binary2, error) {
	if p.binary != nil {
		return p.binary, nil
	}
	paths, err := p.paths.text()
	if err != nil {
		return nil, err
	}
	defs, err := p.definitions.text()
	if err != nil {
		return nil, err
	}
	text := bytes.Join([][]byte{[]byte(`{"swagger":"2.0","info":{"title":"","version":""},"paths":{`), paths, []byte(`},"definitions":{`), defs, []byte(`},"parameters":{`)}, nil)
	for i, name := range slices.Sorted(maps.Keys(p.parameters)) {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(append(append(append(text, '"'), name...), `":`...), p.parameters[name]...)
	}
	doc, err := documentV2(append(text, "}}"...))
	if err != nil {
		return nil, err
	}
	out := &binary2{parameters: map[string][]byte{}}
	for section, m := range map[*packed]proto.Message{&out.paths: doc.Paths, &out.definitions: doc.Definitions} {
		b, err := proto.Marshal(m)
		if err != nil {
			return nil, err
		}
		*section = pack(b)
	}
	for _, n := range doc.Parameters.GetAdditionalProperties() {
		one := &openapiv2.ParameterDefinitions{AdditionalProperties: []*openapiv2.NamedParameter{n}}
		if out.parameters[n.GetName()], err = proto.Marshal(one); err != nil {
			return nil, err
		}
	}
	p.binary = out
	return out, nil
}

// documentV2 reads a document as gnostic's.
func documentV2(text []byte) (*openapiv2.Document, error) {
	root, err := nodesOf(text)
	if err != nil {
		return nil, err
	}
	return openapiv2.NewDocument(root, compiler.NewContextWithExtensions("$root", root, nil, nil))
}
