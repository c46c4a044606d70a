package dropin_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/periplus/periplus/app/dropin"
)

// follow reports the names in the directory after each change.
func follow(t *testing.T, dir string) <-chan string {
	t.Helper()
	seen := make(chan string, 100)
	d := &dropin.Directory{Path: dir, Sync: func(_ context.Context, files []dropin.File) time.Duration {
		var names []string
		for _, f := range files {
			b, err := os.ReadFile(f.Path)
			if err != nil {
				t.Error(err)
			}
			names = append(names, f.Name+"="+string(b))
		}
		seen <- strings.Join(names, " ")
		return 0
	}}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Follow(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return seen
}

func TestFollow(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "made", "too")
	seen := follow(t, dir)
	want := func(names string) {
		t.Helper()
		if got := <-seen; got != names {
			t.Fatalf("saw %q, want %q", got, names)
		}
	}
	want("")
	// A file counts when it is closed, not before.
	f, err := os.Create(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("half"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(" and half"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	want("a=half and half")
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	do(os.WriteFile(filepath.Join(dir, ".hidden"), nil, 0o600))
	do(os.Rename(filepath.Join(dir, ".hidden"), filepath.Join(dir, "b")))
	want("a=half and half b=")
	do(os.Link(filepath.Join(dir, "a"), filepath.Join(dir, "c")))
	want("a=half and half b= c=half and half")
	do(os.Symlink("a", filepath.Join(dir, "d")))
	want("a=half and half b= c=half and half d=half and half")
	for _, name := range []string{"b", "c", "d"} {
		do(os.Remove(filepath.Join(dir, name)))
		<-seen
	}
	do(os.Remove(filepath.Join(dir, "a")))
	want("")
	do(os.Remove(dir))
	want("") // it is there again
	do(os.WriteFile(filepath.Join(dir, "e"), []byte("x"), 0o600))
	want("e=x")
}
