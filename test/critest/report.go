package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2/types"
)

// A result is what became of one test.
type result struct {
	pass, name string
	state      types.SpecState
	failure    string // or why it was skipped, in one line
}

// read returns the tests that ran or were skipped by themselves, by name. Benchmarks are
// no tests.
func read(file, pass string) ([]result, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var reports []types.Report
	if err := json.Unmarshal(data, &reports); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var all []result
	for _, r := range reports {
		for _, s := range r.SpecReports {
			if s.LeafNodeType != types.NodeTypeIt && !s.Failed() || s.State.Is(types.SpecStateSkipped) && s.Failure.Message == "" {
				continue // not in focus
			}
			all = append(all, result{pass, strings.TrimPrefix(s.FullText(), "[k8s.io] "), s.State, line(s.Failure.Message)})
		}
	}
	slices.SortFunc(all, func(a, b result) int { return cmp.Compare(a.name, b.name) })
	return all, nil
}

// line makes one of a message.
func line(message string) string {
	text := strings.ReplaceAll(strings.Join(strings.Fields(message), " "), "`", "'")
	if len(text) > 300 {
		text = text[:300] + "…"
	}
	return text
}

type counts struct{ passed, failed, skipped int }

func count(all []result) (c counts) {
	for _, r := range all {
		switch {
		case r.state.Is(types.SpecStatePassed):
			c.passed++
		case r.state.Is(types.SpecStateSkipped):
			c.skipped++
		default:
			c.failed++
		}
	}
	return c
}

// summarise prints what failed and what was skipped, and the sum; it returns how many failed.
func summarise(w io.Writer, all []result) (failed int) {
	for _, r := range all {
		switch {
		case r.state.Is(types.SpecStatePassed):
		case r.state.Is(types.SpecStateSkipped):
			fmt.Fprintf(w, "skipped %s\n        %s\n", r.name, r.failure)
		default:
			fmt.Fprintf(w, "FAILED  %s: %s\n        %s\n", r.pass, r.name, r.failure)
		}
	}
	c := count(all)
	fmt.Fprintf(w, "passed %d, failed %d, skipped %d\n", c.passed, c.failed, c.skipped)
	return c.failed
}

// reasons say more about skipped tests than the suite does, by what it says.
var reasons = []struct{ said, why string }{
	{"AppArmor", "the kernel of the machine has no AppArmor"},
	{"SELinux", "the kernel of the machine has no SELinux"},
	{"NRI", "plug-ins of the Node Resource Interface are not part of the CRI; the runtime has none"},
}

func (r *result) why() string {
	for _, x := range reasons {
		if strings.Contains(strings.ToLower(r.failure+r.name), strings.ToLower(x.said)) {
			return x.why
		}
	}
	return r.failure
}

// render makes the page.
func render(version string, all []result) []byte {
	var b bytes.Buffer
	b.WriteString("# critest\n\n" +
		"The CRI tools' suite (`sigs.k8s.io/cri-tools` " + version + ") against the embedded runtime, as it ended when it\n" +
		"was last run: ✓ passed, ✗ failed, – skipped. Generated: `make critest DOCS=docs/critest.md`.\n\n")
	c := count(all)
	fmt.Fprintf(&b, "%d passed, %d failed, %d skipped. The tests of streams run twice: over SPDY and over WebSocket.\n", c.passed, c.failed, c.skipped)
	b.WriteString("One constant of the suite is replaced, the digest of an image that only upstream's registry has\n" +
		"(`test/critest/build.go`).\n")
	b.WriteString("\n## Skipped, and why\n")
	byReason := map[string]int{}
	var order []string
	for _, r := range all {
		if r.state.Is(types.SpecStateSkipped) {
			if byReason[r.why()] == 0 {
				order = append(order, r.why())
			}
			byReason[r.why()]++
		}
	}
	slices.Sort(order)
	for _, why := range order {
		fmt.Fprintf(&b, "- %s (%d)\n", why, byReason[why])
	}
	for _, p := range []struct{ name, title string }{{"critest", "All"}, {"websocket", "Streams over WebSocket"}} {
		fmt.Fprintf(&b, "\n## %s\n", p.title)
		for _, r := range all {
			if r.pass != p.name {
				continue
			}
			switch {
			case r.state.Is(types.SpecStatePassed):
				fmt.Fprintf(&b, "- ✓ `%s`\n", r.name)
			case r.state.Is(types.SpecStateSkipped):
				fmt.Fprintf(&b, "- – `%s`: %s\n", r.name, r.why())
			default:
				fmt.Fprintf(&b, "- ✗ `%s`: %s\n", r.name, r.failure)
			}
		}
	}
	return b.Bytes()
}
