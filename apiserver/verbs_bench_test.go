package apiserver_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	protobufserializer "k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/periplus/periplus/apiserver/request"
	"github.com/periplus/periplus/test/bench/objects"
)

const (
	benchJSON     = "application/json"
	benchProtobuf = "application/vnd.kubernetes.protobuf"
)

func benchEncode(b *testing.B, obj runtime.Object, media string) []byte {
	b.Helper()
	var text []byte
	var err error
	if media == benchProtobuf {
		text, err = runtime.Encode(protobufserializer.NewSerializer(scheme.Scheme, scheme.Scheme), obj)
	} else {
		text, err = json.Marshal(obj)
	}
	if err != nil {
		b.Fatal(err)
	}
	return text
}

// A benchCaller calls a server's handler as an administrator.
type benchCaller struct {
	b       *testing.B
	handler http.Handler
}

// charge reports what each operation takes of the processors, on a machine that does
// other things, too.
func charge(b *testing.B) (done func()) {
	used := func() int64 {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return u.Utime.Nano() + u.Stime.Nano()
	}
	b.ReportAllocs()
	before := used()
	return func() { b.ReportMetric(float64(used()-before)/float64(b.N), "cpu-ns/op") }
}

// A counter is an answer of which only the size counts.
type counter struct {
	header http.Header
	code   int
	size   int64
}

func (c *counter) Header() http.Header  { return c.header }
func (c *counter) WriteHeader(code int) { c.code = code }
func (c *counter) Write(p []byte) (int, error) {
	c.size += int64(len(p))
	return len(p), nil
}

func (c benchCaller) list(path, accept string) int64 {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Header.Set("Accept", accept)
	r = r.WithContext(request.WithUser(r.Context(), &user.DefaultInfo{Name: "bench", Groups: []string{"system:masters"}}))
	w := &counter{header: http.Header{}}
	c.handler.ServeHTTP(w, r)
	if w.code != http.StatusOK {
		c.b.Fatalf("%s: %d", path, w.code)
	}
	return w.size
}

func (c benchCaller) call(method, path, media, accept string, body []byte) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, bytes.NewReader(body))
	if body != nil {
		r.Header.Set("Content-Type", media)
	}
	r.Header.Set("Accept", accept)
	r = r.WithContext(request.WithUser(r.Context(), &user.DefaultInfo{Name: "bench", Groups: []string{"system:masters"}}))
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, r)
	if w.Code >= http.StatusBadRequest {
		text, _ := io.ReadAll(w.Body)
		c.b.Fatalf("%s %s: %d %s", method, path, w.Code, text)
	}
	return w
}

// BenchmarkVerbs is the server's own part of each verb, without connections and disks:
//
//	go test ./apiserver -run - -bench Verbs
func BenchmarkVerbs(b *testing.B) {
	s, client := start(b)
	if _, err := client.CoreV1().ServiceAccounts("default").Create(b.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
	c := benchCaller{b, s.Handler()}
	const pods = "/api/v1/namespaces/default/pods"
	n := 0
	for _, media := range []string{benchProtobuf, benchJSON} {
		form := "/" + media[len("application/"):]
		b.Run("create"+form, func(b *testing.B) {
			whole := benchEncode(b, objects.Pod("pod-000000", ""), media)
			defer charge(b)()
			for b.Loop() {
				n++
				c.call(http.MethodPost, pods, media, media, bytes.Replace(whole, []byte("pod-000000"), []byte(fmt.Sprintf("pod-%06d", n)), 1))
			}
		})
		one := fmt.Sprint("one-", len(media))
		c.call(http.MethodPost, pods, media, media, benchEncode(b, objects.Pod(one, ""), media))
		b.Run("get"+form, func(b *testing.B) {
			defer charge(b)()
			for b.Loop() {
				c.call(http.MethodGet, pods+"/"+one, media, media, nil)
			}
		})
		b.Run("update"+form, func(b *testing.B) {
			pod, err := client.CoreV1().Pods("default").Get(b.Context(), one, metav1.GetOptions{})
			if err != nil {
				b.Fatal(err)
			}
			pod.APIVersion, pod.Kind, pod.ResourceVersion, pod.ManagedFields = "v1", "Pod", "", nil
			pod.Labels["n"] = "000000"
			whole := benchEncode(b, pod, media)
			defer charge(b)()
			for b.Loop() {
				n++
				c.call(http.MethodPut, pods+"/"+one, media, media, bytes.Replace(whole, []byte("000000"), []byte(fmt.Sprintf("%06d", n)), 1))
			}
		})
	}
	one := "patched"
	c.call(http.MethodPost, pods, benchJSON, benchJSON, benchEncode(b, objects.Pod(one, ""), benchJSON))
	for _, p := range []struct{ name, media, query, body string }{
		{"json patch", "application/json-patch+json", "", `[{"op":"add","path":"/metadata/labels/n","value":"%d"}]`},
		{"merge patch", "application/merge-patch+json", "", `{"metadata":{"labels":{"n":"%d"}}}`},
		{"strategic patch", "application/strategic-merge-patch+json", "", `{"spec":{"containers":[{"name":"app","image":"example.com/app:%d"}]}}`},
		{"status patch", "application/strategic-merge-patch+json", "/status", `{"status":{"conditions":[{"type":"Ready","status":"True","message":"%d"}]}}`},
		{"apply", "application/apply-patch+yaml", "?fieldManager=bench&force=true", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"patched","labels":{"n":"%d"}},"spec":{"containers":[{"name":"app","image":"example.com/app:3"}]}}`},
	} {
		b.Run(p.name, func(b *testing.B) {
			defer charge(b)()
			for b.Loop() {
				n++
				c.call(http.MethodPatch, pods+"/"+one+p.query, p.media, benchProtobuf, []byte(fmt.Sprintf(p.body, n)))
			}
		})
	}
}

// BenchmarkList lists many pods, in what clients ask for.
func BenchmarkList(b *testing.B) {
	s, client := start(b)
	if _, err := client.CoreV1().ServiceAccounts("default").Create(b.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
	c := benchCaller{b, s.Handler()}
	for i := range 5000 {
		c.call(http.MethodPost, "/api/v1/namespaces/default/pods", benchProtobuf, benchProtobuf, benchEncode(b, objects.Pod(fmt.Sprint("pod-", i), ""), benchProtobuf))
	}
	for _, accept := range []string{benchProtobuf, benchJSON, "application/json;as=Table;v=v1;g=meta.k8s.io", "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"} {
		b.Run(accept, func(b *testing.B) {
			size := int64(0)
			defer charge(b)()
			for b.Loop() {
				size = c.list("/api/v1/pods", accept)
			}
			b.SetBytes(size)
		})
	}
}
