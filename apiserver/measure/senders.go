package measure

import (
	"cmp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/periplus/periplus/base/metric"
)

// senders are the metrics of who sends requests and what they may do.
type senders struct {
	users               *metric.Counters
	other               slot[prometheus.Counter]
	tries               [3]outcome
	decisions           [4]outcome
	modes               *metric.Counters
	posing              *metric.Counters
	posingTook          *metric.Histograms
	certificates        *metric.Histograms
	legacy, stale, good *metric.Counters
}

func newSenders(s *metric.Set) *senders {
	short := prometheus.ExponentialBuckets(0.001, 2, 15)
	tries := s.Counter(metric.Alpha, "authentication_attempts", "Counter of authenticated attempts.", "result")
	tryTook := s.Histogram(metric.Alpha, "authentication_duration_seconds", "Authentication duration in seconds broken out by result.", short, "result")
	decided := s.Counter(metric.Alpha, "authorization_attempts_total", "Counter of authorization attempts broken down by result. It can be either 'allowed', 'denied', 'no-opinion' or 'error'.", "result")
	decisionTook := s.Histogram(metric.Alpha, "authorization_duration_seconds", "Authorization duration in seconds broken out by result.", short, "result")
	out := &senders{
		users:      s.Counter(metric.Alpha, "authenticated_user_requests", "Counter of authenticated requests broken out by username.", "username"),
		modes:      s.Counter(metric.Alpha, "apiserver_authorization_decisions_total", "Total number of terminal decisions made by an authorizer split by authorizer type, name, and decision.", "type", "name", "decision"),
		posing:     s.Counter(metric.Alpha, "apiserver_impersonation_attempts_total", "Total number of impersonation attempts split by mode and decision.", "mode", "decision"),
		posingTook: s.Histogram(metric.Alpha, "apiserver_impersonation_attempts_duration_seconds", "Latency of impersonation attempts in seconds split by mode and decision.", short, "mode", "decision"),
		certificates: s.Histogram(metric.Alpha, "apiserver_client_certificate_expiration_seconds", "Distribution of the remaining lifetime on the certificate used to authenticate a request.",
			[]float64{0, 1800, 3600, 7200, 21600, 43200, 86400, 172800, 345600, 604800, 2592000, 7776000, 15552000, 31104000}),
		legacy: s.Counter(metric.Beta, "serviceaccount_legacy_tokens_total", "Cumulative legacy service account tokens used"),
		stale:  s.Counter(metric.Beta, "serviceaccount_stale_tokens_total", "Cumulative stale projected service account tokens used"),
		good:   s.Counter(metric.Beta, "serviceaccount_valid_tokens_total", "Cumulative valid projected service account tokens used"),
	}
	out.other.of = func() prometheus.Counter { return out.users.Of(metric.Labels{"other"}) }
	for i, result := range []string{"success", "failure", "error"} {
		out.tries[i].find(tries, tryTook, result)
	}
	for i, result := range []string{"allowed", "denied", "no-opinion", "error"} {
		out.decisions[i].find(decided, decisionTook, result)
	}
	return out
}

// An outcome is how often something came of it, and after what time.
type outcome struct {
	count slot[prometheus.Counter]
	took  slot[prometheus.Observer]
}

// find says where the series are.
func (o *outcome) find(count *metric.Counters, took *metric.Histograms, result string) {
	l := metric.Labels{result}
	o.count.of = func() prometheus.Counter { return count.Of(l) }
	o.took.of = func() prometheus.Observer { return took.Of(l) }
}

func (o *outcome) note(d time.Duration) {
	o.count.get().Inc()
	o.took.get().Observe(d.Seconds())
}

// A slot is a series that is looked up once.
type slot[V any] struct {
	of   func() V
	made atomic.Pointer[V]
}

func (s *slot[V]) get() V {
	if v := s.made.Load(); v != nil {
		return *v
	}
	v := s.of()
	s.made.Store(&v)
	return v
}

// Authenticated counts an attempt to find out who sends a request; user is "" if it is
// not known.
func (m *Metrics) Authenticated(user string, err error, took time.Duration) {
	if m == nil {
		return
	}
	result := 0
	switch kind := kindOfUser(user); {
	case err != nil && user == "":
		result = 1
	case err != nil:
		result = 2
	case kind == "other":
		m.other.get().Inc()
	default:
		m.users.Of(metric.Labels{kind}).Inc()
	}
	m.tries[result].note(took)
}

// kindOfUser keeps names out of the metrics, and the number of series small.
func kindOfUser(name string) string {
	switch name {
	case "admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default":
		return name
	}
	if strings.Contains(name, "@") {
		return "email_id"
	}
	return "other"
}

// A Decision is the result of authorization.
type Decision int

// The decisions.
const (
	Allowed Decision = iota
	Denied
	NoOpinion
	Failed
)

// Authorized counts a decision about a request.
func (m *Metrics) Authorized(result Decision, took time.Duration) {
	if m != nil {
		m.decisions[result].note(took)
	}
}

// Decisions count what one mode of authorization has decided.
type Decisions struct{ allowed, denied slot[prometheus.Counter] }

// Decisions are those of a mode, by its type and its name.
func (m *Metrics) Decisions(mode, name string) *Decisions {
	d := &Decisions{}
	d.allowed.of = func() prometheus.Counter { return m.modes.Of(metric.Labels{mode, name, "allowed"}) }
	d.denied.of = func() prometheus.Counter { return m.modes.Of(metric.Labels{mode, name, "denied"}) }
	return d
}

// Allowed counts a yes.
func (d *Decisions) Allowed() { d.allowed.get().Inc() }

// Denied counts a no.
func (d *Decisions) Denied() { d.denied.get().Inc() }

// Impersonated counts a request that is to be somebody else's; mode is the constraint under
// which it may, "" if there is none.
func (m *Metrics) Impersonated(mode string, allowed bool, took time.Duration) {
	if m == nil {
		return
	}
	l := metric.Labels{cmp.Or(mode, "legacy"), "denied"}
	if allowed {
		l[1] = "allowed"
	}
	m.posing.Of(l).Inc()
	m.posingTook.Of(l).Observe(took.Seconds())
}

// Certificate notes for how long the certificate of a request's sender is still good.
func (m *Metrics) Certificate(left time.Duration) {
	if m != nil {
		m.certificates.Of(metric.Labels{}).Observe(left.Seconds())
	}
}

// LegacyToken, StaleToken and ValidToken count uses of service accounts' tokens: from a
// Secret, not renewed in time, and as they should be.
func (m *Metrics) LegacyToken() { m.once(func(s *senders) *metric.Counters { return s.legacy }) }

// StaleToken counts a token that should have been renewed.
func (m *Metrics) StaleToken() { m.once(func(s *senders) *metric.Counters { return s.stale }) }

// ValidToken counts a token that is bound and fresh.
func (m *Metrics) ValidToken() { m.once(func(s *senders) *metric.Counters { return s.good }) }

func (m *Metrics) once(of func(*senders) *metric.Counters) {
	if m != nil {
		of(m.senders).Of(metric.Labels{}).Inc()
	}
}
