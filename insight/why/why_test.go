package why_test

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/periplus/periplus/insight"
	"github.com/periplus/periplus/insight/why"
)

var update = flag.Bool("update", false, "write what is printed into testdata")

// now is when all snapshots of the cases were read.
var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// TestCases explains the objects of testdata/*.txtar:
//
//	the comment's first line: what is asked, KIND/NAME
//	objects.yaml    the cluster
//	log POD CONTAINER [previous], closed POD PORT, local POD PORT, unknown NAME: what was learnt besides
//	want            what is printed
func TestCases(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases:", err)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			t.Parallel()
			a, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got := explain(t, a)
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

func explain(t *testing.T, a *txtar.Archive) string {
	t.Helper()
	s := insight.NewSnapshot(now, "shop", objects(t, a)...)
	for _, f := range a.Files {
		words := strings.Fields(f.Name)
		switch words[0] {
		case "log":
			s.SetLog(words[1], words[2], len(words) > 3, string(f.Data))
		case "closed":
			s.SetPort(words[1], int32(number(t, words[2])), errText("connection refused"))
		case "local":
			s.SetPort(words[1], int32(number(t, words[2])), why.ErrLocalOnly)
		case "unknown":
			s.SetName(words[1], errText("lookup "+words[1]+": no such host"))
		}
	}
	question, _, _ := strings.Cut(string(a.Comment), "\n")
	target, err := why.ParseTarget(strings.TrimSpace(question), "shop")
	if err != nil {
		t.Fatal(err)
	}
	found, err := target.Find(s, "shop")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := why.Explain(s, found[0], found[1:]...).Print(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

type errText string

func (e errText) Error() string { return string(e) }

func number(t *testing.T, s string) (n int) {
	t.Helper()
	for _, c := range s {
		n = n*10 + int(c-'0')
	}
	return n
}

// objects reads the cluster. What the cases leave out is filled in: the namespace, an
// age of one hour.
func objects(t *testing.T, a *txtar.Archive) []insight.Object {
	t.Helper()
	var out []insight.Object
	for _, f := range a.Files {
		if f.Name != "objects.yaml" {
			continue
		}
		r := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(f.Data)))
		for {
			doc, err := r.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(doc, nil, nil)
			if err != nil {
				t.Fatalf("%v in\n%s", err, doc)
			}
			o := obj.(insight.Object)
			complete(o)
			out = append(out, o)
		}
	}
	return out
}

var clusterKinds = []string{"Node", "PersistentVolume", "Namespace", "StorageClass", "CSIDriver", "IngressClass", "VolumeAttachment", "PriorityClass", "RuntimeClass", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"}

func complete(o insight.Object) {
	if o.GetNamespace() == "" && !slices.Contains(clusterKinds, insight.KindOf(o)) {
		o.SetNamespace("shop")
	}
	if o.GetCreationTimestamp().Time.IsZero() {
		o.SetCreationTimestamp(metav1.NewTime(now.Add(-time.Hour)))
	}
	if e, ok := o.(*corev1.Event); ok {
		if e.InvolvedObject.Namespace == "" && !slices.Contains(clusterKinds, e.InvolvedObject.Kind) {
			e.InvolvedObject.Namespace = "shop"
		}
		if e.LastTimestamp.IsZero() {
			e.LastTimestamp = metav1.NewTime(now.Add(-12 * time.Second))
		}
	}
}

// TestEveryRuleHasACase wants each rule in the printed answer of some case.
func TestEveryRuleHasACase(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, path := range files {
		a, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range a.Files {
			if f.Name == "want" {
				all.Write(f.Data)
			}
		}
	}
	seen := map[string]bool{}
	for _, r := range why.Rules() {
		if seen[r.Name] {
			t.Errorf("two rules are called %s", r.Name)
		}
		seen[r.Name] = true
		if !strings.Contains(all.String(), "["+r.Name+"]") {
			t.Errorf("rule %s has no case in testdata", r.Name)
		}
	}
}

// TestDocsNameEveryRule keeps the table in docs/why.md.
func TestDocsNameEveryRule(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/why.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range why.Rules() {
		if row := "| `" + r.Name + "` | " + r.Summary + " |"; !strings.Contains(string(doc), row) {
			t.Errorf("docs/why.md lacks the row\n%s", row)
		}
	}
}
