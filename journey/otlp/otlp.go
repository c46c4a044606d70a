package otlp

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/periplus/periplus/journey"
)

// Request is an ExportTraceServiceRequest.
type Request struct {
	ResourceSpans []ResourceSpans `json:"resourceSpans"`
}

// ResourceSpans are the spans of one component on one node.
type ResourceSpans struct {
	Resource   Resource     `json:"resource"`
	ScopeSpans []ScopeSpans `json:"scopeSpans"`
}

// A Resource says where spans come from.
type Resource struct {
	Attributes []Attribute `json:"attributes"`
}

// ScopeSpans are spans of one instrumentation.
type ScopeSpans struct {
	Scope Scope  `json:"scope"`
	Spans []Span `json:"spans"`
}

// A Scope is an instrumentation.
type Scope struct {
	Name string `json:"name"`
}

// A Span is one of OTLP. Times are nanoseconds since 1970, as text: JSON's numbers
// cannot hold them.
type Span struct {
	TraceID      string      `json:"traceId"`
	SpanID       string      `json:"spanId"`
	ParentSpanID string      `json:"parentSpanId,omitempty"`
	Name         string      `json:"name"`
	Kind         int         `json:"kind"` // 1 internal, 2 server, 3 client
	Start        string      `json:"startTimeUnixNano"`
	End          string      `json:"endTimeUnixNano"`
	Attributes   []Attribute `json:"attributes,omitempty"`
	Status       *Status     `json:"status,omitempty"`
}

// A Status tells of failure: code 2.
type Status struct {
	Code int `json:"code"`
}

// An Attribute is a name with a text.
type Attribute struct {
	Key   string `json:"key"`
	Value Value  `json:"value"`
}

// A Value is a text.
type Value struct {
	StringValue string `json:"stringValue"`
}

// Kinds of spans.
const (
	kindInternal = 1
	kindServer   = 2
	kindClient   = 3
	statusError  = 2
)

// rank is the place of a hop on a request's way.
var rank = map[string]int{journey.HopEdge: 1, journey.HopClient: 2, journey.HopServer: 3}

// Encode makes a request of spans, which may be of several journeys. The trace is
// that of the first journey; root names the object in whose name they are sent.
func Encode(trace journey.TraceID, root string, spans []journey.Span) *Request {
	if len(spans) == 0 {
		return &Request{ResourceSpans: []ResourceSpans{}}
	}
	type resource struct{ component, node string }
	groups := map[resource][]Span{}
	rootID := spanID(string(trace), root)
	hops := hopsOf(spans)
	begin, end := spans[0].Start, spans[0].End
	for i := range spans {
		s := &spans[i]
		if s.Start.Before(begin) {
			begin = s.Start
		}
		if s.End.After(end) {
			end = s.End
		}
		out := Span{
			TraceID: string(trace), SpanID: idOf(s), ParentSpanID: rootID, Name: s.Step, Kind: kindInternal,
			Start: nano(s.Start), End: nano(s.End), Attributes: attributes(s),
		}
		if hop := s.Attrs[journey.AttrHop]; hop != "" {
			out.Kind = kindServer
			if hop == journey.HopClient {
				out.Kind = kindClient
			}
			if parent := hops.before(s); parent != nil {
				out.ParentSpanID = idOf(parent)
			}
			if code, _ := strconv.Atoi(s.Attrs[journey.AttrStatus]); code >= 500 {
				out.Status = &Status{statusError}
			}
		}
		key := resource{s.Component, s.Node}
		groups[key] = append(groups[key], out)
	}
	top := Span{TraceID: string(trace), SpanID: rootID, Name: root, Kind: kindInternal, Start: nano(begin), End: nano(end)}
	groups[resource{"periplus", ""}] = append(groups[resource{"periplus", ""}], top)

	keys := slices.SortedFunc(maps.Keys(groups), func(a, b resource) int {
		return cmp.Or(cmp.Compare(a.component, b.component), cmp.Compare(a.node, b.node))
	})
	r := &Request{}
	for _, k := range keys {
		where := []Attribute{{"service.name", Value{k.component}}, {"service.namespace", Value{"periplus"}}}
		if k.node != "" {
			where = append(where, Attribute{"host.name", Value{k.node}}, Attribute{"k8s.node.name", Value{k.node}})
		}
		r.ResourceSpans = append(r.ResourceSpans, ResourceSpans{
			Resource: Resource{where}, ScopeSpans: []ScopeSpans{{Scope: Scope{"github.com/periplus/periplus/journey"}, Spans: groups[k]}},
		})
	}
	return r
}

// requestHops are the hops of each request, the outermost first.
type requestHops map[string][]*journey.Span

func hopsOf(spans []journey.Span) requestHops {
	out := requestHops{}
	for i := range spans {
		s := &spans[i]
		if id := s.Attrs[journey.AttrRequest]; id != "" && rank[s.Attrs[journey.AttrHop]] > 0 {
			out[id] = append(out[id], s)
		}
	}
	for _, list := range out {
		slices.SortStableFunc(list, func(a, b *journey.Span) int {
			return cmp.Compare(rank[a.Attrs[journey.AttrHop]], rank[b.Attrs[journey.AttrHop]])
		})
	}
	return out
}

// before is the hop that a hop's request came from; nil: it is the first.
func (h requestHops) before(s *journey.Span) *journey.Span {
	list := h[s.Attrs[journey.AttrRequest]]
	for i, x := range list {
		if x == s && i > 0 {
			return list[i-1]
		}
	}
	return nil
}

// attributes are a step's, and what object it is about in OpenTelemetry's words.
func attributes(s *journey.Span) []Attribute {
	out := []Attribute{{"periplus.kind", Value{s.Kind}}, {"periplus.name", Value{s.Name}}}
	add := func(key, value string) {
		if value != "" {
			out = append(out, Attribute{key, Value{value}})
		}
	}
	add("k8s.namespace.name", s.Namespace)
	if s.Kind == "Pod" {
		add("k8s.pod.name", s.Name)
		add("k8s.pod.uid", string(s.UID))
	}
	if s.Skew != 0 {
		add("periplus.skew", s.Skew.String())
	}
	for _, k := range slices.Sorted(maps.Keys(s.Attrs)) {
		switch k {
		case journey.AttrStatus:
			add("http.response.status_code", s.Attrs[k])
		default:
			add("periplus."+k, s.Attrs[k])
		}
	}
	return out
}

func nano(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

// idOf is a step's span ID. It is the same whenever the step is sent.
func idOf(s *journey.Span) string {
	return spanID(string(s.Trace), s.Component, s.Step, s.Kind, s.Namespace, s.Name, s.Node, s.Attrs["container"], s.Attrs[journey.AttrRequest], nano(s.Start.Add(-s.Skew)))
}

func spanID(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
