package trace

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"

	"github.com/periplus/periplus/journey"
)

// maxRequests bounds how many requests' hops are looked for.
const maxRequests = 64

// collect finds the object and the steps of all that belongs to it, in order.
func collect(ctx context.Context, c kubernetes.Interface, namespace, arg string) (*target, []journey.Span, error) {
	root, err := find(ctx, c, namespace, arg)
	if err != nil {
		return nil, nil, err
	}
	parts, err := partsOf(ctx, c, root)
	if err != nil {
		return nil, nil, err
	}
	known := map[journey.TraceID][]journey.Span{}
	found := newSet()
	for _, p := range parts {
		list, ok := known[p.trace]
		if !ok {
			if list, err = ask(ctx, c, "trace", string(p.trace)); err != nil {
				return nil, nil, fmt.Errorf("read the journey of %s: %w", arg, err)
			}
			known[p.trace] = list
		}
		for i := range list {
			if p.wanted == nil || p.wanted(&list[i]) {
				found.add(&list[i])
			}
		}
	}
	requests := map[string]bool{}
	for i := range found.spans {
		if id := found.spans[i].Attrs[journey.AttrRequest]; id != "" && len(requests) < maxRequests {
			requests[id] = true
		}
	}
	for _, id := range slices.Sorted(maps.Keys(requests)) {
		hops, err := ask(ctx, c, "request", id)
		if err != nil {
			return nil, nil, fmt.Errorf("read the hops of request %s: %w", id, err)
		}
		for i := range hops {
			found.add(&hops[i])
		}
	}
	if len(found.spans) == 0 {
		return nil, nil, fmt.Errorf("no steps of %s are known any more: the API server keeps the newest ones only, in memory, until it ends; what it says now: kubectl describe %s %s, peri why %s",
			arg, kindName(root), root.object.GetName(), kindName(root)+"/"+root.object.GetName())
	}
	spans := firsts(found.spans)
	journey.Align(spans)
	return root, spans, nil
}

// firsts leaves of the first few requests between two parties the one of which most
// hops are known, of several the earliest.
func firsts(spans []journey.Span) []journey.Span {
	hops := map[string]int{} // of requests
	for i := range spans {
		if id := spans[i].Attrs[journey.AttrRequest]; id != "" {
			hops[id]++
		}
	}
	party := func(s *journey.Span) string {
		return fmt.Sprint(s.Kind, s.Namespace, s.Name, s.Node, s.Step, s.Attrs["peer"], s.Attrs["security"])
	}
	best := map[string]*journey.Span{}
	for i := range spans {
		s := &spans[i]
		if h := s.Attrs[journey.AttrHop]; h != journey.HopClient && h != journey.HopServer {
			continue
		}
		b, n := best[party(s)], hops[s.Attrs[journey.AttrRequest]]
		if b == nil || n > hops[b.Attrs[journey.AttrRequest]] || n == hops[b.Attrs[journey.AttrRequest]] && s.Start.Before(b.Start) {
			best[party(s)] = s
		}
	}
	kept := map[string]bool{} // requests
	for _, s := range best {
		kept[s.Attrs[journey.AttrRequest]] = true
	}
	out := make([]journey.Span, 0, len(spans))
	for i := range spans {
		s := &spans[i]
		if h := s.Attrs[journey.AttrHop]; h == journey.HopClient || h == journey.HopServer {
			if !kept[s.Attrs[journey.AttrRequest]] {
				continue
			}
		}
		out = append(out, *s)
	}
	return out
}

// ask reads spans by a parameter.
func ask(ctx context.Context, c kubernetes.Interface, by, value string) ([]journey.Span, error) {
	body, err := c.CoreV1().RESTClient().Get().AbsPath(journey.Path).Param(by, value).Do(ctx).Raw()
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("this API server keeps no journeys: it is not Periplus's")
	}
	if err != nil {
		return nil, err
	}
	var out []journey.Span
	return out, json.Unmarshal(body, &out)
}

// A set keeps each span once.
type set struct {
	spans []journey.Span
	seen  map[string]bool
}

func newSet() *set { return &set{seen: map[string]bool{}} }

func (s *set) add(x *journey.Span) {
	key := fmt.Sprint(x.Trace, x.Component, x.Step, x.Kind, x.Namespace, x.Name, x.Node, x.Start.UnixNano(), x.End.UnixNano(), x.Attrs)
	if !s.seen[key] {
		s.seen[key] = true
		s.spans = append(s.spans, *x)
	}
}
