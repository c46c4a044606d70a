package trace

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/journey"
)

func TestPrint(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	object := &metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "01234567-89ab-cdef-0123-456789abcdef"}
	step := func(component, step, kind, name, node string, from, to int, attrs ...string) journey.Span {
		s := journey.Span{Trace: journey.TraceOf(object), Component: component, Step: step, Kind: kind, Namespace: "shop", Name: name, Node: node}
		s.Start, s.End = begin.Add(time.Duration(from)*time.Millisecond), begin.Add(time.Duration(to)*time.Millisecond)
		return s.With(attrs...)
	}
	stored := step("apiserver", "stored", "Ingress", "web", "", 0, 5)
	stored.UID = object.UID
	late := step("kubelet", "ready", "Pod", "web-1", "n2", 90, 90)
	late.Skew = 3 * time.Second
	request := []string{journey.AttrRequest, "r-1", journey.AttrStatus, "200"}
	spans := []journey.Span{
		stored, late,
		step("sidecar", journey.FirstAnswer+" from edge", "Pod", "web-1", "n2", 101, 106, append(request, journey.AttrHop, journey.HopServer, journey.AttrApplication, "2ms", "security", "mutual_tls")...),
		step("gateway", journey.FirstAnswer, "Ingress", "web", "n1", 100, 110, append(request, journey.AttrHop, journey.HopEdge, "method", "GET", "url", "http://shop/")...),
	}
	root := &target{kind: "Ingress", object: object}
	var out strings.Builder
	if err := print(&out, root, spans); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	at := -1
	for _, want := range []string{
		"Ingress shop/web, 2026-01-02 ", "T+      TOOK    COMPONENT  OBJECT       STEP", "0.005s  5.0ms   apiserver  ingress/web  stored",
		"0.090s          kubelet    pod/web-1    ready  node=n2", "\nRequest GET http://shop/ (r-1)\n", "  HOP ",
		"  edge            200     10.0ms  ingress/web on n1\n", "  server sidecar  200     5.0ms   pod/web-1 on n2, mutual TLS\n", "  pod             200     2.0ms   pod/web-1\n",
		"From T+0 to the first answered request: 0.106s\n", "The clock of node n2 is 3s behind: its times are corrected.\n",
	} {
		i := strings.Index(text, want)
		if i < 0 || i < at {
			t.Errorf("%q is not there, or not in its place, in:\n%s", want, text)
		}
		at = i
	}
	if strings.Contains(text, "not known any more") {
		t.Errorf("the beginning is known:\n%s", text)
	}
	out.Reset()
	if err := print(&out, root, spans[1:]); err != nil || !strings.Contains(out.String(), "The beginning is not known any more") {
		t.Errorf("%v, that the beginning is gone is not told:\n%s", err, out.String())
	}
}

// TestFirsts: of the first requests between two parties the one is shown that both tell of.
func TestFirsts(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	hop := func(name, step, hop, request string, ms int) journey.Span {
		s := journey.Span{Kind: "Pod", Name: name, Step: step, Start: begin.Add(time.Duration(ms) * time.Millisecond)}
		return s.With(journey.AttrHop, hop, journey.AttrRequest, request)
	}
	spans := []journey.Span{
		{Step: "stored"},
		hop("web", "from client", journey.HopServer, "r1", 1), hop("web", "from client", journey.HopServer, "r2", 2), hop("web", "from client", journey.HopServer, "r3", 3),
		hop("client", "to web", journey.HopClient, "r2", 2), hop("client", "to web", journey.HopClient, "r3", 3), hop("client", "to web", journey.HopClient, "r4", 4),
		hop("web", "from edge", journey.HopServer, "e1", 9),
		hop("web", "first", journey.HopEdge, "e1", 9),
	}
	var got []string
	for _, s := range firsts(spans) {
		got = append(got, s.Step+" "+s.Attrs[journey.AttrRequest])
	}
	if want := "stored , from client r2, to web r2, from edge e1, first e1"; strings.Join(got, ", ") != want {
		t.Errorf("shown: %q", got)
	}
}
