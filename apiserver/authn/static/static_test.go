package static_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/periplus/periplus/apiserver/authn/static"
)

func TestRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens.csv")
	for name, c := range map[string]struct{ text, wrong string }{
		"good":      {text: "t0ken,ann,1,\"team,crew\"\n\nother,bob,2\n"},
		"too short": {text: "t0ken,ann\n", wrong: "line 1 has 2 columns"},
		"twice":     {text: "t0ken,ann,1\nt0ken,bob,2\n", wrong: "line 2 has a token that another line has, too"},
		"quotes":    {text: "t0ken,\"ann,1\n", wrong: "line 1"},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		tokens, err := static.Read(path)
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) || strings.Contains(err.Error(), "t0ken") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		resp, ok, err := tokens.AuthenticateToken(t.Context(), "t0ken")
		if err != nil || !ok || resp.User.GetName() != "ann" || resp.User.GetUID() != "1" || !slices.Equal(resp.User.GetGroups(), []string{"team", "crew"}) {
			t.Errorf("%v, %v, %v", resp, ok, err)
		}
		if _, ok, _ := tokens.AuthenticateToken(t.Context(), "t0ke"); ok {
			t.Error("part of a token is accepted")
		}
	}
}
