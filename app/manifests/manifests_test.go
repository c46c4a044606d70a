package manifests

import (
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want, err string }{
		{"order", "kind: Pod\napiVersion: v1\nmetadata: {name: p}\n---\n# only a comment\n---\nkind: Namespace\napiVersion: v1\nmetadata: {name: space}\n", "2 Namespace space, 1 Pod p", ""},
		{"list", "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Secret, metadata: {name: a}}, {apiVersion: v1, kind: Pod, metadata: {name: b}}]", "1 Secret a, 1 Pod b", ""},
		{"json", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}`, "1 Pod p", ""},
		{"nameless", "apiVersion: v1\nkind: Pod\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\n", "2 Pod p", "document 1: metadata.name is missing"},
		{"kindless", "apiVersion: v1\nmetadata: {name: p}\n", "", "document 1: kind is missing"},
		{"broken", "a: [\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\n", "2 Pod p", "document 1: "},
		{"twice", "apiVersion: v1\nkind: Pod\nkind: Pod\nmetadata: {name: p}\n", "", `key "kind" already set`},
		{"empty", "", "", ""},
	} {
		docs, err := read([]byte(c.text))
		var got []string
		for _, d := range docs {
			got = append(got, string(rune('0'+d.number))+" "+d.object.GetKind()+" "+d.object.GetName())
		}
		if s := strings.Join(got, ", "); s != c.want {
			t.Errorf("%s: read %q, want %q", c.name, s, c.want)
		}
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.err)
		}
	}
}
