package measure_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/periplus/periplus/apiserver/measure"
)

// BenchmarkRequest is all that measuring adds to a request that reads one object.
func BenchmarkRequest(b *testing.B) {
	m := measure.New()
	r := httptest.NewRequest(http.MethodGet, "/api/v1/namespaces/n/configmaps/c", nil)
	received := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		m.Authenticated("system:serviceaccount:n:a", nil, time.Since(received))
		m.Authorized(measure.Allowed, time.Since(received))
		m.InFlight(false).Up(received)
		of := measure.Kind(r, "get", "", "v1", "configmaps", "", "n", "c", true)
		m.Served(&measure.Request{Of: of, Code: http.StatusOK, Written: 1000, Took: time.Since(received)})
		m.InFlight(false).Down()
	}
}

// BenchmarkPlugins is what measuring adds to a write that thirty plug-ins are asked about.
func BenchmarkPlugins(b *testing.B) {
	m := measure.New()
	for b.Loop() {
		last := time.Now()
		for i := range 30 {
			now := time.Now()
			m.Plugin(i, "Plugin", measure.Admit, "CREATE", false, now.Sub(last))
			last = now
		}
	}
}
