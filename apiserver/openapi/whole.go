package openapi

import (
	"encoding/json"
	"maps"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// whole makes the document of everything (OpenAPI v2) from parts, and keeps these.
//
//	built-in kinds ── a part a group version ──┐
//	                                           ├── joined, compressed as they are ── document
//	custom kinds ──── a part a group version ──┘
type whole struct {
	version string

	builtIn struct {
		etag  string
		parts []*part
		// others are the definitions that name all group versions.
		others map[string]*spec.Schema
	}
	custom map[schema.GroupVersion]*customised
}

// customised is the part of a group version with custom kinds.
type customised struct {
	etag string
	*part
}

// A state is what the document is to be made of.
type state struct {
	all    []group
	etag   func(*group) string
	custom func(schema.GroupVersionKind) *spec.Schema
}

// parts returns the parts for a state, made anew where that has changed.
func (w *whole) parts(s state) ([]*part, error) {
	var built, custom []group
	for i := range s.all {
		b, c := group{gv: s.all[i].gv}, group{gv: s.all[i].gv}
		for _, l := range s.all[i].list {
			if builtIn(l) {
				b.list = append(b.list, l)
			} else {
				c.list = append(c.list, l)
			}
		}
		if b.list != nil {
			built = append(built, b)
		}
		if c.list != nil {
			custom = append(custom, c)
		}
	}
	etags := make([]string, len(built))
	for i := range built {
		etags[i] = s.etag(&built[i])
	}
	if etag := hash(etags...); w.builtIn.etag != etag {
		parts, others, err := builtInParts(built, generals(built))
		if err != nil {
			return nil, err
		}
		w.builtIn.parts, w.builtIn.others, w.builtIn.etag = parts, others, etag
	}
	out := slices.Clone(w.builtIn.parts)
	var types *library
	kept := map[schema.GroupVersion]*customised{}
	for i := range custom {
		g := &custom[i]
		etag, c := s.etag(g), w.custom[g.gv]
		if c == nil || c.etag != etag {
			if types == nil {
				var err error
				if types, err = newLibrary(); err != nil {
					return nil, err
				}
			}
			mixed := slices.ContainsFunc(built, func(b group) bool { return b.gv == g.gv })
			p, err := customPart(types.again(), g, mixed, s.custom)
			if err != nil {
				return nil, err
			}
			c = &customised{etag, p}
		}
		kept[g.gv] = c
		out = append(out, c.part)
	}
	w.custom = kept
	return out, nil
}

// othersFor returns the definitions that name all group versions, as a part.
func (w *whole) othersFor(all []group) (*part, error) {
	l := &library{out: map[string]*spec.Schema{}}
	for name, s := range w.builtIn.others {
		c := *s
		c.Extensions = maps.Clone(s.Extensions)
		l.out[name] = &c
	}
	for i := range all {
		l.everywhere(all[i].gv)
	}
	return newPart(nil, l.out, shared)
}

// sections are the sections of a document in a form, joined.
type sections struct {
	paths, definitions []packed
	parameters         map[string][]byte
}

func (s *sections) add(paths, defs packed, parameters map[string][]byte) {
	if paths.size > 0 {
		s.paths = append(s.paths, paths)
	}
	if defs.size > 0 {
		s.definitions = append(s.definitions, defs)
	}
	maps.Copy(s.parameters, parameters)
}

// json returns the document as JSON, compressed.
func (w *whole) json(s state) ([]byte, error) {
	all, err := w.allParts(s)
	if err != nil {
		return nil, err
	}
	sum := sections{parameters: map[string][]byte{}}
	for _, p := range all {
		sum.add(p.paths, p.definitions, p.parameters)
	}
	head, err := json.Marshal(w.rest())
	if err != nil {
		return nil, err
	}
	z := newZipper()
	z.text(head[:len(head)-1])
	join := func(name string, list []packed) {
		z.text([]byte(`,"` + name + `":{`))
		for i, p := range list {
			if i > 0 {
				z.text([]byte{','})
			}
			z.add(p)
		}
		z.text([]byte{'}'})
	}
	join("paths", sum.paths)
	join("definitions", sum.definitions)
	parameters := make(map[string]json.RawMessage, len(sum.parameters))
	for name, text := range sum.parameters {
		parameters[name] = text
	}
	text, err := json.Marshal(parameters)
	if err != nil {
		return nil, err
	}
	join("parameters", []packed{pack(text[1 : len(text)-1])})
	z.text([]byte{'}'})
	return z.done(), nil
}

// protobuf returns the document in gnostic's protobuf form, compressed.
func (w *whole) protobuf(s state) ([]byte, error) {
	all, err := w.allParts(s)
	if err != nil {
		return nil, err
	}
	sum := sections{parameters: map[string][]byte{}}
	for _, p := range all {
		b, err := p.encode()
		if err != nil {
			return nil, err
		}
		sum.add(b.paths, b.definitions, b.parameters)
	}
	rest := w.rest()
	rest["paths"] = object{}
	head, err := json.Marshal(rest)
	if err != nil {
		return nil, err
	}
	doc, err := documentV2(head)
	if err != nil {
		return nil, err
	}
	doc.Paths = nil
	text, err := proto.Marshal(doc)
	if err != nil {
		return nil, err
	}
	z := newZipper()
	z.text(text)
	fields := doc.ProtoReflect().Descriptor().Fields()
	join := func(name string, list []packed) {
		size := int64(0)
		for _, p := range list {
			size += p.size
		}
		tag := protowire.AppendTag(nil, fields.ByName(protoreflect.Name(name)).Number(), protowire.BytesType)
		z.text(protowire.AppendVarint(tag, uint64(size)))
		for _, p := range list {
			z.add(p)
		}
	}
	join("paths", sum.paths)
	join("definitions", sum.definitions)
	var parameters []byte
	for _, name := range slices.Sorted(maps.Keys(sum.parameters)) {
		parameters = append(parameters, sum.parameters[name]...)
	}
	join("parameters", []packed{pack(parameters)})
	return z.done(), nil
}

func (w *whole) allParts(s state) ([]*part, error) {
	all, err := w.parts(s)
	if err != nil {
		return nil, err
	}
	others, err := w.othersFor(s.all)
	if err != nil {
		return nil, err
	}
	return append(all, others), nil
}

// rest is what a document says besides its sections.
func (w *whole) rest() object {
	return object{
		"swagger":             "2.0",
		"info":                object{"title": "Kubernetes", "version": w.version},
		"securityDefinitions": object{"BearerToken": bearer()},
		"security":            []object{{"BearerToken": []string{}}},
	}
}
