package repo_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// mentioned finds paths of Go files in a document.
var mentioned = regexp.MustCompile("`([a-z0-9_/-]+\\.go)`")

// TestArchitectureNamesFilesThatExist: a path is one from the root, or its end when
// the room was just named.
func TestArchitectureNamesFilesThatExist(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile(filepath.Join(root, "docs", "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := mentioned.FindAllStringSubmatch(string(doc), -1)
	if len(found) < 20 {
		t.Errorf("only %d files are named: is the path of one run still there?", len(found))
	}
	for _, m := range found {
		exists := false
		for _, s := range all(t) {
			exists = exists || s.path == m[1] || strings.HasSuffix(s.path, "/"+m[1])
		}
		if !exists {
			t.Errorf("docs/ARCHITECTURE.md names %s, which does not exist", m[1])
		}
	}
}
