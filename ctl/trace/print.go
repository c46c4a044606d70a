package trace

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/periplus/periplus/journey"
)

// print shows the timeline; offsets count from the arrival of the first request.
func print(out io.Writer, root *target, spans []journey.Span) error {
	start, whole := spans[0].Start, false
	for i := range spans {
		s := &spans[i]
		if s.Start.Before(start) {
			start = s.Start
		}
		whole = whole || s.UID == root.object.GetUID() && s.Component == "apiserver" && s.Step == "stored"
	}
	fmt.Fprintf(out, "%s %s/%s, %s\n\n", root.kind, root.object.GetNamespace(), root.object.GetName(), start.Local().Format("2006-01-02 15:04:05.000"))
	w := tabwriter.NewWriter(out, 2, 0, 2, ' ', 0)
	fmt.Fprintln(w, "T+\tTOOK\tCOMPONENT\tOBJECT\tSTEP")
	for i := range spans {
		s := &spans[i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s/%s\t%s\n", offset(s.End.Sub(start)), took(s.End.Sub(s.Start)), s.Component, strings.ToLower(s.Kind), s.Name, describe(s))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := printRequests(out, spans); err != nil {
		return err
	}
	fmt.Fprintln(out)
	if first := firstAnswer(spans); first != nil {
		fmt.Fprintf(out, "From T+0 to the first answered request: %s\n", offset(first.End.Sub(start)))
	}
	for _, node := range slices.Sorted(maps.Keys(journey.Skews(spans))) {
		by, word := journey.Skews(spans)[node], "behind"
		if by < 0 {
			by, word = -by, "ahead"
		}
		if by >= time.Millisecond {
			fmt.Fprintf(out, "The clock of node %s is %s %s: its times are corrected.\n", node, by.Round(time.Millisecond), word)
		}
	}
	if !whole {
		fmt.Fprintf(out, "The beginning is not known any more: the API server keeps the newest steps only, in memory, until it ends.\n")
	}
	return nil
}

// firstAnswer is the first request that was answered; nil: none.
func firstAnswer(spans []journey.Span) *journey.Span {
	var first *journey.Span
	for i := range spans {
		if s := &spans[i]; strings.HasPrefix(s.Step, journey.FirstAnswer) && (first == nil || s.End.Before(first.End)) {
			first = s
		}
	}
	return first
}

// places are the hops of a request in order.
var places = []string{journey.HopEdge, journey.HopClient, journey.HopServer}

// printRequests shows requests hop by hop.
func printRequests(out io.Writer, spans []journey.Span) error {
	requests, order := map[string][]*journey.Span{}, []string{}
	for i := range spans {
		s := &spans[i]
		id := s.Attrs[journey.AttrRequest]
		if id == "" || s.Attrs[journey.AttrHop] == "" {
			continue
		}
		if requests[id] == nil {
			order = append(order, id)
		}
		requests[id] = append(requests[id], s)
	}
	for _, id := range order {
		hops := requests[id]
		slices.SortStableFunc(hops, func(a, b *journey.Span) int {
			return cmp.Compare(slices.Index(places, a.Attrs[journey.AttrHop]), slices.Index(places, b.Attrs[journey.AttrHop]))
		})
		h := hops[0]
		what := cmp.Or(h.Attrs["url"], h.Attrs["host"]+h.Attrs["path"])
		fmt.Fprintf(out, "\nRequest %s %s (%s)\n", h.Attrs["method"], what, id)
		w := tabwriter.NewWriter(out, 2, 0, 2, ' ', 0)
		fmt.Fprintln(w, "  HOP\tSTATUS\tTOOK\tWHERE")
		for _, s := range hops {
			where := strings.ToLower(s.Kind) + "/" + s.Name
			if s.Node != "" {
				where += " on " + s.Node
			}
			if s.Attrs["security"] == "mutual_tls" {
				where += ", mutual TLS"
			}
			fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", s.Attrs[journey.AttrHop], s.Attrs[journey.AttrStatus], took(s.End.Sub(s.Start)), where)
			if d, err := time.ParseDuration(s.Attrs[journey.AttrApplication]); err == nil {
				fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", "pod", s.Attrs[journey.AttrStatus], took(d), strings.ToLower(s.Kind)+"/"+s.Name)
			}
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func describe(s *journey.Span) string {
	var text strings.Builder
	text.WriteString(s.Step)
	if s.Node != "" {
		text.WriteString("  node=" + s.Node)
	}
	for _, k := range slices.Sorted(maps.Keys(s.Attrs)) {
		text.WriteString("  " + k + "=" + s.Attrs[k])
	}
	return text.String()
}

func offset(d time.Duration) string { return fmt.Sprintf("%.3fs", d.Seconds()) }

func took(d time.Duration) string {
	if d < 50*time.Microsecond {
		return ""
	}
	return fmt.Sprintf("%.1fms", float64(d.Microseconds())/1000)
}
