package surface_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/apimachinery/pkg/types"
	restclient "k8s.io/client-go/rest"
)

// ask sends a request and returns the answer's header and body.
func ask(t *testing.T, c *restclient.Config, method, path, media, accept string, body []byte, header ...string) (*http.Response, []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, c.Host+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", media)
	r.Header.Set("Accept", accept)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := httpClient(t, c).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, answer
}

// CBOR is as good as JSON for requests, answers, patches and watches.
func TestCBOR(t *testing.T) {
	t.Parallel()
	c := start(t)
	const media, maps = "application/cbor", "/api/v1/namespaces/default/configmaps"
	object := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"},
		"data": map[string]any{"k": "v"}, "binaryData": map[string]any{"b": []byte("bytes")},
	}
	body, err := direct.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	resp, answer := ask(t, c, http.MethodPost, maps, media, media, body)
	var made corev1.ConfigMap
	if err := direct.Unmarshal(answer, &made); err != nil || resp.StatusCode != http.StatusCreated || resp.Header.Get("Content-Type") != media {
		t.Fatalf("%s, %s: %v", resp.Status, resp.Header.Get("Content-Type"), err)
	}
	if made.UID == "" || made.Data["k"] != "v" || string(made.BinaryData["b"]) != "bytes" {
		t.Errorf("made %+v", made)
	}
	object["datum"] = "x"
	if body, err = direct.Marshal(object); err != nil {
		t.Fatal(err)
	}
	if resp, answer := ask(t, c, http.MethodPost, maps+"?fieldValidation=Strict", media, "application/json", body); resp.StatusCode != http.StatusBadRequest || !strings.Contains(string(answer), `unknown field`) {
		t.Errorf("an unknown field: %s %s", resp.Status, answer)
	}
	patch, err := direct.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "data": map[string]any{"k": "2"}})
	if err != nil {
		t.Fatal(err)
	}
	resp, answer = ask(t, c, http.MethodPatch, maps+"/a?fieldManager=test&force=true", string(types.ApplyCBORPatchType), "application/json", patch)
	if resp.StatusCode != http.StatusOK || !strings.Contains(string(answer), `"k":"2"`) {
		t.Errorf("an applied patch: %s %s", resp.Status, answer)
	}
	var list corev1.ConfigMapList
	_, answer = ask(t, c, http.MethodGet, maps, media, media, nil)
	if err := direct.Unmarshal(answer, &list); err != nil || len(list.Items) == 0 || list.Kind != "ConfigMapList" || list.ResourceVersion == "" {
		t.Errorf("list %+v: %v", list, err)
	}
	var table metav1.Table
	_, answer = ask(t, c, http.MethodGet, maps, media, media+";as=Table;g=meta.k8s.io;v=v1", nil)
	if err := direct.Unmarshal(answer, &table); err != nil || table.Kind != "Table" || len(table.Rows) != len(list.Items) {
		t.Errorf("table %+v: %v", table, err)
	}
	watchOne(t, c, maps)
}

// watchOne reads the first event of a watch.
func watchOne(t *testing.T, c *restclient.Config, path string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Host+path+"?watch=1&fieldSelector=metadata.name=a", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "application/cbor-seq")
	resp, err := httpClient(t, c).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("Content-Type"); got != "application/cbor-seq" {
		t.Errorf("a watch is %s", got)
	}
	// One event is one write.
	buf := make([]byte, 64<<10)
	n, err := resp.Body.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	var event struct {
		Type   string           `json:"type"`
		Object corev1.ConfigMap `json:"object"`
	}
	if err := direct.Unmarshal(buf[:n], &event); err != nil || event.Type != "ADDED" || event.Object.Name != "a" {
		t.Errorf("event %+v: %v", event, err)
	}
}

// Large answers are compressed for those who accept it, small ones never.
func TestCompression(t *testing.T) {
	t.Parallel()
	c := start(t)
	const maps = "/api/v1/namespaces/default/configmaps"
	body, err := json.Marshal(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "large"}, Data: map[string]string{"k": strings.Repeat("v", 200<<10)}})
	if err != nil {
		t.Fatal(err)
	}
	if resp, answer := ask(t, c, http.MethodPost, maps, "application/json", "application/json", body); resp.StatusCode != http.StatusCreated {
		t.Fatalf("%s: %s", resp.Status, answer)
	}
	for _, tt := range []struct {
		path, accepts string
		want          bool
	}{
		{maps, "gzip", true},
		{maps, "deflate, gzip;q=1.0", true},
		{maps, "gzip;q=0", false},
		{maps, "", false},
		{"/api/v1/namespaces/default", "gzip", false},
	} {
		resp, answer := ask(t, c, http.MethodGet, tt.path, "", "application/json", nil, "Accept-Encoding", tt.accepts)
		if got := resp.Header.Get("Content-Encoding") == "gzip"; got != tt.want {
			t.Errorf("%s for %q: compressed %t", tt.path, tt.accepts, got)
			continue
		}
		if tt.want {
			z, err := gzip.NewReader(bytes.NewReader(answer))
			if err != nil {
				t.Fatal(err)
			}
			if answer, err = io.ReadAll(z); err != nil {
				t.Fatal(err)
			}
		}
		if !json.Valid(answer) {
			t.Errorf("%s for %q: no JSON", tt.path, tt.accepts)
		}
	}
}
