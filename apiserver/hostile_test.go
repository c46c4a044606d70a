package apiserver_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/periplus/periplus/apiserver"
	"github.com/periplus/periplus/apiserver/request"
)

// send is one request of somebody who may do everything.
func send(t testing.TB, s *apiserver.Server, method, target, media string, body []byte, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(request.WithUser(t.Context(), &user.DefaultInfo{Name: "root", Groups: []string{user.SystemPrivilegedGroup}}), method, target, bytes.NewReader(body))
	if media != "" {
		r.Header.Set("Content-Type", media)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return w
}

// protobuf puts a message into the envelope.
func protobuf(t testing.TB, apiVersion, kind string, raw []byte) []byte {
	t.Helper()
	u := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: raw}
	out, err := u.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte("k8s\x00"), out...)
}

// field is one field of a protobuf message that has a length.
func field(number int, content []byte) []byte {
	out := appendVarint(nil, uint64(number)<<3|2)
	return append(appendVarint(out, uint64(len(content))), content...)
}

// nest is a message whose field holds a message of the same kind, and so on.
func nest(number, depth int) []byte {
	var backwards []byte
	for size := 0; depth > 0; depth-- {
		head := appendVarint(appendVarint(nil, uint64(number)<<3|2), uint64(size))
		size += len(head)
		slices.Reverse(head)
		backwards = append(backwards, head...)
	}
	slices.Reverse(backwards)
	return backwards
}

func appendVarint(out []byte, n uint64) []byte {
	for n >= 0x80 {
		out = append(out, byte(n)|0x80)
		n >>= 7
	}
	return append(out, byte(n))
}

// TestHostileBodies: what is small and stands for something large is refused in a
// few words, and the server goes on.
func TestHostileBodies(t *testing.T) {
	t.Parallel()
	s, _ := start(t)
	define(t, dynamicClient(t, s), crontabs)
	const maps, tabs = "/api/v1/namespaces/default/configmaps", "/apis/stable.example.com/v1/namespaces/default/crontabs"
	const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	objects := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }

	laughs := "kind: ConfigMap\napiVersion: v1\nmetadata: {name: x}\na: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'j'; c++ {
		laughs += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 9), ","))
	}
	long := "kind: ConfigMap\napiVersion: v1\nmetadata: {name: x}\ndata:\n  a: &a " + strings.Repeat("x", 1<<20) + "\n"
	for i := range 2000 {
		long += fmt.Sprintf("  a%d: *a\n", i)
	}
	aliases := "kind: ConfigMap\napiVersion: v1\nmetadata: {name: aliases, labels: &l {a: b}, annotations: *l}\n"

	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(bytes.Repeat([]byte(" "), 64<<20)); err != nil || z.Close() != nil {
		t.Fatal(err)
	}

	schema := nest(29, 100000) // not
	// spec.versions[].schema.openAPIV3Schema
	nested := protobuf(t, "apiextensions.k8s.io/v1", "CustomResourceDefinition", field(2, field(7, field(4, field(1, schema)))))
	copies := `[{"op":"add","path":"/data","value":{"a":"` + strings.Repeat("x", 1<<16) + `"}}`
	for i := range 5000 {
		copies += fmt.Sprintf(`,{"op":"copy","from":"/data","path":"/data/%d"}`, i)
	}
	copies += "]"
	if w := send(t, s, http.MethodPost, maps, "application/json", []byte(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"there"}}`)); w.Code != http.StatusCreated {
		t.Fatalf("%d %s", w.Code, w.Body)
	}

	for _, c := range []struct {
		name, method, path, media string
		body                      []byte
		code                      int
		text                      string
	}{
		{"deep JSON", "POST", maps, "application/json", []byte(deep(1 << 20)), 400, "exceeded max depth"},
		{"deep JSON in a field", "POST", maps, "application/json", []byte(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x"},"data":` + objects(300000) + `}`), 400, "exceeded max depth"},
		{"deep JSON in a custom resource", "POST", tabs, "application/json", []byte(`{"kind":"CronTab","apiVersion":"stable.example.com/v1","metadata":{"name":"x"},"spec":{"cronSpec":"* * * * *","loose":` + objects(300000) + `}}`), 400, "exceeded max depth"},
		{"deep YAML", "POST", maps, "application/yaml", []byte(deep(1 << 20)), 400, ""},
		{"many laughs", "POST", maps, "application/yaml", []byte(laughs), 400, "excessive aliasing"},
		{"many laughs applied", "PATCH", maps + "/x?fieldManager=x", "application/apply-patch+yaml", []byte(laughs), 400, "excessive aliasing"},
		{"long aliases", "POST", maps, "application/yaml", []byte(long), 400, "excessive aliasing"},
		{"long aliases applied", "PATCH", maps + "/x?fieldManager=x", "application/apply-patch+yaml", []byte(long), 400, "excessive aliasing"},
		{"an alias of itself", "POST", maps, "application/yaml", []byte("kind: ConfigMap\napiVersion: v1\ndata: &d {x: *d}\n"), 400, ""},
		{"ordinary aliases", "POST", maps, "application/yaml", []byte(aliases), 201, `"b"`},
		{"compressed", "POST", maps, "application/json", packed.Bytes(), 400, ""},
		{"absurd length", "POST", maps, runtime.ContentTypeProtobuf, protobuf(t, "v1", "ConfigMap", []byte{0x0A, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F}), 400, ""},
		{"absurd length of the envelope", "POST", maps, runtime.ContentTypeProtobuf, []byte("k8s\x00\x12\xFF\xFF\xFF\xFF\x7F"), 400, ""},
		{"a schema in itself", "POST", definitions, runtime.ContentTypeProtobuf, nested, 400, "levels deep"},
		{"an array of all there is", "POST", maps, "application/cbor", []byte("\xd9\xd9\xf7\x9b\x7f\xff\xff\xff\xff\xff\xff\xff"), 400, ""},
		{"deep CBOR", "POST", maps, "application/cbor", append([]byte("\xd9\xd9\xf7"), bytes.Repeat([]byte{0x81}, 1<<20)...), 400, ""},
		{"too large", "POST", maps, "application/json", bytes.Repeat([]byte(" "), 3<<20+1), 413, "Request entity too large: limit is 3145728"},
		{"copies of copies", "PATCH", maps + "/there", "application/json-patch+json", []byte(copies), 422, ""},
		{"many operations", "PATCH", maps + "/there", "application/json-patch+json", []byte("[" + strings.Repeat(`{"op":"test","path":"/kind","value":"ConfigMap"},`, 10000) + `{"op":"test","path":"/kind","value":"ConfigMap"}]`), 413, "The allowed maximum operations in a JSON patch is 10000, got 10001"},
		{"deep merge patch", "PATCH", maps + "/there", "application/merge-patch+json", []byte(`{"data":` + objects(300000) + `}`), 400, ""},
		{"deep strategic patch", "PATCH", maps + "/there", "application/strategic-merge-patch+json", []byte(`{"data":` + objects(300000) + `}`), 400, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			headers := []string{}
			if c.name == "compressed" {
				headers = append(headers, "Content-Encoding", "gzip")
			}
			w := send(t, s, c.method, c.path, c.media, c.body, headers...)
			answer := w.Body.String()
			if w.Code != c.code || !strings.Contains(answer, c.text) {
				t.Errorf("%d %.300s\nwant %d %s", w.Code, answer, c.code, c.text)
			}
			if c.code != http.StatusCreated && len(answer) > 64<<10 {
				t.Errorf("the refusal has %d bytes", len(answer))
			}
		})
	}
}

