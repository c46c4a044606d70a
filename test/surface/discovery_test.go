package surface_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// differs are what is other than upstream's on purpose.
var differs = map[string]string{
	// Upstream still stores definitions as v1beta1, for the sake of those that are too
	// large as v1. We read both and write v1.
	"apiextensions.k8s.io/v1 customresourcedefinitions": "hash=jfWCUB31mvA=",
}

// TestResources wants every resource of upstream's discovery in ours, with its
// verbs, names, categories and storage version, and no more.
func TestResources(t *testing.T) {
	t.Parallel()
	c := start(t)
	var groups metav1.APIGroupList
	if err := json.Unmarshal(get(t, c, "/apis"), &groups); err != nil {
		t.Fatal(err)
	}
	versions := []string{"/api/v1"}
	for _, g := range groups.Groups {
		if g.Name == "metrics.k8s.io" {
			continue // of another server upstream
		}
		for _, v := range g.Versions {
			versions = append(versions, "/apis/"+v.GroupVersion)
		}
	}
	got := map[string]string{}
	for _, path := range versions {
		var list metav1.APIResourceList
		if err := json.Unmarshal(get(t, c, path), &list); err != nil {
			t.Fatal(err)
		}
		for i := range list.APIResources {
			key, text := line(list.GroupVersion, &list.APIResources[i])
			got[key] = text
		}
	}
	for _, want := range lines(t, "resources.txt") {
		gv, rest, _ := strings.Cut(want, " ")
		name, _, _ := strings.Cut(rest, " ")
		if alpha("/apis/" + gv + "/") {
			continue
		}
		key := gv + " " + name
		if got[key] != want && differs[key] == "" {
			t.Errorf("%s\n got %s\nwant %s", key, got[key], want)
		}
		delete(got, key)
	}
	for key := range got {
		t.Errorf("upstream has no %s", key)
	}
}

// line is a resource in the form of testdata/resources.txt.
func line(gv string, r *metav1.APIResource) (key, text string) {
	kind := r.Kind
	if r.Version != "" {
		kind = metav1.GroupVersion{Group: r.Group, Version: r.Version}.String() + "." + kind
	}
	scope := "cluster"
	if r.Namespaced {
		scope = "namespaced"
	}
	key = gv + " " + r.Name
	var out strings.Builder
	fmt.Fprintf(&out, "%s %s %s", key, kind, scope)
	for _, s := range []struct {
		name   string
		values []string
	}{
		{"verbs", r.Verbs}, {"singular", []string{r.SingularName}}, {"short", r.ShortNames},
		{"categories", r.Categories}, {"hash", []string{r.StorageVersionHash}},
	} {
		values := slices.Sorted(slices.Values(s.values))
		if text := strings.Join(values, ","); text != "" {
			fmt.Fprintf(&out, " %s=%s", s.name, text)
		}
	}
	return key, out.String()
}
