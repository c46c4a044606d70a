package monitor

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var moment = time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)

// TestLogEntries feeds a stream in pieces and looks at the entries.
func TestLogEntries(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", MaxLogLine)
	for name, c := range map[string]struct {
		pieces []string
		want   []string // tag and content
	}{
		"lines":           {[]string{"a\nb\n"}, []string{"F a", "F b"}},
		"empty line":      {[]string{"\n"}, []string{"F "}},
		"across pieces":   {[]string{"a", "b", "c\nd"}, []string{"F abc", "F d"}},
		"as long as can":  {[]string{long + "\n"}, []string{"F " + long}},
		"one byte longer": {[]string{long + "y\n"}, []string{"P " + long, "F y"}},
		"long in pieces":  {[]string{long[:100], long[100:], "y\n"}, []string{"P " + long, "F y"}},
		"never ends":      {[]string{long + long + "z"}, []string{"P " + long, "P " + long, "F z"}},
	} {
		w := lineWriter{stream: "stdout"}
		var log []byte
		for _, p := range c.pieces {
			log = w.entries(log, moment, []byte(p))
		}
		log = w.flush(log, moment)
		var want strings.Builder
		for _, e := range c.want {
			want.WriteString("2026-01-02T03:04:05.0000006Z stdout " + e + "\n")
		}
		if string(log) != want.String() {
			t.Errorf("%s: %.200q, want %.200q", name, log, want.String())
		}
	}
}

// TestLogRotation writes more than the kept files can hold.
func TestLogRotation(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "c", "0.log")
	l, err := openLog(path)
	if err != nil {
		t.Fatal(err)
	}
	l.most = 10
	for range 20 {
		l.write([]byte("123456\n"))
	}
	l.close()
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) != MaxLogFiles {
		t.Errorf("%v, %v, want %d files", files, err, MaxLogFiles)
	}
	for _, f := range files {
		if info, err := os.Stat(f); err != nil || info.Size() > 14 {
			t.Errorf("%s: %v, %v", f, info, err)
		}
	}
	// The size is known again after a restart.
	if err := os.WriteFile(path, []byte("123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err = openLog(path); err != nil {
		t.Fatal(err)
	}
	l.most = 10
	l.write([]byte("0"))
	l.write([]byte("x"))
	l.close()
	if b, err := os.ReadFile(path); err != nil || string(b) != "x" {
		t.Errorf("%q, %v after a restart", b, err)
	}
}

func TestParseLogEntryErrors(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"", "x", "2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z stdin F x", "2026-01-02T03:04:05Z stdout F",
		"2026-01-02T03:04:05Z stdout X x", "yesterday stdout F x"} {
		if e, err := ParseLogEntry([]byte(line)); err == nil {
			t.Errorf("%q: %+v, want an error", line, e)
		}
	}
}

// FuzzLogEntry: what can be parsed is written the same again, and no input panics.
func FuzzLogEntry(f *testing.F) {
	f.Add([]byte("2016-10-06T00:17:09.669794202Z stdout P partial"))
	f.Add([]byte("2016-10-06T00:17:09.669794202+02:00 stderr F:x:y \n"))
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := ParseLogEntry(line)
		if err != nil {
			return
		}
		again, err := ParseLogEntry(e.Append(nil))
		if err != nil || !again.Time.Equal(e.Time) || again.Stream != e.Stream || again.Partial != e.Partial || !bytes.Equal(again.Content, e.Content) {
			t.Fatalf("%q → %+v → %+v, %v", line, e, again, err)
		}
	})
}

// FuzzLines: however a stream is cut into reads, its content comes back whole.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nbc\n\nd"), uint16(2))
	f.Add(bytes.Repeat([]byte("x"), 3*MaxLogLine), uint16(1000))
	f.Fuzz(func(t *testing.T, stream []byte, size uint16) {
		w := lineWriter{stream: "stderr"}
		var log []byte
		for p := stream; len(p) > 0; {
			n := min(len(p), int(size)+1)
			log = w.entries(log, moment, p[:n])
			p = p[n:]
		}
		log = w.flush(log, moment)
		var got []byte
		for line := range bytes.Lines(log) {
			e, err := ParseLogEntry(line)
			if err != nil {
				t.Fatal(err)
			}
			if len(e.Content) > MaxLogLine {
				t.Fatalf("entry of %d bytes", len(e.Content))
			}
			got = append(got, e.Content...)
			if !e.Partial {
				got = append(got, '\n')
			}
		}
		if want := bytes.TrimSuffix(stream, []byte("\n")); !bytes.Equal(bytes.TrimSuffix(got, []byte("\n")), want) {
			t.Fatalf("%.100q became %.100q", stream, got)
		}
	})
}
