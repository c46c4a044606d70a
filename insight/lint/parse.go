package lint

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/periplus/periplus/insight"
)

// brokenRule is what a document is reported under that cannot be read.
const brokenRule = "unreadable"

var extensions = []string{".yaml", ".yml", ".json"}

// String is file:line.
func (p Place) String() string {
	if p.File == "" {
		return "the cluster"
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// Parse reads files and directories (with all below them); "-" is in.
func Parse(in io.Reader, paths ...string) (*Set, error) {
	s := &Set{places: map[insight.Object]Place{}}
	for _, path := range paths {
		if path == "-" {
			if err := s.read("(standard input)", in); err != nil {
				return nil, err
			}
			continue
		}
		found := false
		err := filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() || p != path && !slices.Contains(extensions, strings.ToLower(filepath.Ext(p))) {
				return nil
			}
			found = true
			f, err := os.Open(p)
			if err != nil {
				return err
			}
			defer f.Close()
			return s.read(p, f)
		})
		if err != nil {
			return nil, err
		}
		if !found {
			return nil, fmt.Errorf("%s: no file that ends in %s", path, strings.Join(extensions, ", "))
		}
	}
	return s, nil
}

// Of makes a set of the objects of a cluster.
func Of(objects []insight.Object) *Set {
	return &Set{Objects: objects, places: map[insight.Object]Place{}, whole: true}
}

// read takes in one file of YAML documents or JSON.
func (s *Set) read(name string, r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	lines, docs := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))), 0
	line := 1
	for {
		doc, err := lines.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		begin := line + bytes.Count(doc[:len(doc)-len(bytes.TrimLeft(doc, "\n"))], []byte("\n"))
		line += bytes.Count(doc, []byte("\n")) + 1 // and its separator
		if empty(doc) {
			continue
		}
		docs++
		s.document(Place{name, docs, begin}, doc)
	}
}

func empty(doc []byte) bool {
	for l := range bytes.Lines(doc) {
		if t := bytes.TrimSpace(l); len(t) > 0 && t[0] != '#' && !bytes.Equal(t, []byte("---")) {
			return false
		}
	}
	return true
}

// strict refuses fields that a kind does not have.
var strict = serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()

func (s *Set) document(at Place, doc []byte) {
	obj, kind, err := strict.Decode(doc, nil, nil)
	if runtime.IsStrictDecodingError(err) {
		s.broken = append(s.broken, Finding{Rule: brokenRule, Severity: Error, Place: at, Object: insight.Ref{Kind: kind.Kind, Name: nameOf(doc)}, What: strings.TrimPrefix(err.Error(), "strict decoding error: "), Why: "A field that does not exist has no effect: what was meant is not done."})
		obj, _, err = scheme.Codecs.UniversalDeserializer().Decode(doc, nil, nil)
	}
	if runtime.IsNotRegisteredError(err) || runtime.IsMissingKind(err) || runtime.IsMissingVersion(err) {
		s.other(at, doc)
		return
	}
	if err != nil {
		s.broken = append(s.broken, Finding{Rule: brokenRule, Severity: Error, Place: at, Object: insight.Ref{Kind: "Document", Name: fmt.Sprint(at.Document)}, What: err.Error(), Why: "It cannot be applied."})
		return
	}
	s.add(at, obj)
}

func nameOf(doc []byte) string {
	var m struct {
		Metadata struct{ Name string }
	}
	_ = yaml.Unmarshal(doc, &m) // without a name the place says enough
	return m.Metadata.Name
}

// other takes in a kind that is not built in.
func (s *Set) other(at Place, doc []byte) {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(doc, &u.Object); err != nil || u.GetKind() == "" {
		s.broken = append(s.broken, Finding{Rule: brokenRule, Severity: Error, Place: at, Object: insight.Ref{Kind: "Document", Name: fmt.Sprint(at.Document)}, What: "is not an object: apiVersion or kind is missing", Why: "It cannot be applied."})
		return
	}
	s.add(at, u)
}

func (s *Set) add(at Place, obj runtime.Object) {
	if meta.IsListType(obj) {
		items, err := meta.ExtractList(obj)
		if err != nil {
			return
		}
		for _, item := range items {
			if raw, ok := item.(*runtime.Unknown); ok {
				s.document(at, raw.Raw)
				continue
			}
			s.add(at, item)
		}
		return
	}
	o, ok := obj.(insight.Object)
	if !ok {
		return
	}
	s.Objects = append(s.Objects, o)
	s.places[o] = at
}
