package repo_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const (
	root   = "../.."
	module = "github.com/periplus/periplus/"
)

// A source is one parsed Go file of the repository.
type source struct {
	path      string // from the root, with slashes
	dir       string
	test      bool
	generated bool
	lines     int
	file      *ast.File
	fset      *token.FileSet
}

// sources parses every Go file once. Other modules and what is built are left out.
var sources = sync.OnceValues(func() ([]source, error) {
	var out []source
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if rel != "." && strings.HasPrefix(d.Name(), ".") || rel == "bin" || rel == "build" || d.Name() == "testdata" {
				return filepath.SkipDir
			}
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && rel != "." {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(fset, path, data, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		out = append(out, source{
			path: rel, dir: filepath.ToSlash(filepath.Dir(rel)), test: strings.HasSuffix(rel, "_test.go"),
			generated: ast.IsGenerated(file), lines: bytes.Count(data, []byte("\n")), file: file, fset: fset,
		})
		return nil
	})
	return out, err
})

func all(t *testing.T) []source {
	t.Helper()
	s, err := sources()
	if err != nil {
		t.Fatal(err)
	}
	if len(s) == 0 {
		t.Fatal("no Go file found")
	}
	return s
}

// imports are the paths that a file imports; those of this module begin with "./".
func (s source) imports() []string {
	var out []string
	for _, i := range s.file.Imports {
		path := strings.Trim(i.Path.Value, `"`)
		if rest, ok := strings.CutPrefix(path, module); ok {
			path = "./" + rest
		}
		out = append(out, path)
	}
	return out
}

// room is the top-level folder of a path within the repository.
func room(path string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "./"), "/")
	return first
}
