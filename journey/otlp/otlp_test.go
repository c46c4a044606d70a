package otlp_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/periplus/periplus/journey"
	"github.com/periplus/periplus/journey/otlp"
)

func spans() []journey.Span {
	begin := time.Unix(1_800_000_000, 123)
	s := journey.Span{Trace: "0123456789abcdef0123456789abcdef", Kind: "Pod", Namespace: "shop", Name: "web", UID: "u", Start: begin, End: begin.Add(time.Second)}
	make := func(component, step, node string, attrs ...string) journey.Span {
		s.Component, s.Step, s.Node = component, step, node
		return s.With(attrs...)
	}
	return []journey.Span{
		make("apiserver", "stored", ""), make("kubelet", "ready", "n1"),
		make("sidecar", "first answered request from edge", "n1", journey.AttrRequest, "r1", journey.AttrHop, journey.HopServer, journey.AttrStatus, "200"),
		make("gateway", "first answered request", "n2", journey.AttrRequest, "r1", journey.AttrHop, journey.HopEdge, journey.AttrStatus, "503"),
	}
}

// TestSend: a collector gets the request as OTLP's specification wants it.
func TestSend(t *testing.T) {
	t.Parallel()
	got := make(chan otlp.Request, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("X-Key") != "k" {
			t.Errorf("%s %s, header %v", r.Method, r.URL.Path, r.Header)
		}
		var q otlp.Request
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			t.Error(err)
		}
		got <- q
		_, _ = w.Write([]byte(`{}`))
	}))
	defer server.Close()
	r := otlp.Encode("0123456789abcdef0123456789abcdef", "Deployment shop/web", spans())
	if err := otlp.Send(t.Context(), server.URL, http.Header{"X-Key": {"k"}}, r); err != nil {
		t.Fatal(err)
	}
	q, all := <-got, map[string]otlp.Span{}
	for _, rs := range q.ResourceSpans {
		for _, s := range rs.ScopeSpans[0].Spans {
			all[rs.Resource.Attributes[0].Value.StringValue+": "+s.Name] = s
			if !regexp.MustCompile(`^[0-9a-f]{16}$`).MatchString(s.SpanID) || len(s.TraceID) != 32 {
				t.Errorf("%s: span %q of trace %q", s.Name, s.SpanID, s.TraceID)
			}
		}
	}
	root, edge, server2 := all["periplus: Deployment shop/web"], all["gateway: first answered request"], all["sidecar: first answered request from edge"]
	if root.ParentSpanID != "" || root.Start != "1800000000000000123" || root.End != "1800000001000000123" {
		t.Errorf("root %+v", root)
	}
	if s := all["kubelet: ready"]; s.ParentSpanID != root.SpanID || s.Kind != 1 {
		t.Errorf("step %+v", s)
	}
	if edge.ParentSpanID != root.SpanID || server2.ParentSpanID != edge.SpanID || edge.Kind != 2 {
		t.Errorf("hops: the edge's parent is %s, the sidecar's %s", edge.ParentSpanID, server2.ParentSpanID)
	}
	if edge.Status == nil || edge.Status.Code != 2 || server2.Status != nil {
		t.Errorf("statuses %v and %v", edge.Status, server2.Status)
	}
	// The same steps have the same IDs when they are sent again.
	again := otlp.Encode("0123456789abcdef0123456789abcdef", "Deployment shop/web", spans())
	a, _ := json.Marshal(r)
	b, _ := json.Marshal(again)
	if string(a) != string(b) {
		t.Error("IDs differ from one time to the next")
	}
}

// TestRefusals: what a collector refuses is told.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"partialSuccess":{"rejectedSpans":"2","errorMessage":"too old"}}`: "has refused 2 spans: too old",
		"!no": "has answered 400 Bad Request: no",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if text, bad := strings.CutPrefix(body, "!"); bad {
				http.Error(w, text, http.StatusBadRequest)
				return
			}
			_, _ = w.Write([]byte(body))
		}))
		err := otlp.Send(t.Context(), server.URL, nil, otlp.Encode("", "x", spans()))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		server.Close()
	}
	if _, err := otlp.Endpoint("ftp://x"); err == nil {
		t.Error("ftp is taken for a collector")
	}
	if e, err := otlp.Endpoint("localhost:4318"); err != nil || e != "http://localhost:4318/v1/traces" {
		t.Errorf("%s, %v", e, err)
	}
}
