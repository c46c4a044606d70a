package apiserver_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/apiserver"
	"github.com/periplus/periplus/apiserver/measure"
	"github.com/periplus/periplus/base/metric"
)

// TestUpstreamsMetrics: every metric that upstream calls stable or beta is there, with the
// same type, labels and buckets.
func TestUpstreamsMetrics(t *testing.T) {
	t.Parallel()
	s, _ := start(t)
	defined := map[string]metric.Definition{}
	for _, d := range append(s.Metrics().Definitions(), measure.NewSLIs().Definitions()...) {
		if _, twice := defined[d.Name]; twice {
			t.Errorf("%s is defined twice", d.Name)
		}
		defined[d.Name] = d
	}
	list, err := os.Open("measure/testdata/upstream.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close() //nolint:errcheck // only read
	lines, n := bufio.NewScanner(list), 0
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		n++
		f := append(strings.Fields(lines.Text()), "", "")
		d, ok := defined[f[1]]
		var buckets []string
		for _, b := range d.Buckets {
			buckets = append(buckets, strconv.FormatFloat(b, 'g', -1, 64))
		}
		switch {
		case !ok:
			t.Errorf("%s is missing", f[1])
		case string(d.Level) != f[0] || d.Type != f[2]:
			t.Errorf("%s: %s %s, want %s %s", f[1], d.Level, d.Type, f[0], f[2])
		case strings.Join(d.Labels, ",") != f[3]:
			t.Errorf("%s: labels %v, want %s", f[1], d.Labels, f[3])
		case strings.Join(buckets, ",") != f[4]:
			t.Errorf("%s: buckets %v, want %s", f[1], buckets, f[4])
		}
	}
	if n < 30 {
		t.Errorf("%d metrics in the list", n)
	}
}

