package apiserver_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

func names(list *corev1.ConfigMapList) []string {
	out := make([]string, len(list.Items))
	for i := range list.Items {
		out[i] = list.Items[i].Name
	}
	return out
}

// TestPagesAreOneRevision walks a list in pages while objects come, change and
// go: the pages show what was there at the first.
func TestPagesAreOneRevision(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, c := start(t)
	if _, err := c.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "pages"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	maps := c.CoreV1().ConfigMaps("pages")
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		put(t, maps, name, map[string]string{"even": map[bool]string{true: "yes", false: "no"}[name == "b" || name == "d"]})
	}
	first, err := maps.List(ctx, metav1.ListOptions{Limit: 2})
	if err != nil || !slices.Equal(names(first), []string{"a", "b"}) || *first.RemainingItemCount != 3 {
		t.Fatalf("first page %q, %d remain, %v", names(first), *first.RemainingItemCount, err)
	}
	filtered, err := maps.List(ctx, metav1.ListOptions{Limit: 1, LabelSelector: "even=yes"})
	if err != nil || !slices.Equal(names(filtered), []string{"b"}) || filtered.RemainingItemCount != nil {
		t.Fatalf("first page of some: %q, remaining %v, %v", names(filtered), filtered.RemainingItemCount, err)
	}
	if err := maps.Delete(ctx, "d", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	put(t, maps, "bb", nil)
	relabel(t, maps, "c", `{"even":"maybe"}`)

	second, err := maps.List(ctx, metav1.ListOptions{Limit: 2, Continue: first.Continue})
	if err != nil || !slices.Equal(names(second), []string{"c", "d"}) || second.Items[0].Labels["even"] != "no" {
		t.Fatalf("second page %q, %v", names(second), err)
	}
	if second.ResourceVersion != first.ResourceVersion {
		t.Errorf("the second page is of revision %s, the first of %s", second.ResourceVersion, first.ResourceVersion)
	}
	third, err := maps.List(ctx, metav1.ListOptions{Limit: 2, Continue: second.Continue})
	if err != nil || !slices.Equal(names(third), []string{"e"}) || third.Continue != "" || third.RemainingItemCount != nil {
		t.Fatalf("third page %q, continue %q, %v", names(third), third.Continue, err)
	}
	rest, err := maps.List(ctx, metav1.ListOptions{LabelSelector: "even=yes", Continue: filtered.Continue})
	if err != nil || !slices.Equal(names(rest), []string{"d"}) {
		t.Fatalf("rest of some: %q, %v", names(rest), err)
	}
	exact, err := maps.List(ctx, metav1.ListOptions{ResourceVersion: first.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact})
	if err != nil || !slices.Equal(names(exact), []string{"a", "b", "c", "d", "e"}) {
		t.Fatalf("exactly then: %q, %v", names(exact), err)
	}
	now, err := maps.List(ctx, metav1.ListOptions{})
	if err != nil || !slices.Equal(names(now), []string{"a", "b", "bb", "c", "e"}) {
		t.Fatalf("now: %q, %v", names(now), err)
	}
	for name, o := range map[string]metav1.ListOptions{
		"token of nobody":       {Continue: "bm9ib2R5"},
		"token with a revision": {Continue: first.Continue, ResourceVersion: first.ResourceVersion},
		"match alone":           {ResourceVersionMatch: metav1.ResourceVersionMatchExact},
		"exact zero":            {ResourceVersion: "0", ResourceVersionMatch: metav1.ResourceVersionMatchExact},
		"revision":              {ResourceVersion: "new"},
	} {
		if _, err := maps.List(ctx, o); !apierrors.IsBadRequest(err) && !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v, want a refusal", name, err)
		}
	}
	// A token is for its own collection.
	if _, err := c.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{Continue: first.Continue}); !apierrors.IsBadRequest(err) {
		t.Errorf("a token of another namespace: %v, want BadRequest", err)
	}
}

// raw is a GET whose answer is in the wanted form.
func raw(t *testing.T, c *kubernetes.Clientset, path, accept string) []byte {
	t.Helper()
	body, err := c.CoreV1().RESTClient().Get().AbsPath(path).SetHeader("Accept", accept).Do(t.Context()).Raw()
	if err != nil {
		t.Fatalf("%s as %s: %v", path, accept, err)
	}
	return body
}

// TestFormsOfOneList reads the same objects as JSON, YAML, protobuf, a table and
// metadata alone.
func TestFormsOfOneList(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	maps := c.CoreV1().ConfigMaps("kube-public")
	put(t, maps, "a", map[string]string{"x": "y"})
	const list, one = "/api/v1/namespaces/kube-public/configmaps", "/api/v1/namespaces/kube-public/configmaps/a"

	var j corev1.ConfigMapList
	if err := json.Unmarshal(raw(t, c, list, "application/json"), &j); err != nil || j.Kind != "ConfigMapList" || j.Items[0].Kind != "" {
		t.Errorf("JSON: %v, %+v", err, j)
	}
	if y := string(raw(t, c, one, "application/yaml")); !strings.Contains(y, "kind: ConfigMap\n") || !strings.Contains(y, "  name: a\n") {
		t.Errorf("YAML: %s", y)
	}
	p, err := maps.List(t.Context(), metav1.ListOptions{}) // the client speaks protobuf
	if err != nil || len(p.Items) != len(j.Items) || p.ResourceVersion == "" || p.Items[0].ResourceVersion != j.Items[0].ResourceVersion || p.Items[0].ResourceVersion == "" {
		t.Errorf("protobuf: %v, %+v; JSON: %+v", err, p.ListMeta, j.ListMeta)
	}
	const meta = "g=meta.k8s.io;v=v1"
	var table metav1.Table
	if err := json.Unmarshal(raw(t, c, list, "application/json;as=Table;"+meta), &table); err != nil || table.Kind != "Table" {
		t.Fatalf("table: %v, %+v", err, table)
	}
	if len(table.Rows) != len(j.Items) || table.ColumnDefinitions[0].Name != "Name" || table.Rows[0].Cells[0] != "a" || table.ResourceVersion == "" {
		t.Errorf("table: %+v", table)
	}
	var partial metav1.PartialObjectMetadataList
	if err := json.Unmarshal(raw(t, c, list, "application/json;as=PartialObjectMetadataList;"+meta), &partial); err != nil || partial.Items[0].Labels["x"] != "y" {
		t.Errorf("metadata: %v, %+v", err, partial)
	}
	// The first clause that can be served wins; a table has no protobuf form.
	if err := json.Unmarshal(raw(t, c, one, "application/vnd.kubernetes.protobuf;as=Table;"+meta+",application/json;as=Table;"+meta+",application/json"), &table); err != nil || len(table.Rows) != 1 {
		t.Errorf("table of one: %v, %+v", err, table)
	}
}
