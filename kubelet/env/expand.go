package env

import (
	"fmt"
	"strings"
)

// Expand replaces $(NAME) by what lookup knows, leaves unknown references as
// they are, and turns $$ into $.
func Expand(s string, lookup func(string) (string, bool)) string {
	if !strings.Contains(s, "$") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '$' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		switch s[i+1] {
		case '$':
			b.WriteByte('$')
			i++
		case '(':
			end := strings.IndexByte(s[i+2:], ')')
			if end < 0 {
				b.WriteString("$(")
				i++
				continue
			}
			name := s[i+2 : i+2+end]
			if v, ok := lookup(name); ok {
				b.WriteString(v)
			} else {
				b.WriteString(s[i : i+3+end])
			}
			i += 2 + end
		default:
			b.WriteByte('$')
			b.WriteByte(s[i+1])
			i++
		}
	}
	return b.String()
}

// ExpandAll expands $(NAME) in each element, as for command and args.
func ExpandAll(list []string, vars map[string]string) []string {
	if list == nil {
		return nil
	}
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = Expand(s, func(n string) (string, bool) { v, ok := vars[n]; return v, ok })
	}
	return out
}

// ExpandStrict expands s; a reference to an unknown name is an error, as for subPathExpr.
func ExpandStrict(s string, vars map[string]string) (string, error) {
	var missing []string
	out := Expand(s, func(n string) (string, bool) {
		v, ok := vars[n]
		if !ok {
			missing = append(missing, n)
		}
		return v, ok
	})
	if len(missing) > 0 {
		return "", fmt.Errorf("missing value for %q", missing[0])
	}
	return out, nil
}
