package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2/types"
)

// A result is what became of one test.
type result struct {
	name    string
	state   types.SpecState
	failure string // its first line
}

// group is the special interest group in a test's name.
var group = regexp.MustCompile(`^\[(sig-[a-z-]+)\]`)

func groupOf(name string) string {
	if m := group.FindStringSubmatch(name); m != nil {
		return m[1]
	}
	return "other"
}

// read returns the tests that ran, by name.
func read(file string) ([]result, error) {
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
			if s.LeafNodeType != types.NodeTypeIt || s.State.Is(types.SpecStateSkipped) && s.Failure.Message == "" {
				continue // not in focus
			}
			first, _, _ := strings.Cut(strings.TrimSpace(s.Failure.Message), "\n")
			all = append(all, result{s.FullText(), s.State, first})
		}
	}
	slices.SortFunc(all, func(a, b result) int { return cmp.Compare(a.name, b.name) })
	return all, nil
}

// summarise prints what failed, and a line for each group; it returns how many failed.
func summarise(w io.Writer, all []result) (failed int) {
	type counts struct{ passed, failed, skipped int }
	groups := map[string]*counts{}
	for _, r := range all {
		g := groups[groupOf(r.name)]
		if g == nil {
			g = &counts{}
			groups[groupOf(r.name)] = g
		}
		switch {
		case r.state.Is(types.SpecStatePassed):
			g.passed++
		case r.state.Is(types.SpecStateSkipped):
			g.skipped++
		default:
			g.failed++
			failed++
			fmt.Fprintf(w, "FAILED %s\n       %s\n", r.name, r.failure)
		}
	}
	fmt.Fprintf(w, "%-22s %7s %7s %7s\n", "", "passed", "failed", "skipped")
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		g := groups[name]
		fmt.Fprintf(w, "%-22s %7d %7d %7d\n", name, g.passed, g.failed, g.skipped)
	}
	return failed
}

// line is one test on the page: whether it passed, its name, why it did not.
var line = regexp.MustCompile("^- (✓|✗|–) `([^`]*)`(.*)$")

// renew writes the page, with new lines for the tests that ran and the others' as
// they were.
func renew(page string, all []result) error {
	lines := map[string]string{}
	old, err := os.ReadFile(page)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	for s := bufio.NewScanner(bytes.NewReader(old)); s.Scan(); {
		if m := line.FindStringSubmatch(s.Text()); m != nil {
			lines[m[2]] = s.Text()
		}
	}
	for _, r := range all {
		mark, why := "✗", ": "+strings.ReplaceAll(r.failure, "`", "'")
		switch {
		case r.state.Is(types.SpecStatePassed):
			mark, why = "✓", ""
		case r.state.Is(types.SpecStateSkipped):
			mark = "–"
		}
		lines[r.name] = fmt.Sprintf("- %s `%s`%s", mark, r.name, why)
	}
	return os.WriteFile(page, render(lines), 0o644) //nolint:gosec // a page of the documentation
}

// intro begins the page.
const intro = "# Conformance\n\n" +
	"Upstream's end-to-end tests (v1.37.2, `make conformance`), as they ended when they were\n" +
	"last run: ✓ passed, ✗ failed, – skipped. Generated: `make conformance FOCUS=… DOCS=docs/conformance.md`\n" +
	"renews the lines of the tests that it runs.\n"

func render(lines map[string]string) []byte {
	byGroup := map[string][]string{}
	passed := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		g := groupOf(name)
		byGroup[g] = append(byGroup[g], lines[name])
		if strings.HasPrefix(lines[name], "- ✓") {
			passed[g]++
		}
	}
	var b bytes.Buffer
	b.WriteString(intro + "\n| group | passed | of |\n|---|---|---|\n")
	for _, g := range slices.Sorted(maps.Keys(byGroup)) {
		fmt.Fprintf(&b, "| %s | %d | %d |\n", g, passed[g], len(byGroup[g]))
	}
	for _, g := range slices.Sorted(maps.Keys(byGroup)) {
		fmt.Fprintf(&b, "\n## %s\n%s\n", g, strings.Join(byGroup[g], "\n"))
	}
	return b.Bytes()
}
