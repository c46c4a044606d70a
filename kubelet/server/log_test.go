package server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func stamp(second int) string {
	return time.Date(2026, 1, 2, 3, 4, second, 5000, time.UTC).Format(time.RFC3339Nano)
}

func writeLog(t *testing.T, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "0.log")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadLog(t *testing.T) {
	t.Parallel()
	log := []string{
		stamp(1) + " stdout F one\n",
		stamp(2) + " stderr F two\n",
		stamp(3) + " stdout P thr\n",
		stamp(4) + " stderr P be\n",
		stamp(5) + " stdout F ee\n",
		stamp(6) + " stderr F tween\n",
		"not a line\n",
		stamp(7) + " stdout F \n",
		stamp(8) + " stdout F:tag cut off",
	}
	long := func(second int) string {
		return time.Date(2026, 1, 2, 3, 4, second, 5000, time.UTC).Format(layoutOut) + " "
	}
	since, err := time.Parse(time.RFC3339Nano, stamp(6))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		set  func(*logOptions)
		want string
	}{
		"all":         {func(*logOptions) {}, "one\ntwo\nthrbeee\ntween\n\ncut off"},
		"stdout":      {func(o *logOptions) { o.stderr = nil }, "one\nthree\n\ncut off"},
		"stderr":      {func(o *logOptions) { o.stdout = nil }, "two\nbetween\n"},
		"tail":        {func(o *logOptions) { o.tail = 2 }, "\ncut off"},
		"tail none":   {func(o *logOptions) { o.tail = 0 }, ""},
		"tail many":   {func(o *logOptions) { o.tail = 100 }, "one\ntwo\nthrbeee\ntween\n\ncut off"},
		"since":       {func(o *logOptions) { o.since = since }, "tween\n\ncut off"},
		"limit":       {func(o *logOptions) { o.limit = 6 }, "one\ntw"},
		"limit exact": {func(o *logOptions) { o.limit = 4 }, "one\n"},
		"timestamps": {func(o *logOptions) { o.timestamps, o.stderr = true, nil },
			long(1) + "one\n" + long(3) + "three\n" + long(7) + "\n" + long(8) + "cut off"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			o := logOptions{tail: -1, limit: -1, stdout: &out, stderr: &out, flush: func() {}}
			c.set(&o)
			if err := readLog(t.Context(), writeLog(t, log...), o, nil); err != nil {
				t.Fatal(err)
			}
			if out.String() != c.want {
				t.Errorf("got  %q\nwant %q", out.String(), c.want)
			}
		})
	}
}

func TestTailStart(t *testing.T) {
	t.Parallel()
	// Longer than two blocks, with line lengths that put line feeds on the borders.
	var b strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&b, "%0*d\n", 1+i%31, i)
	}
	for _, data := range []string{"", "\n", "a", "a\n", "a\nb", "a\nb\n", "\n\n\n", b.String(), b.String() + "x"} {
		lines := strings.SplitAfter(data, "\n")
		if lines[len(lines)-1] == "" {
			lines = lines[:len(lines)-1]
		}
		for _, n := range []int{-1, 0, 1, 2, 3, 999, 2999, 3000, 3001, 5000} {
			want := strings.Join(lines[max(len(lines)-max(n, 0), 0):], "")
			if n < 0 {
				want = data
			}
			start, err := tailStart(strings.NewReader(data), int64(len(data)), int64(n))
			if err != nil || data[start:] != want {
				t.Errorf("%d lines of %d bytes: %d bytes, want %d; %v", n, len(data), len(data)-int(start), len(want), err)
			}
		}
	}
}

// A follower sees what is appended, goes on after a rotation, and ends when the
// container has ended and everything is read.
func TestFollow(t *testing.T) {
	t.Parallel()
	path := writeLog(t, stamp(1)+" stdout F one\n")
	appendTo := func(path, text string) {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	r, w := io.Pipe()
	exited, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		err := readLog(t.Context(), path, logOptions{tail: -1, limit: -1, follow: true, stdout: w, stderr: w, flush: func() {}}, exited)
		ended <- err
		w.Close() //nolint:errcheck // a pipe
	}()
	read := func(want string) {
		t.Helper()
		got := make([]byte, len(want))
		if _, err := io.ReadFull(r, got); err != nil || string(got) != want {
			t.Fatalf("got %q, %v; want %q", got, err, want)
		}
	}
	read("one\n")
	appendTo(path, stamp(2)+" stdout F half a")
	appendTo(path, " line\n")
	read("half a line\n")

	old := path + ".20260102-030405"
	if err := os.Rename(path, old); err != nil {
		t.Fatal(err)
	}
	appendTo(old, stamp(3)+" stdout F still the old file\n")
	read("still the old file\n")
	appendTo(path, stamp(4)+" stdout F new file\n")
	read("new file\n")

	appendTo(path, stamp(5)+" stdout F last words")
	close(exited)
	read("last words")
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestFollowEndsWithTheRequest(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	path := writeLog(t)
	ended := make(chan error, 1)
	waiting := make(chan struct{}, 1)
	go func() {
		ended <- readLog(ctx, path, logOptions{tail: -1, limit: -1, follow: true, flush: func() { waiting <- struct{}{} }}, make(chan struct{}))
	}()
	<-waiting
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func FuzzParseLogLine(f *testing.F) {
	f.Add([]byte(stamp(1) + " stdout F text\n"))
	f.Add([]byte(stamp(1) + " stderr P:x:y text"))
	f.Add([]byte(stamp(1) + " stdout F"))
	f.Add([]byte("2026-01-01T00:00:00+01:00 stdout P \n"))
	f.Fuzz(func(t *testing.T, line []byte) {
		before := bytes.Clone(line)
		l, err := parseLogLine(line)
		if !bytes.Equal(before, line) {
			t.Fatal("the input was changed")
		}
		if err == nil && (len(l.content) > len(line) || l.time.IsZero() && !bytes.HasPrefix(line, []byte("0001"))) {
			t.Fatalf("%q: %+v", line, l)
		}
		var out bytes.Buffer
		r := logReader{options: logOptions{stdout: &out, stderr: &out, timestamps: true}, left: -1}
		if err := r.copy(line); err != nil {
			t.Fatal(err)
		}
	})
}
