package why

import (
	"maps"
	"slices"
	"strings"

	"github.com/periplus/periplus/insight"
)

// names are the names of the objects of a kind in a namespace.
func names[T insight.Object](s *insight.Snapshot, namespace string) []string {
	var out []string
	for _, o := range insight.All[T](s, namespace) {
		out = append(out, o.GetName())
	}
	return out
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// like offers the name that was probably meant.
func like(name string, all []string) string {
	best, distance := "", max(2, len(name)/3)+1
	for _, n := range all {
		d := edits(name, n)
		if strings.HasPrefix(n, name) || strings.HasPrefix(name, n) {
			d = min(d, 2)
		}
		if d < distance {
			best, distance = n, d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean \"" + best + "\"?"
}

// edits counts the insertions, deletions and replacements between two words
// (Levenshtein 1966).
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j]+1, row[j+1]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}

// has says what there is instead.
func has(keys []string) string {
	if len(keys) == 0 {
		return ": it is empty"
	}
	const most = 6
	more := ""
	if len(keys) > most {
		keys, more = keys[:most], ", …"
	}
	return ": it has " + strings.Join(keys, ", ") + more
}

// labelText is a set of labels as kubectl takes it.
func labelText(m map[string]string) string {
	var out []string
	for _, k := range sorted(m) {
		out = append(out, k+"="+m[k])
	}
	return strings.Join(out, ",")
}

// plural is a count with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return itoa(n) + " " + noun + "s"
}
