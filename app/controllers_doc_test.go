package app

import (
	"cmp"
	"flag"
	"fmt"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/controllers"
	controllersall "github.com/periplus/periplus/controllers/all"
)

var update = flag.Bool("update", false, "write the table of docs/controllers.md anew")

// TestControllersTable: the table in docs/controllers.md is what the controllers declare:
//
//	go test ./app -run ControllersTable -update
func TestControllersTable(t *testing.T) {
	t.Parallel()
	const page, begin, end = "../docs/controllers.md", "<!-- table -->\n", "<!-- end -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("the page has no table")
	}
	list := controllersall.Controllers()
	slices.SortFunc(list, func(a, b controllers.Controller) int { return cmp.Compare(a.Name, b.Name) })
	flags := map[string]string{}
	for _, s := range new(ControllersConfig).syncs() {
		flags[s.controller] = s.flag
	}
	var b strings.Builder
	b.WriteString("| controller | what it does | reads | writes | at a time | account | on |\n|---|---|---|---|---|---|---|\n")
	for _, c := range list {
		workers, on := fmt.Sprint(cmp.Or(c.Workers, 5)), "yes"
		if f := flags[c.Name]; f != "" {
			workers += " `--" + f + "`"
		}
		if c.Off {
			on = "when named"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | `%s` | %s |\n", c.Name, purpose(t, c), resources(c.Reads), resources(c.Writes), workers, accountOf(c.Name), on)
	}
	want := before + begin + b.String() + end + after
	if string(text) == want {
		return
	}
	if !*update {
		t.Fatal("docs/controllers.md is out of date: go test ./app -run ControllersTable -update")
	}
	if err := os.WriteFile(page, []byte(want), 0o644); err != nil { //nolint:gosec // a document
		t.Fatal(err)
	}
}

// purpose is the first sentence of the comment of a controller's package.
func purpose(t *testing.T, c controllers.Controller) string {
	name := runtime.FuncForPC(reflect.ValueOf(c.New).Pointer()).Name()
	dir, _, _ := strings.Cut(name[strings.LastIndex(name, "/")+1:], ".")
	file, err := parser.ParseFile(token.NewFileSet(), "../controllers/"+dir+"/doc.go", nil, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil {
		t.Fatal(err)
	}
	var p doc.Package
	text := strings.TrimPrefix(p.Synopsis(file.Doc.Text()), "Package "+dir+" ")
	return strings.ReplaceAll(strings.TrimRight(text, ".:"), "|", `\|`)
}

func resources(list []schema.GroupVersionResource) string {
	var out []string
	for _, r := range list {
		switch {
		case r.Group == "*" && r.Resource == "*":
			out = append(out, "everything")
		case r.Group == "*":
			out = append(out, "`"+r.Resource+"`")
		default:
			out = append(out, "`"+r.GroupResource().String()+"`")
		}
	}
	return strings.Join(out, " ")
}
