package lint_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"

	"github.com/periplus/periplus/insight/lint"
)

var update = flag.Bool("update", false, "write what is printed into testdata")

// TestCases lints the manifests of testdata/*.txtar. The comment's first line lists rules
// to leave out; "want" is what is printed.
func TestCases(t *testing.T) {
	t.Parallel()
	for path, a := range cases(t) {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			t.Parallel()
			got := check(t, a)
			i := slices.IndexFunc(a.Files, func(f txtar.File) bool { return f.Name == "want" })
			if *update {
				if i < 0 {
					a.Files, i = append(a.Files, txtar.File{Name: "want"}), len(a.Files)
				}
				a.Files[i].Data = []byte(got)
				if err := os.WriteFile(path, txtar.Format(a), 0o644); err != nil { //nolint:gosec // test data
					t.Fatal(err)
				}
				return
			}
			if i < 0 || got != string(a.Files[i].Data) {
				t.Errorf("printed:\n%s", got)
			}
		})
	}
}

func cases(t *testing.T) map[string]*txtar.Archive {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases:", err)
	}
	out := map[string]*txtar.Archive{}
	for _, path := range files {
		if out[path], err = txtar.ParseFile(path); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func check(t *testing.T, a *txtar.Archive) string {
	t.Helper()
	first, _, _ := strings.Cut(string(a.Comment), "\n")
	set := parse(t, a)
	findings, err := lint.Check(set, strings.Fields(first))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := lint.Print(&out, findings, len(set.Objects)); err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(out.String(), "(standard input)", "x.yaml")
}

func parse(t *testing.T, a *txtar.Archive) *lint.Set {
	t.Helper()
	var all []byte
	live := false
	for _, f := range a.Files {
		if f.Name != "want" {
			all = append(all, f.Data...)
			live = live || f.Name == "live.yaml"
		}
	}
	set, err := lint.Parse(bytes.NewReader(all), "-")
	if err != nil {
		t.Fatal(err)
	}
	if live {
		return lint.Of(set.Objects)
	}
	return set
}

// TestEveryRule wants a case and a row in docs/lint.md for each rule.
func TestEveryRule(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/lint.md")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, a := range cases(t) {
		for _, f := range a.Files {
			if f.Name == "want" {
				all.Write(f.Data)
			}
		}
	}
	seen := map[string]bool{}
	for _, r := range lint.Rules() {
		if seen[r.Name] {
			t.Errorf("two rules are called %s", r.Name)
		}
		seen[r.Name] = true
		if !strings.Contains(all.String(), "["+r.Name+"]") {
			t.Errorf("rule %s has no case in testdata", r.Name)
		}
		if row := "| `" + r.Name + "` | " + r.Severity.String() + " | " + r.Why + " |"; !strings.Contains(string(doc), row) {
			t.Errorf("docs/lint.md lacks the row\n%s", row)
		}
	}
}

// TestFixesAreYAML reads what every finding offers.
func TestFixesAreYAML(t *testing.T) {
	t.Parallel()
	for path, a := range cases(t) {
		findings, err := lint.Check(parse(t, a), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range findings {
			var v map[string]any
			if err := yaml.Unmarshal([]byte(f.Fix), &v); err != nil {
				t.Errorf("%s: %s: %v:\n%s", path, f.Rule, err, f.Fix)
			}
		}
	}
}

func TestUnknownRule(t *testing.T) {
	t.Parallel()
	if _, err := lint.Check(lint.Of(nil), []string{"nonsense"}); err == nil {
		t.Error("a rule that does not exist was left out")
	}
}
