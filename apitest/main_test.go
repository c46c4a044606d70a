package apitest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestMain fails when an environment has left anything behind.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "test-of-apitest-")
	if err != nil {
		panic(err)
	}
	_ = os.Setenv("TMPDIR", dir) // fails for names with "=" or NUL only
	code := m.Run()
	if left := leftovers(dir); code == 0 && len(left) > 0 {
		fmt.Fprintf(os.Stderr, "left behind:\n%s\n", strings.Join(left, "\n\n"))
		code = 1
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// serving are frames of goroutines that belong to a server.
var serving = []string{"/periplus/apiserver", "/periplus/apitest.", "/periplus/store/", "/periplus/controllers", "/periplus/scheduler", "/periplus/client.", "net/http.(*conn).serve", "serverConn).serve", "go.etcd.io/"}

// leftovers are goroutines of servers, and files in the directory of temporary ones.
func leftovers(dir string) []string {
	var left []string
	stacks := make([]byte, 16<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for one := range strings.SplitSeq(string(stacks), "\n\n") {
		for _, frame := range serving {
			if strings.Contains(one, frame) && !strings.Contains(one, "apitest_test.TestMain") {
				left = append(left, one)
				break
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		left = append(left, err.Error())
	}
	return append(left, files...)
}
