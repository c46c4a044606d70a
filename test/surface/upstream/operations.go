package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// operations lists paths, each followed by its methods: the method, what
// OpenAPI calls the action and the kind that it is about.
func operations(file string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	var out strings.Builder
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		fmt.Fprintln(&out, path)
		item := doc.Paths[path]
		for _, method := range slices.Sorted(maps.Keys(item)) {
			if method == "parameters" {
				continue
			}
			var op struct {
				Action string                                `json:"x-kubernetes-action"`
				Kind   struct{ Group, Version, Kind string } `json:"x-kubernetes-group-version-kind"`
			}
			if err := json.Unmarshal(item[method], &op); err != nil {
				return "", fmt.Errorf("%s: %s of %s: %w", file, method, path, err)
			}
			fmt.Fprintf(&out, "\t%s", strings.ToUpper(method))
			if op.Action != "" {
				fmt.Fprintf(&out, " %s %s %s", op.Action, groupVersion(op.Kind.Group, op.Kind.Version), op.Kind.Kind)
			}
			fmt.Fprintln(&out)
		}
	}
	return out.String(), nil
}

func groupVersion(group, version string) string {
	if group == "" {
		return version
	}
	return group + "/" + version
}
