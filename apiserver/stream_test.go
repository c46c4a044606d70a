package apiserver_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	protobufserializer "k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/periplus/periplus/apiserver/request"
)

// TestLargeListsInAllForms lists more than is put together in memory: whatever the form,
// compressed or not, the items are the same, and as each is when it is read alone.
func TestLargeListsInAllForms(t *testing.T) {
	t.Parallel()
	s, c := start(t)
	maps := c.CoreV1().ConfigMaps("default")
	const many = 200
	for i := range many {
		if _, err := maps.Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("map-%03d", i)}, Data: map[string]string{"k": strings.Repeat("ä", 1000)},
		}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	read := func(path, accept, encoding string) []byte {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("Accept", accept)
		r.Header.Set("Accept-Encoding", encoding)
		r = r.WithContext(request.WithUser(r.Context(), &user.DefaultInfo{Name: "test", Groups: []string{"system:masters"}}))
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != accept {
			t.Fatalf("%s: %d %v", path, w.Code, w.Header())
		}
		if n := w.Header().Get("Content-Length"); n != "" && n != fmt.Sprint(w.Body.Len()) {
			t.Errorf("%s: Content-Length %s, %d bytes", path, n, w.Body.Len())
		}
		var body io.Reader = w.Body
		if w.Header().Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(w.Body)
			if err != nil {
				t.Fatal(err)
			}
			body = z
		} else if encoding == "gzip" && strings.HasSuffix(path, "configmaps") {
			t.Errorf("%s in %s is not compressed", path, accept)
		}
		out, err := io.ReadAll(body)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	const path = "/api/v1/namespaces/default/configmaps"
	var want corev1.ConfigMapList
	if err := json.Unmarshal(read(path, benchJSON, ""), &want); err != nil {
		t.Fatal(err)
	}
	if len(want.Items) < many || want.ResourceVersion == "" || want.Kind != "ConfigMapList" {
		t.Fatalf("%d items, revision %q, kind %q", len(want.Items), want.ResourceVersion, want.Kind)
	}
	decoder := protobufserializer.NewSerializer(scheme.Scheme, scheme.Scheme)
	for _, encoding := range []string{"", "gzip"} {
		var got corev1.ConfigMapList
		if err := json.Unmarshal(read(path, benchJSON, encoding), &got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got.Items, want.Items) {
			t.Errorf("JSON, %q: the items differ", encoding)
		}
		var binary corev1.ConfigMapList
		if _, _, err := decoder.Decode(read(path, benchProtobuf, encoding), nil, &binary); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(binary.Items, want.Items) || binary.ResourceVersion == "" {
			t.Errorf("protobuf, %q: the items differ", encoding)
		}
	}
	for i := range want.Items {
		var one corev1.ConfigMap
		if _, _, err := decoder.Decode(read(path+"/"+want.Items[i].Name, benchProtobuf, ""), nil, &one); err != nil {
			t.Fatal(err)
		}
		if one.TypeMeta = (metav1.TypeMeta{}); !reflect.DeepEqual(one, want.Items[i]) {
			t.Fatalf("%s differs when it is read alone", one.Name)
		}
	}
}
