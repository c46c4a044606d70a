package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A resource is one entry of a discovery document.
type resource struct {
	Name, SingularName, Kind string
	Group, Version           string // of the kind, where it is not the document's
	Namespaced               bool
	Verbs                    []string
	ShortNames, Categories   []string
	StorageVersionHash       string
}

// discovered lists the resources of every group version, a line each.
func discovered(dir string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "api*__v*.json"))
	if err != nil {
		return "", err
	}
	var lines []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		var list struct {
			Kind, GroupVersion string
			Resources          []resource
		}
		if err := json.Unmarshal(data, &list); err != nil {
			return "", fmt.Errorf("%s: %w", file, err)
		}
		if list.Kind != "APIResourceList" {
			continue
		}
		for i := range list.Resources {
			lines = append(lines, list.Resources[i].line(list.GroupVersion))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n") + "\n", nil
}

// line is "apps/v1 deployments Deployment namespaced verbs=… singular=… short=… categories=… hash=…".
func (r *resource) line(gv string) string {
	var out strings.Builder
	kind := r.Kind
	if r.Version != "" {
		kind = groupVersion(r.Group, r.Version) + "." + kind
	}
	scope := "cluster"
	if r.Namespaced {
		scope = "namespaced"
	}
	fmt.Fprintf(&out, "%s %s %s %s", gv, r.Name, kind, scope)
	for _, s := range []struct {
		name   string
		values []string
	}{
		{"verbs", r.Verbs}, {"singular", []string{r.SingularName}}, {"short", r.ShortNames},
		{"categories", r.Categories}, {"hash", []string{r.StorageVersionHash}},
	} {
		slices.SortFunc(s.values, cmp.Compare)
		if text := strings.Join(s.values, ","); text != "" {
			fmt.Fprintf(&out, " %s=%s", s.name, text)
		}
	}
	return out.String()
}
