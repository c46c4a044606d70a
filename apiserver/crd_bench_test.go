package apiserver_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/periplus/periplus/apiserver/request"
)

// BenchmarkCustomResources compares custom resources with a built-in kind of the
// same size, through the whole pipeline, in JSON:
//
//	go test ./apiserver -run - -bench CustomResources
func BenchmarkCustomResources(b *testing.B) {
	s, _ := start(b)
	d := dynamicClient(b, s)
	define(b, d, crontabs)
	h := s.Handler()
	call := func(method, path, body string) {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r = r.WithContext(request.WithUser(r.Context(), &user.DefaultInfo{Name: "bench", Groups: []string{"system:masters"}}))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code >= http.StatusBadRequest {
			text, _ := io.ReadAll(w.Body)
			b.Fatalf("%s %s: %d %s", method, path, w.Code, text)
		}
	}
	kinds := []struct{ name, path, body string }{
		{"built-in", "/apis/apps/v1/namespaces/default/deployments", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"NAME","labels":{"app":"web"}},"spec":{"replicas":2,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"web:1"}]}}}}`},
		{"custom", "/apis/stable.example.com/v1/namespaces/default/crontabs", `{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"NAME","labels":{"app":"web"}},"spec":{"cronSpec":"* * * * *","replicas":2,"loose":{"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"web:1"}]}}}}}`},
	}
	n := 0
	for _, k := range kinds {
		b.Run("create/"+k.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				n++
				call(http.MethodPost, k.path, strings.Replace(k.body, "NAME", fmt.Sprint("x", n), 1))
			}
		})
	}
	for _, k := range kinds {
		call(http.MethodDelete, k.path, "")
		for i := range 1000 {
			call(http.MethodPost, k.path, strings.Replace(k.body, "NAME", fmt.Sprint("y", i), 1))
		}
		b.Run("list 1000/"+k.name, func(b *testing.B) {
			for b.Loop() {
				call(http.MethodGet, k.path, "")
			}
		})
		b.Run("get/"+k.name, func(b *testing.B) {
			for b.Loop() {
				call(http.MethodGet, k.path+"/y1", "")
			}
		})
		b.Run("patch/"+k.name, func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				r := httptest.NewRequest(http.MethodPatch, k.path+"/y1", strings.NewReader(fmt.Sprintf(`{"metadata":{"labels":{"n":"%d"}}}`, i)))
				r.Header.Set("Content-Type", "application/merge-patch+json")
				r = r.WithContext(request.WithUser(r.Context(), &user.DefaultInfo{Name: "bench", Groups: []string{"system:masters"}}))
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if w.Code != http.StatusOK {
					b.Fatal(w.Body.String())
				}
			}
		})
	}
}

// BenchmarkDefinitions makes many definitions, as an installation of operators does.
func BenchmarkDefinitions(b *testing.B) {
	s, _ := start(b)
	c := dynamicClient(b, s)
	n := 0
	for b.Loop() {
		var last *unstructured.Unstructured
		begin := time.Now()
		for range 200 {
			n++
			text := strings.NewReplacer("crontabs", fmt.Sprint("crontabs", n), "crontab,", fmt.Sprint("crontab", n, ","), "CronTab,", fmt.Sprint("CronTab", n, ","), "shortNames: [ct], ", "").Replace(crontabs)
			var err error
			if last, err = c.Resource(definitions).Create(b.Context(), fromYAML(b, text), metav1.CreateOptions{}); err != nil {
				b.Fatal(err)
			}
		}
		awaitCondition(b, c, last, "Established", "True")
		b.ReportMetric(time.Since(begin).Seconds(), "s/200")
	}
}
