package lint

import (
	"fmt"
	"io"
	"strings"

	"github.com/periplus/periplus/insight"
)

// Print writes findings for people.
func Print(w io.Writer, findings []Finding, objects int) error {
	count := map[Severity]int{}
	explained := map[string]bool{}
	for _, f := range findings {
		count[f.Severity]++
		where := ""
		if f.Place.File != "" {
			where = f.Place.String() + ": "
		}
		part := ""
		if f.Part != "" {
			part = ", " + f.Part
		}
		if _, err := fmt.Fprintf(w, "%s%s: %s%s: %s  [%s]\n", where, f.Severity, name(f.Object), part, f.What, f.Rule); err != nil {
			return err
		}
		if !explained[f.Rule] {
			explained[f.Rule] = true
			fmt.Fprintf(w, "    %s\n", f.Why)
		}
		if f.Fix != "" {
			fmt.Fprintf(w, "%s\n", strings.TrimRight(indent(f.Fix, "      "), "\n"))
		}
	}
	_, err := fmt.Fprintf(w, "%d objects: %d errors, %d warnings, %d pieces of advice\n", objects, count[Error], count[Warning], count[Advice])
	return err
}

func name(r insight.Ref) string {
	if r.Namespace == "" {
		return r.String()
	}
	return r.Namespace + " " + r.String()
}
