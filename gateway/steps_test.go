package gateway_test

import (
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/journey"
	"github.com/periplus/periplus/l7"
)

// spans keeps what is recorded, as far as there is room.
type spans chan journey.Span

func (s spans) Record(x journey.Span) {
	select {
	case s <- x:
	default:
	}
}

// TestSteps: a new Ingress is told of when it is in force and when each of its paths has
// answered for the first time; then nothing watches the path any more.
func TestSteps(t *testing.T) {
	t.Parallel()
	young := objectOf[networkingv1.Ingress](t, `
metadata: {namespace: shop, name: young, uid: young, generation: 1}
spec:
  rules:
  - host: a.example
    http:
      paths:
      - {path: /, pathType: Prefix, backend: {service: {name: one, port: {number: 80}}}}
      - {path: /gone, pathType: Prefix, backend: {service: {name: missing, port: {number: 80}}}}
`)
	young.CreationTimestamp = metav1.NewTime(time.Now().Add(time.Hour))
	c := start(t, append(service(t, "one"), young, objectOf[networkingv1.Ingress](t, `
metadata: {namespace: shop, name: old, uid: old, generation: 1, creationTimestamp: "2020-01-01T00:00:00Z"}
spec:
  rules:
  - host: b.example
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: one, port: {number: 80}}}}]}
`)))
	c.ask(c.http, "b.example", "/")
	c.ask(c.http, "a.example", "/gone")
	for c.watching("shop/young") {
		if status, _, _ := c.ask(c.http, "a.example", "/path"); status != 200 {
			t.Fatalf("status %d", status)
		}
	}
	c.ask(c.http, "a.example", "/again")
	var answers, programmed int
	for len(c.spans) > 0 {
		s := <-c.spans
		if s.Name != "young" && s.Step != "addresses published" || s.Node != "n1" || s.Kind != "Ingress" {
			t.Errorf("step %+v", s)
		}
		switch s.Step {
		case "programmed in the edge":
			programmed++
		case journey.FirstAnswer:
			answers++
			a := s.Attrs
			if a[journey.AttrStatus] != "200" || a[journey.AttrService] != "one" || a["url"] != "http://a.example/path" || a[journey.AttrHop] != journey.HopEdge || a[journey.AttrRequest] == "" {
				t.Errorf("first answer %v", a)
			}
		}
	}
	if programmed != 1 || answers != 1 {
		t.Errorf("%d times programmed, %d first answers", programmed, answers)
	}
}

// watching reports whether a route that forwards still waits for its first answer.
func (c *cluster) watching(route string) bool {
	for _, config := range c.server.Engine().Snapshot().Routes {
		for _, host := range config.VirtualHosts {
			for _, r := range host.Routes {
				for _, f := range r.Filters {
					if _, ok := f.(l7.EndFilter); ok && r.Name == route && r.Forward != nil {
						return true
					}
				}
			}
		}
	}
	return false
}
