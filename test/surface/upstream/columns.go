package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

var (
	definitions = regexp.MustCompile(`(?s)(\w+) :?= \[\]metav1\.TableColumnDefinition\{\n(.*?)\n\t\}\n`)
	column      = regexp.MustCompile(`Name: "([^"]*)", Type: "([^"]*)"(?:, Format: "([^"]*)")?(?:, Priority: (\d))?`)
	handler     = regexp.MustCompile(`TableHandler\((\w+), (print\w+)\)`)
	printer     = regexp.MustCompile(`func (print\w+)\(\w+ \*(\w+)\.(\w+), `)
)

// columns lists what kubectl shows of each kind: names, types and, of those that
// are only shown when asked for, "wide".
func columns(file string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	text := string(data)
	kinds := map[string]string{}
	for _, m := range printer.FindAllStringSubmatch(text, -1) {
		kinds[m[1]] = m[3]
	}
	defs := map[string]string{}
	for _, m := range definitions.FindAllStringSubmatch(text, -1) {
		var out []string
		for _, c := range column.FindAllStringSubmatch(m[2], -1) {
			s := strings.ReplaceAll(c[1], " ", "_") + ":" + c[2]
			if c[4] == "1" {
				s += ":wide"
			}
			out = append(out, s)
		}
		defs[m[1]] = strings.Join(out, " ")
	}
	var lines []string
	for _, m := range handler.FindAllStringSubmatch(text, -1) {
		if kind := kinds[m[2]]; kind != "" && !strings.HasSuffix(kind, "List") {
			lines = append(lines, kind+" "+defs[m[1]])
		}
	}
	if len(lines) < 50 {
		return "", fmt.Errorf("%s: only %d kinds have columns", file, len(lines))
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "\n") + "\n", nil
}
