package repo_test

import (
	"strings"
	"testing"
)

// maxLines is where a file is split: one concern each.
const maxLines = 800

func TestFilesAreSmall(t *testing.T) {
	t.Parallel()
	for _, s := range all(t) {
		if !s.generated && s.lines >= maxLines {
			t.Errorf("%s has %d lines: split it before %d", s.path, s.lines, maxLines)
		}
	}
}

func TestGeneratedFilesAreNamedSo(t *testing.T) {
	t.Parallel()
	for _, s := range all(t) {
		name := s.path[strings.LastIndex(s.path, "/")+1:]
		if s.generated != strings.HasPrefix(name, "zz_generated") {
			t.Errorf("%s: generated files, and only they, are called zz_generated*.go", s.path)
		}
	}
}

// vague are names that say nothing about what a package does.
var vague = []string{"util", "utils", "helper", "helpers", "common", "misc", "manager", "shared", "lib"}

func TestPackagesHaveNames(t *testing.T) {
	t.Parallel()
	for _, s := range all(t) {
		for _, v := range vague {
			if s.file.Name.Name == v {
				t.Errorf("%s: package %s says nothing; name it after what it does", s.path, v)
			}
		}
	}
}
