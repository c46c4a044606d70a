package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// A figure is one line of the table.
type figure struct {
	Name   string  `json:"name"`
	Unit   string  `json:"unit"`
	Value  float64 `json:"value"` // the median where there are several
	N      int     `json:"n,omitempty"`
	Min    float64 `json:"min,omitempty"`
	P99    float64 `json:"p99,omitempty"`
	Max    float64 `json:"max,omitempty"`
	Note   string  `json:"note,omitempty"`
	Target string  `json:"target,omitempty"`
	// Upstream is what upstream's components need, measured in the same way.
	Upstream string `json:"upstream,omitempty"`
}

// A table is what has been measured.
type table []figure

func (t *table) add(f figure) { *t = append(*t, f) }

// durations adds the median, p99 and extremes of many, in milliseconds.
func (t *table) durations(name string, d []time.Duration, target, upstream string) {
	if len(d) == 0 {
		return
	}
	s := slices.Clone(d)
	slices.Sort(s)
	t.add(figure{
		Name: name, Unit: "ms", Value: ms(quantile(s, 0.5)), N: len(s), Min: ms(s[0]), P99: ms(quantile(s, 0.99)), Max: ms(s[len(s)-1]),
		Target: target, Upstream: upstream,
	})
}

// quantile is the nearest rank in a sorted list.
func quantile(sorted []time.Duration, q float64) time.Duration {
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (t table) print(w io.Writer) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(cells ...string) { fmt.Fprintln(tw, strings.Join(cells, "\t")) }
	line("FIGURE", "PERIPLUS", "MIN", "P99", "MAX", "N", "TARGET", "UPSTREAM", "NOTE")
	for _, f := range t {
		low, p99, high, n := "", "", "", ""
		if f.N > 0 {
			low, high, n = number(f.Min), number(f.Max), fmt.Sprint(f.N)
			p99 = number(f.P99)
		}
		line(f.Name, number(f.Value)+" "+f.Unit, low, p99, high, n, f.Target, f.Upstream, f.Note)
	}
	_ = tw.Flush()
}

// number has three significant digits, or all of those before the point.
func number(v float64) string {
	switch a := math.Abs(v); {
	case a >= 100 || v == 0:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func (t table) save(path string) error {
	data, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644) //nolint:gosec // figures for all
}
