package apiserver_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/periplus/periplus/apiserver/measure"
)

var update = flag.Bool("update", false, "write the table of docs/metrics.md anew")

// TestMetricsTable: the table in docs/metrics.md is that of the program:
//
//	go test ./apiserver -run MetricsTable -update
func TestMetricsTable(t *testing.T) {
	t.Parallel()
	const page, begin, end = "../docs/metrics.md", "<!-- table -->\n", "<!-- end -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("the page has no table")
	}
	s, _ := start(t)
	var b strings.Builder
	b.WriteString("| metric | | level | labels |\n|---|---|---|---|\n")
	for _, d := range append(s.Metrics().Definitions(), measure.NewSLIs().Definitions()...) {
		labels := ""
		if len(d.Labels) > 0 {
			labels = "`" + strings.Join(d.Labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", d.Name, d.Type, strings.ToLower(string(d.Level)), labels)
	}
	want := before + begin + b.String() + end + after
	if string(text) == want {
		return
	}
	if !*update {
		t.Fatal("docs/metrics.md is out of date: go test ./apiserver -run MetricsTable -update")
	}
	if err := os.WriteFile(page, []byte(want), 0o644); err != nil { //nolint:gosec // a document
		t.Fatal(err)
	}
}
