package meshtest_test

import (
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/periplus/periplus/mesh/meshtest"
)

// BenchmarkRequest is one request after the other over a kept connection: to the
// application directly, and through both sidecars with mutual TLS. The difference is
// what the mesh adds.
func BenchmarkRequest(b *testing.B) {
	m := meshtest.New(b)
	app := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 1024)) })
	m.Pod("shop", "web", map[string]string{"app": "web"}, app)
	m.Service("shop", "web", map[string]string{"app": "web"}, "http", 80)
	m.Stranger("plain", "web", map[string]string{"app": "web"}, app)
	m.Service("plain", "web", map[string]string{"app": "web"}, "http", 80)
	client, stranger := m.Pod("shop", "client", map[string]string{"app": "client"}, nil), m.Stranger("plain", "client", nil, nil)
	for _, c := range []struct {
		name, url string
		pod       *meshtest.Pod
	}{{"direct", "http://web.plain/", stranger}, {"mesh", "http://web.shop/", client}} {
		b.Run(c.name, func(b *testing.B) {
			h := c.pod.Client()
			h.Transport.(*http.Transport).DisableKeepAlives = false
			defer h.CloseIdleConnections()
			once := func() bool {
				r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, c.url, nil)
				if err != nil {
					b.Fatal(err)
				}
				resp, err := h.Do(r)
				if err != nil {
					return false
				}
				defer resp.Body.Close()
				_, err = io.Copy(io.Discard, resp.Body)
				return err == nil && resp.StatusCode == 200
			}
			for !once() { // the configuration is on its way
			}
			var took []time.Duration
			for b.Loop() {
				start := time.Now()
				if !once() {
					b.Fatal("a request failed")
				}
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}
