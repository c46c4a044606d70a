package surface_test

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	restclient "k8s.io/client-go/rest"
)

// described are the operations of an OpenAPI document.
func described(t *testing.T, c *restclient.Config, path string) map[operation]bool {
	t.Helper()
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(get(t, c, path), &doc); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	out := map[operation]bool{}
	for p, item := range doc.Paths {
		for method, data := range item {
			if method == "parameters" {
				continue
			}
			var op struct {
				Action string                                `json:"x-kubernetes-action"`
				Kind   struct{ Group, Version, Kind string } `json:"x-kubernetes-group-version-kind"`
			}
			if err := json.Unmarshal(data, &op); err != nil {
				t.Fatal(err)
			}
			about := ""
			if op.Action != "" {
				gv := op.Kind.Version
				if op.Kind.Group != "" {
					gv = op.Kind.Group + "/" + gv
				}
				about = op.Action + " " + gv + " " + op.Kind.Kind
			}
			out[operation{p, strings.ToUpper(method), about}] = true
		}
	}
	return out
}

func get(t *testing.T, c *restclient.Config, path string) []byte {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.Host+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := httpClient(t, c).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s, %v\n%s", path, resp.Status, err, body)
	}
	return body
}

// compare tells what upstream describes and the server does not, and the reverse.
func compare(t *testing.T, got map[operation]bool) {
	t.Helper()
	want := map[operation]bool{}
	for _, op := range operations(t) {
		want[op] = true
		if !got[op] {
			t.Errorf("missing: %s", op)
		}
	}
	for _, op := range slices.SortedFunc(maps.Keys(got), func(a, b operation) int { return strings.Compare(a.String(), b.String()) }) {
		if !want[op] && !strings.HasPrefix(op.path, "/apis/metrics.k8s.io/") {
			t.Errorf("upstream has no %s", op)
		}
	}
}

// TestOpenAPIV2 wants every path and method of upstream's document in ours, and no more.
func TestOpenAPIV2(t *testing.T) {
	t.Parallel()
	compare(t, described(t, start(t), "/openapi/v2"))
}

// TestOpenAPIV3 wants the same of all documents of version 3 together.
func TestOpenAPIV3(t *testing.T) {
	t.Parallel()
	c := start(t)
	var index struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	if err := json.Unmarshal(get(t, c, "/openapi/v3"), &index); err != nil {
		t.Fatal(err)
	}
	got := map[operation]bool{}
	for _, doc := range index.Paths {
		maps.Copy(got, described(t, c, doc.ServerRelativeURL))
	}
	compare(t, got)
}
