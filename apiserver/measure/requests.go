package measure

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/periplus/periplus/base/metric"
)

// component is the value of the label by which this server is told from those behind it.
const component = "apiserver"

// requests are the metrics of requests as a whole.
type requests struct {
	series     *metric.Family[*series]
	lasting    *metric.Gauges
	fields     *metric.Histograms
	bodies     *metric.Histograms
	ended      *metric.Counters
	aborted    *metric.Counters
	self       *metric.Counters
	deprecated *metric.Gauges
	inFlight   [2]*tide // reading, writing
	inQueue    [2]*tide
}

// A series is what is counted of one kind of request.
type series struct {
	codes             *metric.Counters                   // by the first label alone
	ok                atomic.Pointer[prometheus.Counter] // of code 200, which most have
	took, own, answer prometheus.Observer
}

// count counts an answer.
func (s *series) count(status int) {
	if status != http.StatusOK && status != 0 {
		s.codes.Of(metric.Labels{code(status)}).Inc()
		return
	}
	c := s.ok.Load()
	if c == nil {
		made := s.codes.Of(metric.Labels{code(status)})
		c = &made
		s.ok.Store(c)
	}
	(*c).Inc()
}

func newRequests(s *metric.Set) requests {
	kind := []string{"verb", "group", "version", "resource", "subresource", "scope", "component"}
	r := requests{
		fields: s.Histogram(metric.Alpha, "field_validation_request_duration_seconds", "Response latency distribution in seconds for each field validation value", slow[2:], "field_validation"),
		bodies: s.Histogram(metric.Alpha, "apiserver_request_body_size_bytes", "Apiserver request body size in bytes broken out by resource and verb.", prometheus.LinearBuckets(50000, 100000, 31), "group", "resource", "verb"),
		ended: s.Counter(metric.Alpha, "apiserver_request_terminations_total", "Number of requests which apiserver terminated in self-defense.",
			append(slices.Clone(kind), "code")...),
		aborted: s.Counter(metric.Alpha, "apiserver_request_aborts_total", "Number of requests which apiserver aborted possibly due to a timeout, for each group, version, verb, resource, subresource and scope",
			kind[:6]...),
		self:       s.Counter(metric.Alpha, "apiserver_selfrequest_total", "Counter of apiserver self-requests broken out for each verb, API resource and subresource.", "verb", "group", "resource", "subresource"),
		deprecated: s.Gauge(metric.Stable, "apiserver_requested_deprecated_apis", "Gauge of deprecated APIs that have been requested, broken out by API group, version, resource, subresource, and removed_release.", "group", "version", "resource", "subresource", "removed_release"),
	}
	counts := s.CounterVec(metric.Stable, "apiserver_request_total", "Counter of apiserver requests broken out for each verb, dry run value, group, version, resource, scope, component, and HTTP response code.",
		"verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component", "code")
	took := s.HistogramVec(metric.Stable, "apiserver_request_duration_seconds", "Response latency distribution in seconds for each verb, dry run value, group, version, resource, subresource, scope and component.", slow,
		"verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component")
	own := s.HistogramVec(metric.Alpha, "apiserver_request_sli_duration_seconds", "Response latency distribution (not counting webhook duration and priority & fairness queue wait times) in seconds for each verb, group, version, resource, subresource, scope and component.", slow[2:], kind...)
	sizes := s.HistogramVec(metric.Stable, "apiserver_response_sizes", "Response size distribution in bytes for each group, version, verb, resource, subresource, scope and component.", prometheus.ExponentialBuckets(1000, 10.0, 7), kind...)
	r.series = metric.NewFamily(func(l metric.Labels) *series {
		out := &series{
			took: took.WithLabelValues(append(slices.Clone(l[:7]), component)...),
			codes: metric.NewFamily(func(code metric.Labels) prometheus.Counter {
				return counts.WithLabelValues(append(slices.Clone(l[:7]), component, code[0])...)
			}),
		}
		short := []string{l[0], l[2], l[3], l[4], l[5], l[6], component}
		if l[1] == "" {
			out.own = own.WithLabelValues(short...)
		}
		if l[0] == http.MethodGet || l[0] == "LIST" {
			out.answer = sizes.WithLabelValues(short...)
		}
		return out
	})
	gauges := s.GaugeVec(metric.Stable, "apiserver_longrunning_requests", "Gauge of all active long-running apiserver requests broken out by verb, group, version, resource, scope and component. Not all requests are tracked this way.", kind...)
	r.lasting = metric.NewFamily(func(l metric.Labels) prometheus.Gauge {
		return gauges.WithLabelValues(l[0], l[2], l[3], l[4], l[5], l[6], component)
	})
	executing := s.Desc(metric.Stable, "gauge", "apiserver_current_inflight_requests", "Maximal number of currently used inflight request limit of this apiserver per request kind in last second.", "request_kind")
	waiting := s.Desc(metric.Alpha, "gauge", "apiserver_current_inqueue_requests", "Maximal number of queued requests in this apiserver per request kind in last second.", "request_kind")
	r.inFlight, r.inQueue = [2]*tide{{}, {}}, [2]*tide{{}, {}}
	s.MustRegister(&metric.Reading{Descs: []*prometheus.Desc{executing, waiting}, Read: func(out chan<- prometheus.Metric) {
		for i, kind := range []string{"readOnly", "mutating"} {
			metric.Show(out, executing, float64(r.inFlight[i].highest()), kind)
			metric.Show(out, waiting, float64(r.inQueue[i].highest()), kind)
		}
	}})
	return r
}

// A Request is what is measured of one that was served.
type Request struct {
	Of        metric.Labels // made by Kind
	Code      int
	Written   int64         // bytes of the answer
	Took      time.Duration // since it was received
	Elsewhere time.Duration // of which it waited for a seat and for webhooks
}

