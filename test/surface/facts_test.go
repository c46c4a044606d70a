package surface_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// lines returns the facts of a file, without its first line and empty ones.
func lines(t testing.TB, file string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.SplitSeq(string(data), "\n") {
		if line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return out
}

// An operation is one method of one path; about is the action and the kind.
type operation struct{ path, method, about string }

func (o operation) String() string { return o.method + " " + o.path + " (" + o.about + ")" }

// operations returns upstream's, without alpha groups.
func operations(t testing.TB) []operation {
	t.Helper()
	var out []operation
	path := ""
	for _, line := range lines(t, "operations.txt") {
		if !strings.HasPrefix(line, "\t") {
			path = line
			continue
		}
		method, about, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !alpha(path) {
			out = append(out, operation{path, method, about})
		}
	}
	return out
}

// alphaGroups have no other versions.
var alphaGroups = []string{"internal.apiserver.k8s.io", "lifecycle.k8s.io"}

// alpha reports whether a path is that of a version or group which no server has on.
func alpha(path string) bool {
	for _, g := range alphaGroups {
		if strings.HasPrefix(path, "/apis/"+g+"/") {
			return true
		}
	}
	for part := range strings.SplitSeq(path, "/") {
		if strings.HasPrefix(part, "v") && strings.Contains(part, "alpha") {
			return true
		}
	}
	return false
}
