package jointoken_test

import (
	"strings"
	"testing"

	"github.com/periplus/periplus/base/jointoken"
)

func TestParse(t *testing.T) {
	t.Parallel()
	h := strings.Repeat("0a", 32)
	for in, want := range map[string]jointoken.Token{
		"abcdef.0123456789abcdef":                    {ID: "abcdef", Secret: "0123456789abcdef"},
		"K10" + h + "::abcdef.0123456789abcdef\n":    {ID: "abcdef", Secret: "0123456789abcdef", CAHash: h},
		"abcdef.0123456789abcde":                     {},
		"ABCDEF.0123456789abcdef":                    {},
		"K10::abcdef.0123456789abcdef":               {},
		"K10" + h + "abcdef.0123456789abcdef":        {},
		"K10" + h[:62] + "::abcdef.0123456789abcdef": {},
		"": {},
	} {
		got, err := jointoken.Parse(in)
		if got != want || (err == nil) != (want.ID != "") {
			t.Errorf("%q: %+v, %v", in, got, err)
		}
		if err == nil && got.String() != strings.TrimSpace(in) {
			t.Errorf("%q became %q", in, got)
		}
	}
	if a, b := jointoken.New(), jointoken.New(); a == b || !jointoken.IsID(a.ID) {
		t.Errorf("drawn: %+v, %+v", a, b)
	}
}
