package repo_test

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// TestOnePackageComment wants it in doc.go: it is the map of the directory.
func TestOnePackageComment(t *testing.T) {
	t.Parallel()
	where := map[string][]string{}
	onlyTests := map[string]bool{}
	for _, s := range all(t) {
		if _, ok := where[s.dir]; !ok {
			where[s.dir], onlyTests[s.dir] = nil, true
		}
		onlyTests[s.dir] = onlyTests[s.dir] && s.test
		if s.file.Doc != nil && !s.test {
			where[s.dir] = append(where[s.dir], path.Base(s.path))
		}
	}
	for dir, files := range where {
		if onlyTests[dir] {
			continue
		}
		slices.Sort(files)
		switch {
		case len(files) == 0:
			t.Errorf("%s has no package comment: write doc.go, saying what it is, what goes in and out, where to add the next one", dir)
		case len(files) > 1:
			t.Errorf("%s has package comments in %s: keep the one in doc.go", dir, strings.Join(files, ", "))
		case files[0] != "doc.go":
			t.Errorf("%s has its package comment in %s: move it to doc.go", dir, files[0])
		}
	}
}