// Kind are the labels of a request: verb, dry run, group, version, resource, subresource
// and scope, in upstream's terms.
func Kind(r *http.Request, verb, group, version, resource, subresource, namespace, name string, isResource bool) metric.Labels {
	l := metric.Labels{http.MethodGet, "", group, version, resource, subresource, ""}
	switch {
	case name != "" || verb == "create":
		l[6] = "resource"
	case namespace != "":
		l[6] = "namespace"
	case isResource:
		l[6] = "cluster"
	}
	switch subresource {
	case "log", "exec", "portforward", "attach", "proxy":
		if isResource {
			l[0] = "CONNECT"
			return l
		}
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		switch {
		case verb == "watch":
			l[0] = "WATCH"
		case l[6] != "resource" && l[6] != "":
			l[0] = "LIST"
		}
	case http.MethodPatch:
		l[0] = http.MethodPatch
		if strings.HasPrefix(r.Header.Get("Content-Type"), "application/apply-patch+") {
			l[0] = "APPLY"
		}
	case http.MethodPost, http.MethodPut, http.MethodDelete:
		l[0] = r.Method
	default:
		l[0] = "other"
	}
	if strings.Contains(r.URL.RawQuery, "dryRun") {
		l[1] = dryRun(r.URL)
	}
	return l
}

func dryRun(u *url.URL) string {
	for _, v := range u.Query()["dryRun"] {
		if v != "All" {
			return "invalid"
		}
	}
	return "All"
}

// Served counts a request that was served.
func (m *Metrics) Served(r *Request) {
	if m == nil {
		return
	}
	s := m.series.Of(r.Of)
	s.count(r.Code)
	s.took.Observe(r.Took.Seconds())
	if s.own != nil {
		s.own.Observe((r.Took - r.Elsewhere).Seconds())
	}
	if s.answer != nil {
		s.answer.Observe(float64(r.Written))
	}
}

// Dropped counts a request that was not served because there are too many.
func (m *Metrics) Dropped(of metric.Labels) {
	if m == nil {
		return
	}
	m.series.Of(of).codes.Of(metric.Labels{"429"}).Inc()
	m.Terminated(of, http.StatusTooManyRequests)
}

// Terminated counts a request that the server ended in self-defence.
func (m *Metrics) Terminated(of metric.Labels, status int) {
	if m != nil {
		m.ended.Of(metric.Labels{of[0], of[2], of[3], of[4], of[5], of[6], component, code(status)}).Inc()
	}
}

// Aborted counts a request whose answer was broken off.
func (m *Metrics) Aborted(of metric.Labels) {
	if m != nil {
		m.aborted.Of(metric.Labels{of[0], of[2], of[3], of[4], of[5], of[6]}).Inc()
	}
}

// Lasts counts a request that lasts; the result is called at its end.
func (m *Metrics) Lasts(of metric.Labels) (end func()) {
	if m == nil {
		return func() {}
	}
	of[1] = ""
	g := m.lasting.Of(of)
	g.Inc()
	return g.Dec
}

// ByItself counts a request that the server has sent to itself.
func (m *Metrics) ByItself(of metric.Labels) {
	if m != nil {
		m.self.Of(metric.Labels{of[0], of[2], of[4], of[5]}).Inc()
	}
}

// Deprecated notes that a version was asked for that will be removed in a release ("1.40",
// or "").
func (m *Metrics) Deprecated(group, version, resource, subresource, removed string) {
	if m != nil {
		m.deprecated.Of(metric.Labels{group, version, resource, subresource, removed}).Set(1)
	}
}

// Body counts the body of a write.
func (m *Metrics) Body(group, resource, verb string, size int) {
	if m == nil {
		return
	}
	if verb == "deletecollection" {
		verb = "delete_collection"
	}
	m.bodies.Of(metric.Labels{group, resource, verb}).Observe(float64(size))
}

// InFlight follows the requests that are served.
func (m *Metrics) InFlight(writes bool) *Tide {
	if m == nil {
		return nil
	}
	return (*Tide)(m.inFlight[index(writes)])
}

// InQueue follows the requests that wait for a seat.
func (m *Metrics) InQueue(writes bool) *Tide {
	if m == nil {
		return nil
	}
	return (*Tide)(m.inQueue[index(writes)])
}

func index(writes bool) int {
	if writes {
		return 1
	}
	return 0
}

// code is a status as the value of a label.
func code(status int) string {
	switch status {
	case 0, http.StatusOK:
		return "200"
	case http.StatusCreated:
		return "201"
	case http.StatusNotFound:
		return "404"
	case http.StatusConflict:
		return "409"
	}
	return strconv.Itoa(status)
}

// A Tide is a number that comes and goes, and its highest of late.
type Tide tide

type tide struct {
	now  atomic.Int64
	high atomic.Int64 // the second in the upper half, the highest in it below
}

// Up adds one at a time.
func (t *Tide) Up(at time.Time) {
	if t == nil {
		return
	}
	n := t.now.Add(1)
	second := at.Unix() & 0x7fffffff
	for {
		before := t.high.Load()
		if before>>32 == second && before&0xffffffff >= n {
			return
		}
		if t.high.CompareAndSwap(before, second<<32|n) {
			return
		}
	}
}

// Down takes one away.
func (t *Tide) Down() {
	if t != nil {
		t.now.Add(-1)
	}
}

// highest is the highest of this second and the one before, at least what it is now.
func (t *tide) highest() int64 {
	high, now := t.high.Load(), t.now.Load()
	if age := time.Now().Unix()&0x7fffffff - high>>32; age >= 0 && age <= 1 {
		return max(now, high&0xffffffff)
	}
	return now
}
