package e2e_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// binary is the peri under test: $PERI, else what make build leaves.
func binary(t testing.TB) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: runs containers")
	}
	path := os.Getenv("PERI")
	if path == "" {
		path = filepath.Join("..", "..", "bin", "peri")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("needs the binary: make build (%v)", err)
	}
	return path
}

// ownMachine finds scripts that want a machine for themselves.
var ownMachine = regexp.MustCompile(`(?m)^(machine|lab)\b`)

func TestScripts(t *testing.T) {
	peri := binary(t)
	shared := &node{}
	t.Cleanup(func() { shared.end(t) })
	t.Run("on", func(t *testing.T) { // returns when all parallel scripts have
		testscript.Run(t, testscript.Params{
			Dir:                 "testdata",
			RequireUniqueNames:  true,
			RequireExplicitExec: true,
			Cmds:                commands(peri),
			Setup: func(e *testscript.Env) error {
				name := strings.TrimPrefix(filepath.Base(e.WorkDir), "script-")
				script, err := os.ReadFile(filepath.Join("testdata", name+".txtar"))
				if err != nil {
					return err
				}
				if ownMachine.Match(script) {
					n := &node{}
					e.Values[nodeKey{}] = n
					n.report(e, "")
					return nil
				}
				return shared.namespace(e, peri, name)
			},
		})
	})
}