// TestDeepSchema: a definition whose schema is as deep as decoders let it be is
// answered.
func TestDeepSchema(t *testing.T) {
	t.Parallel()
	s, _ := start(t)
	const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	for _, level := range []string{`{"type":"object","properties":{"a":`, `{"type":"array","items":`, `{"type":"object","not":`, `{"type":"object","allOf":[`} {
		end := strings.NewReplacer("{", "}", "[", "]").Replace(strings.Join(strings.FieldsFunc(level, func(r rune) bool { return r != '{' && r != '[' }), ""))
		runes := []rune(end)
		slices.Reverse(runes)
		depth := 900 / len(end)
		schema := strings.Repeat(level, depth) + `{"type":"object"}` + strings.Repeat(string(runes), depth)
		body := `{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","metadata":{"name":"deeps.example.com"},"spec":{"group":"example.com","scope":"Cluster",` +
			`"names":{"plural":"deeps","singular":"deep","kind":"Deep","listKind":"DeepList"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":` + schema + `}}]}}`
		w := send(t, s, http.MethodPost, definitions+"?dryRun=All", "application/json", []byte(body))
		if w.Code >= http.StatusInternalServerError {
			t.Errorf("%s: %d %.300s", level, w.Code, w.Body)
		}
		if w.Body.Len() > 2<<20 {
			t.Errorf("%s: the answer has %d bytes", level, w.Body.Len())
		}
	}
}

// TestHostileQueries: tokens, selectors and revisions that nobody gave.
func TestHostileQueries(t *testing.T) {
	t.Parallel()
	s, _ := start(t)
	token := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	for _, c := range []struct{ query, text string }{
		{"continue=%00", "continue key is not valid"},
		{"continue=" + token(`{"v":"meta.k8s.io/v1","rv":1,"start":"/registry/secrets/"}`), "continue key is not valid"},
		{"continue=" + token(`{"v":"meta.k8s.io/v1","rv":0,"start":""}`), "continue key is not valid"},
		{"continue=" + token(`{"v":"meta.k8s.io/v9","rv":1,"start":""}`), "continue key is not valid"},
		{"labelSelector=" + strings.Repeat("a%20in%20(", 1000), "unable to parse requirement"},
		{"labelSelector=a%3D%3D%3Db", "unable to parse requirement"},
		{"fieldSelector=metadata.name", "invalid selector"},
		{"resourceVersion=-1", "nvalid"},
		{"limit=x", "strconv"},
		{"timeout=soon", "invalid timeout specified in the request URL"},
	} {
		w := send(t, s, http.MethodGet, "/api/v1/configmaps?"+c.query, "", nil)
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), c.text) {
			t.Errorf("%.60s: %d %.300s, want 400 %s", c.query, w.Code, w.Body, c.text)
		}
	}
	if w := send(t, s, http.MethodGet, "/api/v1/configmaps?timeout=2h", "", nil); w.Code != http.StatusOK {
		t.Errorf("more time than there is: %d", w.Code)
	}
}
