package openapi_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	openapiv2 "github.com/google/gnostic-models/openapiv2"
	openapiv3 "github.com/google/gnostic-models/openapiv3"
	"google.golang.org/protobuf/proto"
)

// read returns a document; what is compressed must be one member of a gzip file.
func (c *changing) read(t *testing.T, path, media string) []byte {
	t.Helper()
	w := get(c.handler, path, "Accept", media, "Accept-Encoding", "gzip")
	if w.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", path, w.Code, w.Body)
	}
	packed := bytes.NewReader(w.Body.Bytes())
	r, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	r.Multistream(false)
	text, err := io.ReadAll(r)
	if err != nil || packed.Len() != 0 {
		t.Fatalf("%s: %v, %d bytes after the end", path, err, packed.Len())
	}
	if plain := get(c.handler, path, "Accept", media); !bytes.Equal(plain.Body.Bytes(), text) {
		t.Errorf("%s differs when it is not compressed", path)
	}
	return text
}

// TestWholeIsOfParts reads the document of everything, before and after a definition
// has changed: every name is there once, references lead somewhere, and the protobuf
// form is what gnostic makes of the JSON.
func TestWholeIsOfParts(t *testing.T) {
	t.Parallel()
	c := newChanging(3)
	for state := range 3 {
		c.state = state
		text := c.read(t, "/openapi/v2", "application/json")
		if !bytes.Contains(text, []byte(`"length":{"description":"`+strconv.Itoa(state)+`"`)) {
			t.Errorf("state %d is not described", state)
		}
		once(t, text)
		var doc map[string]any
		if err := json.Unmarshal(text, &doc); err != nil {
			t.Fatal(err)
		}
		eachRef(doc, func(ref string) {
			section, name, _ := strings.Cut(strings.TrimPrefix(ref, "#/"), "/")
			if of, ok := doc[section].(map[string]any); !ok || of[name] == nil {
				t.Errorf("%s leads nowhere", ref)
			}
		})
		kinds, _ := json.Marshal(doc["definitions"].(map[string]any)["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"])
		for _, group := range []string{"", "apps", "group2.example.com"} {
			if !bytes.Contains(kinds, []byte(`"group":"`+group+`"`)) {
				t.Errorf("DeleteOptions is not of group %q", group)
			}
		}
		var got openapiv2.Document
		if err := proto.Unmarshal(c.read(t, "/openapi/v2", askedV2), &got); err != nil {
			t.Fatal(err)
		}
		want, err := openapiv2.ParseDocument(text)
		if err != nil {
			t.Fatal(err)
		}
		same(t, &got, want)
	}
}

// same compares documents, of which the order of parameters differs.
func same(t *testing.T, got, want *openapiv2.Document) {
	t.Helper()
	byName := func(d *openapiv2.Document) map[string]*openapiv2.NonBodyParameter {
		out := map[string]*openapiv2.NonBodyParameter{}
		for _, p := range d.GetParameters().GetAdditionalProperties() {
			out[p.GetName()] = p.GetValue().GetNonBodyParameter()
		}
		d.Parameters = nil
		return out
	}
	a, b := byName(got), byName(want)
	if len(a) != len(b) {
		t.Errorf("%d parameters, want %d", len(a), len(b))
	}
	for name, p := range b {
		if !proto.Equal(a[name], p) {
			t.Errorf("parameter %s differs", name)
		}
	}
	if !proto.Equal(got, want) {
		t.Error("the protobuf form differs from the JSON form")
	}
}

// TestThirdVersionInProtobuf compares the two forms of documents of OpenAPI v3.
func TestThirdVersionInProtobuf(t *testing.T) {
	t.Parallel()
	c := newChanging(1)
	for _, path := range []string{"/openapi/v3/apis/apps/v1", "/openapi/v3/apis/group0.example.com/v1", "/openapi/v3/version"} {
		var got openapiv3.Document
		if err := proto.Unmarshal(c.read(t, path, askedV3), &got); err != nil {
			t.Fatal(err)
		}
		want, err := openapiv3.ParseDocument(c.read(t, path, "application/json"))
		if err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(&got, want) {
			t.Errorf("%s: the protobuf form differs from the JSON form", path)
		}
	}
}

// once looks for members of JSON objects that are there twice.
func once(t *testing.T, text []byte) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	var value func(path string)
	value = func(path string) {
		token, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		switch token {
		case json.Delim('{'):
			names := map[string]bool{}
			for d.More() {
				name, err := d.Token()
				if err != nil {
					t.Fatal(err)
				}
				if names[name.(string)] {
					t.Errorf("%s/%s is there twice", path, name)
				}
				names[name.(string)] = true
				value(path + "/" + name.(string))
			}
		case json.Delim('['):
			for d.More() {
				value(path)
			}
		default:
			return
		}
		if _, err := d.Token(); err != nil {
			t.Fatal(err)
		}
	}
	value("")
}
