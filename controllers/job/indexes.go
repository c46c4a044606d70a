package job

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// indexSet is a set of completion indexes. Its text form lists numbers and, from
// three in a row, ranges: "1,3-5,7".
type indexSet map[int]bool

func (s *indexSet) add(i int) {
	if *s == nil {
		*s = indexSet{}
	}
	(*s)[i] = true
}

func (s indexSet) has(i int) bool { return s[i] }
func (s indexSet) len() int       { return len(s) }

// parseIndexes reads the text form, leaving out indexes that are not below limit.
func parseIndexes(text string, limit int) indexSet {
	s := indexSet{}
	if text == "" {
		return s
	}
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		if err != nil {
			continue
		}
		last := first
		if isRange {
			if last, err = strconv.Atoi(to); err != nil {
				continue
			}
		}
		for i := first; i <= last && i < limit; i++ {
			s[i] = true
		}
	}
	return s
}

func (s indexSet) String() string {
	sorted := slices.Sorted(maps.Keys(s))
	var parts []string
	for i := 0; i < len(sorted); {
		j := i
		for j+1 < len(sorted) && sorted[j+1] == sorted[j]+1 {
			j++
		}
		switch j - i {
		case 0:
			parts = append(parts, strconv.Itoa(sorted[i]))
		case 1:
			parts = append(parts, strconv.Itoa(sorted[i]), strconv.Itoa(sorted[j]))
		default:
			parts = append(parts, strconv.Itoa(sorted[i])+"-"+strconv.Itoa(sorted[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ",")
}
