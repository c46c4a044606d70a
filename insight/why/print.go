package why

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/periplus/periplus/insight"
)

// Print writes the report for people: root cause first.
func (r *Report) Print(w io.Writer) error {
	p := &printer{w: w}
	p.line("%s %s %s.", r.Object.Kind, qualified(r.Object), r.State)
	switch r.Verdict {
	case IsHealthy:
		p.line("Nothing is wrong.")
	case IsStarting:
		p.line("Nothing is wrong so far: it is starting.")
	case IsUnknown:
		p.line("It is not healthy, and nothing that is known of it says why.")
	}
	for i, f := range r.Roots {
		title := "ROOT CAUSE"
		if i > 0 {
			title = "ALSO WRONG"
		}
		p.finding(title, f)
	}
	for _, f := range r.Effects {
		p.finding("FOLLOWS", f)
	}
	for _, f := range r.Notes {
		p.finding("NOTE", f)
	}
	if r.Verdict != IsHealthy && (len(r.Tree.Needs) > 0 || r.Verdict == IsUnknown) {
		p.line("")
		p.tree(r.Tree, "", "")
	}
	if len(r.Unread) > 0 && r.Verdict != HasFaults {
		p.line("")
		p.line("Not all could be read: %s.", strings.Join(r.Unread, "; "))
	}
	return p.err
}

type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.w, strings.TrimRight(fmt.Sprintf(format, args...), " "))
	}
}

func qualified(r insight.Ref) string {
	if r.Namespace == "" {
		return r.Name
	}
	return r.Namespace + "/" + r.Name
}

func (p *printer) finding(title string, f insight.Finding) {
	p.line("")
	p.line("%s: %s  [%s]", title, f.What, f.Rule)
	where := f.Object.String()
	if strings.Contains(f.Part, " ") {
		where += ", " + f.Part
	}
	if len(f.Also) > 0 {
		also := make([]string, len(f.Also))
		for i, r := range f.Also {
			also[i] = r.String()
		}
		slices.Sort(also)
		where += " (and " + strings.Join(also, ", ") + ")"
	}
	p.line("  %s", where)
	if f.Why != "" {
		p.line("  %s", f.Why)
	}
	if title == "FOLLOWS" {
		return
	}
	label := "seen"
	for _, e := range f.Evidence {
		p.line("  %-5s %s", label, strings.ReplaceAll(e, "\n", "\n        "))
		label = ""
	}
	label = "mend"
	for _, m := range f.Mend {
		p.line("  %-5s %s", label, strings.ReplaceAll(m.Command, "\n", "\n        "))
		if m.Note != "" {
			p.line("          # %s", m.Note)
		}
		label = ""
	}
}

func (p *printer) tree(b Branch, first, rest string) {
	mark := ""
	if len(b.Rules) > 0 {
		mark = "  ✗ " + strings.Join(b.Rules, ", ")
	}
	p.line("%s%s %s%s", first, b.Object, b.State, mark)
	for i, c := range b.Needs {
		if i == len(b.Needs)-1 {
			p.tree(c, rest+"└─ ", rest+"   ")
		} else {
			p.tree(c, rest+"├─ ", rest+"│  ")
		}
	}
}
