package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// packages are the API groups that the server has.
var packages = []string{
	"admissionregistration/v1", "admissionregistration/v1beta1", "apps/v1", "authentication/v1", "authorization/v1", "autoscaling/v1", "autoscaling/v2", "batch/v1",
	"certificates/v1", "certificates/v1beta1", "coordination/v1", "coordination/v1beta1", "core/v1", "discovery/v1", "events/v1", "flowcontrol/v1", "networking/v1", "node/v1",
	"policy/v1", "rbac/v1", "resource/v1", "resource/v1beta1", "resource/v1beta2", "scheduling/v1", "scheduling/v1beta1", "scheduling/v1alpha3",
	"storage/v1", "storagemigration/v1", "storagemigration/v1beta1",
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: markers FILE")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "markers:", err)
		os.Exit(1)
	}
}

func write(file string) error {
	module, err := exec.CommandContext(context.Background(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/api").Output()
	if err != nil {
		return fmt.Errorf("find k8s.io/api: %w", err)
	}
	var out bytes.Buffer
	dir := func(p string) string { return filepath.Join(strings.TrimSpace(string(module)), p) }
	core, err := read(dir("core/v1"), nil)
	if err != nil {
		return err
	}
	for _, path := range packages {
		p, err := read(dir(path), core.consts)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		for _, name := range slices.Sorted(maps.Keys(p.types)) {
			p.print("k8s.io/api/"+path, name, &out)
		}
	}
	return os.WriteFile(file, out.Bytes(), 0o644)
}

// A goPackage is what the files of one package declare.
type goPackage struct {
	types  map[string]*ast.TypeSpec
	docs   map[string][]string // markers of the types
	consts map[string]string   // string constants
	enums  map[string][]string // constants by type
	core   map[string]string   // string constants of core/v1, which others refer to
}

func read(dir string, core map[string]string) (*goPackage, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	p := &goPackage{types: map[string]*ast.TypeSpec{}, docs: map[string][]string{}, consts: map[string]string{}, enums: map[string][]string{}, core: core}
	for _, f := range files {
		if base := filepath.Base(f); strings.HasSuffix(base, "_test.go") || strings.HasPrefix(base, "zz_") || strings.Contains(base, "generated") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		for _, d := range parsed.Decls {
			if g, ok := d.(*ast.GenDecl); ok {
				p.declare(g)
			}
		}
	}
	return p, nil
}

func (p *goPackage) declare(g *ast.GenDecl) {
	for _, s := range g.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			p.types[s.Name.Name] = s
			p.docs[s.Name.Name] = append(tags(g.Doc), tags(s.Doc)...)
		case *ast.ValueSpec:
			for i := range s.Values {
				value, kind, ok := p.constant(s.Values[i])
				if !ok {
					continue
				}
				p.consts[s.Names[i].Name] = value
				if t, ok := s.Type.(*ast.Ident); ok {
					kind = t.Name
				}
				p.enums[kind] = append(p.enums[kind], value)
			}
		}
	}
}

// constant understands "text", Type("text") and Type(other.Constant); kind is Type.
func (p *goPackage) constant(e ast.Expr) (value, kind string, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		value, err := strconv.Unquote(e.Value)
		return value, "", e.Kind == token.STRING && err == nil
	case *ast.SelectorExpr:
		value, ok := p.core[e.Sel.Name]
		return value, "", ok
	case *ast.CallExpr:
		if t, isName := e.Fun.(*ast.Ident); isName && len(e.Args) == 1 {
			value, _, ok := p.constant(e.Args[0])
			return value, t.Name, ok
		}
	}
	return "", "", false
}

func (p *goPackage) print(path, name string, out *bytes.Buffer) {
	head := "= " + path + "." + name
	about := head
	if v := values(p.docs[name], "structType"); v != nil {
		about += " struct=" + v[0]
	}
	if list := slices.Clone(p.enums[name]); has(p.docs[name], "enum") && len(list) > 0 {
		slices.Sort(list)
		about += " enum=" + strings.Join(slices.Compact(list), ",")
	}
	var lines []string
	if s, ok := p.types[name].Type.(*ast.StructType); ok {
		for _, f := range s.Fields.List {
			if line := p.field(f); line != "" {
				lines = append(lines, line)
			}
		}
	}
	if about == head && len(lines) == 0 {
		return
	}
	slices.SortFunc(lines, cmp.Compare)
	fmt.Fprintln(out, about)
	for _, l := range lines {
		fmt.Fprintln(out, l)
	}
}

// field prints what reflection does not show.
func (p *goPackage) field(f *ast.Field) string {
	if f.Tag == nil {
		return ""
	}
	tag, err := strconv.Unquote(f.Tag.Value)
	if err != nil {
		return ""
	}
	name, options, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
	if name == "" || name == "-" {
		return ""
	}
	list := tags(f.Doc)
	var out []string
	omit := slices.Contains(strings.Split(options, ","), "omitempty")
	switch {
	case has(list, "required") && omit:
		out = append(out, "required")
	case has(list, "optional") && !has(list, "required") && !omit:
		out = append(out, "optional")
	}
	if v := values(list, "listType"); v != nil {
		out = append(out, "list="+v[0])
	}
	if v := values(list, "listMapKey"); v != nil {
		out = append(out, "keys="+strings.Join(v, ","))
	}
	for _, tag := range []string{"mapType", "structType"} {
		if v := values(list, tag); v != nil {
			out = append(out, "map="+v[0])
		}
	}
	if v := values(list, "default"); v != nil {
		value := v[0]
		if ref, ok := strings.CutPrefix(value, "ref("); ok {
			value = strconv.Quote(p.consts[strings.TrimSuffix(ref, ")")])
		}
		out = append(out, "default="+value)
	}
	if out == nil {
		return ""
	}
	return name + " " + strings.Join(out, " ")
}

// tags returns the lines of a comment that start with "+", without it.
func tags(g *ast.CommentGroup) []string {
	if g == nil {
		return nil
	}
	var out []string
	for _, c := range g.List {
		line := strings.TrimSpace(strings.TrimPrefix(c.Text, "//"))
		if t, ok := strings.CutPrefix(line, "+"); ok {
			out = append(out, t)
		}
	}
	return out
}

func has(tags []string, name string) bool {
	return slices.ContainsFunc(tags, func(t string) bool { return t == name || strings.HasPrefix(t, name+"=") })
}

// values returns the values of tags of the form name=value.
func values(tags []string, name string) []string {
	var out []string
	for _, t := range tags {
		if v, ok := strings.CutPrefix(t, name+"="); ok {
			out = append(out, strings.TrimSpace(v))
		}
	}
	return out
}