// figures reads /metrics, or another such path.
func figures(t *testing.T, s *apiserver.Server, path string) map[string]float64 {
	t.Helper()
	w := send(t, s, http.MethodGet, path, "", nil)
	out := map[string]float64{}
	for line := range strings.Lines(w.Body.String()) {
		at := strings.LastIndexByte(line, ' ')
		if strings.HasPrefix(line, "#") || at < 0 {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(line[at:]), 64)
		if err != nil {
			t.Errorf("%q: %v", line, err)
		}
		out[line[:at]] = v
	}
	return out
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	s, c := start(t)
	ctx := t.Context()
	secrets := c.CoreV1().Secrets("default")
	for _, name := range []string{"a", "b"} {
		if _, err := secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "c"}}, metav1.CreateOptions{DryRun: []string{"All"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := secrets.Get(ctx, "none", metav1.GetOptions{}); err == nil {
		t.Fatal("there is none")
	}
	if _, err := secrets.List(ctx, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CoreV1().Endpoints("default").List(ctx, metav1.ListOptions{}); err != nil { //nolint:staticcheck // that it is deprecated is the point
		t.Fatal(err)
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	w, err := secrets.Watch(watching, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		<-w.ResultChan()
	}
	send(t, s, http.MethodGet, "/api/v1/namespaces/default/nonsense", "", nil)
	send(t, s, http.MethodGet, "/readyz", "", nil)

	got := figures(t, s, "/metrics")
	const of = `component="apiserver",dry_run="",group="",resource="secrets",`
	for name, want := range map[string]float64{
		`apiserver_request_total{code="201",` + of + `scope="resource",subresource="",verb="POST",version="v1"}`:                                                                                                                           2,
		`apiserver_request_total{code="201",component="apiserver",dry_run="All",group="",resource="secrets",scope="resource",subresource="",verb="POST",version="v1"}`:                                                                     1,
		`apiserver_request_total{code="404",` + of + `scope="resource",subresource="",verb="GET",version="v1"}`:                                                                                                                            1,
		`apiserver_request_duration_seconds_count{` + of + `scope="namespace",subresource="",verb="LIST",version="v1"}`:                                                                                                                    1,
		`apiserver_response_sizes_count{component="apiserver",group="",resource="secrets",scope="namespace",subresource="",verb="LIST",version="v1"}`:                                                                                      1,
		`apiserver_request_sli_duration_seconds_bucket{component="apiserver",group="",resource="secrets",scope="resource",subresource="",verb="POST",version="v1",le="60"}`:                                                                2,
		`apiserver_longrunning_requests{component="apiserver",group="",resource="secrets",scope="namespace",subresource="",verb="WATCH",version="v1"}`:                                                                                     1,
		`apiserver_watch_events_total{group="",resource="secrets",version="v1"}`:                                                                                                                                                           2,
		`apiserver_requested_deprecated_apis{group="",removed_release="",resource="endpoints",subresource="",version="v1"}`:                                                                                                                1,
		`apiserver_request_body_size_bytes_count{group="",resource="secrets",verb="create"}`:                                                                                                                                               3,
		`kubernetes_build_info{build_date="",compiler="gc",git_commit="",git_tree_state="clean",git_version="v1.37.2",go_version="` + runtime.Version() + `",major="1",minor="37",platform="` + runtime.GOOS + "/" + runtime.GOARCH + `"}`: 1,
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s is %v, want %v", name, v, want)
		}
	}
	for _, name := range []string{
		`apiserver_storage_objects{resource="secrets"}`, `apiserver_resource_objects{group="apps",resource="deployments"}`, `apiserver_flowcontrol_nominal_limit_seats{priority_level="workload-low"}`,
		`apiserver_audit_event_total`, `go_goroutines`, `process_resident_memory_bytes`, `aggregator_unavailable_apiservice{name="v1."}`, `apiserver_current_inflight_requests{request_kind="readOnly"}`,
		`apiserver_admission_controller_admission_duration_seconds_count{name="NamespaceLifecycle",operation="CREATE",rejected="false",type="admit"}`,
		`apiserver_admission_step_admission_duration_seconds_count{operation="CREATE",rejected="false",type="admit"}`, `apiserver_cache_list_returned_objects_total{group="",resource="secrets"}`,
		`etcd_requests_total{group="",operation="create",resource="secrets"}`, `etcd_request_duration_seconds_count{group="",operation="create",resource="secrets"}`,
		`authorization_attempts_total{result="allowed"}`, `apiserver_selfrequest_total{group="rbac.authorization.k8s.io",resource="clusterroles",subresource="",verb="POST"}`,
	} {
		if _, ok := got[name]; !ok { // how many there are depends on what the server does by itself
			t.Errorf("%s is missing", name)
		}
	}
	for name := range got {
		if strings.Contains(name, "nonsense") {
			t.Errorf("%s: clients can make series", name)
		}
	}
	health := figures(t, s, "/metrics/slis")
	if health[`kubernetes_healthcheck{name="etcd",type="readyz"}`] != 1 || health[`kubernetes_healthchecks_total{name="ping",status="success",type="readyz"}`] < 1 {
		t.Errorf("%v", health)
	}
}

// TestMetricsFormats: text or protobuf, compressed or not.
func TestMetricsFormats(t *testing.T) {
	t.Parallel()
	s, _ := start(t)
	for accept, want := range map[string]string{
		"": "text/plain; version=0.0.4", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited": "application/vnd.google.protobuf;",
	} {
		w := send(t, s, http.MethodGet, "/metrics", "", nil, "Accept", accept, "Accept-Encoding", "gzip")
		if got := w.Header().Get("Content-Type"); w.Code != http.StatusOK || !strings.HasPrefix(got, want) {
			t.Errorf("%d, %s, want %s", w.Code, got, want)
		}
		if encoding := w.Header().Values("Content-Encoding"); !slices.Contains(encoding, "gzip") {
			t.Errorf("%v", encoding)
		}
		if _, err := gzip.NewReader(w.Body); err != nil {
			t.Error(err)
		}
	}
}
