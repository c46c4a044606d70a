package tour

import (
	"fmt"
	"strconv"
	"strings"
)

// A tally is what "sort | uniq -c" prints: how often each answer came.
type tally map[string]int

// count reads one.
func count(out string) (tally, error) {
	t := tally{}
	for line := range strings.Lines(out) {
		number, answer, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.Atoi(number)
		if err != nil {
			return nil, fmt.Errorf("not a count of answers: %q", strings.TrimSpace(line))
		}
		t[answer] = n
	}
	return t, nil
}

// within wants an answer to have come between least and most times.
func (t tally) within(answer string, least, most int) error {
	if n := t[answer]; n < least || n > most {
		return fmt.Errorf("%d answers %q, want %d to %d", n, answer, least, most)
	}
	return nil
}

// only wants all answers to be this one.
func (t tally) only(answer string) error {
	if len(t) != 1 || t[answer] == 0 {
		return fmt.Errorf("answers %v, want %q only", t, answer)
	}
	return nil
}

// have wants all of the words in a text.
func have(out string, words ...string) error {
	for _, w := range words {
		if !strings.Contains(out, w) {
			return fmt.Errorf("%q is missing in\n%s", w, out)
		}
	}
	return nil
}
