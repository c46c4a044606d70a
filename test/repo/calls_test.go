package repo_test

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// forbidden calls, by package path and name, with the files that may make them.
var forbidden = []struct {
	pkg, name string
	except    []string // paths of files or folders
	instead   string
}{
	{"time", "Sleep", nil, "wait for the event; timers go through time.NewTimer, which testing/synctest moves"},
	{"time", "Tick", nil, "a ticker that nobody stops"},
	{"log", "Fatal", nil, "return an error; main prints it"},
	{"log", "Fatalf", nil, "return an error; main prints it"},
	{"os", "Exit", []string{"ctl"}, "return an error; main decides"},
	{"fmt", "Println", []string{"cmd", "ctl", "test"}, "components log with slog"},
}

func TestForbiddenCalls(t *testing.T) {
	t.Parallel()
	for _, s := range all(t) {
		names := importNames(s)
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			selector, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			ident, ok := selector.X.(*ast.Ident)
			if !ok {
				return true
			}
			for _, f := range forbidden {
				if names[ident.Name] != f.pkg || selector.Sel.Name != f.name || may(s, f.pkg) {
					continue
				}
				if !slices.ContainsFunc(f.except, func(e string) bool { return s.path == e || strings.HasPrefix(s.path, e+"/") }) {
					t.Errorf("%s:%d calls %s.%s: %s", s.path, s.fset.Position(call.Pos()).Line, f.pkg, f.name, f.instead)
				}
			}
			return true
		})
	}
}

// may tells the two that are let off: programs and test mains end processes, and in a
// testing/synctest bubble nobody really sleeps.
func may(s source, pkg string) bool {
	switch pkg {
	case "os":
		return s.file.Name.Name == "main" || s.test
	case "time":
		return s.test && slices.Contains(s.imports(), "testing/synctest")
	}
	return false
}

// TestNoRegistrationByInit wants explicit lists instead.
func TestNoRegistrationByInit(t *testing.T) {
	t.Parallel()
	for _, s := range all(t) {
		if s.generated {
			continue
		}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s:%d has an init function: list things explicitly", s.path, s.fset.Position(f.Pos()).Line)
			}
		}
	}
}

// importNames maps the names under which a file uses packages to their paths.
func importNames(s source) map[string]string {
	names := map[string]string{}
	for _, i := range s.file.Imports {
		path := strings.Trim(i.Path.Value, `"`)
		name := path[strings.LastIndex(path, "/")+1:]
		if i.Name != nil {
			name = i.Name.Name
		}
		names[name] = path
	}
	return names
}
