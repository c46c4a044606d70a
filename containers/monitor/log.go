package monitor

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// MaxLogLine is how many bytes of content one entry of a log carries at most;
// longer lines go on in further entries.
const MaxLogLine = 16 << 10

// A log that has grown to MaxLogSize bytes goes on in a new file; at most
// MaxLogFiles are kept, the newer ones.
const (
	MaxLogSize  = 10 << 20
	MaxLogFiles = 5
)

// A LogEntry is one line of a CRI log file:
//
//	2016-10-06T00:17:09.669794202Z stdout P partial content
//	2016-10-06T00:17:09.669794203Z stderr F the end of a line
type LogEntry struct {
	Time    time.Time
	Stream  string // "stdout" or "stderr"
	Partial bool   // tag P: the line goes on in the stream's next entry
	Content []byte // without the newline
}

// Append writes the entry to the end of b.
func (e LogEntry) Append(b []byte) []byte {
	b = e.Time.UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(b, ' ')
	b = append(b, e.Stream...)
	if e.Partial {
		b = append(b, " P "...)
	} else {
		b = append(b, " F "...)
	}
	b = append(b, e.Content...)
	return append(b, '\n')
}

// ParseLogEntry reads one line of a CRI log, with or without its newline. Tags
// after the first are ignored, as the format says. Content shares line's memory.
func ParseLogEntry(line []byte) (LogEntry, error) {
	line = bytes.TrimSuffix(line, []byte("\n"))
	var e LogEntry
	stamp, rest, ok := bytes.Cut(line, []byte(" "))
	if !ok {
		return e, errors.New("log entry has no timestamp")
	}
	var err error
	if e.Time, err = time.Parse(time.RFC3339Nano, string(stamp)); err != nil {
		return e, fmt.Errorf("log entry: %w", err)
	}
	stream, rest, ok := bytes.Cut(rest, []byte(" "))
	if e.Stream = string(stream); !ok || e.Stream != "stdout" && e.Stream != "stderr" {
		return e, fmt.Errorf("log entry has stream %q, want stdout or stderr", stream)
	}
	tags, rest, ok := bytes.Cut(rest, []byte(" "))
	if !ok {
		return e, errors.New("log entry has no content")
	}
	tag, _, _ := bytes.Cut(tags, []byte(":"))
	switch string(tag) {
	case "P":
		e.Partial = true
	case "F":
	default:
		return e, fmt.Errorf("log entry has tag %q, want P or F", tag)
	}
	e.Content = rest
	return e, nil
}

// A logFile is a container's log; both streams write to it.
type logFile struct {
	path string
	most int64 // size at which it is rotated

	mu   sync.Mutex // guards the rest
	file *os.File   // nil: output is dropped
	size int64
}

func openLog(path string) (*logFile, error) {
	l := &logFile{path: path, most: MaxLogSize}
	if path == "" {
		return l, nil
	}
	return l, l.reopen()
}

// reopen goes on in a new file after the old one was moved away. On error it
// stays with the old one.
func (l *logFile) reopen() error {
	if l.path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(l.path), 0o755); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.openLocked()
}

func (l *logFile) openLocked() error {
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o640)
	if err != nil {
		return err
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		f.Close()
		return err
	}
	if l.file != nil {
		l.file.Close()
	}
	l.file, l.size = f, size
	return nil
}

// write appends whole entries. A full disk must not stop the container, so
// errors are forgotten.
func (l *logFile) write(p []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return
	}
	n, _ := l.file.Write(p)
	if l.size += int64(n); l.size >= l.most {
		l.rotateLocked()
	}
}

// rotateLocked moves the file away, as "<path>.<time>" like a kubelet would, and
// begins a new one. If that fails the log goes on growing until the next try.
func (l *logFile) rotateLocked() {
	l.size = 0
	old, _ := filepath.Glob(l.path + ".*") // the pattern is well-formed
	slices.Sort(old)                       // by time
	for len(old) > MaxLogFiles-2 {
		os.Remove(old[0])
		old = old[1:]
	}
	if err := os.Rename(l.path, l.path+"."+time.Now().UTC().Format("20060102-150405.000000")); err == nil {
		_ = l.openLocked()
	}
}

func (l *logFile) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		l.file.Close()
		l.file = nil
	}
}

// lineWriter cuts one stream into log entries.
type lineWriter struct {
	stream string
	rest   []byte // begun line, shorter than MaxLogLine
}

// entries appends the log entries that p completes to out.
func (w *lineWriter) entries(out []byte, now time.Time, p []byte) []byte {
	for len(p) > 0 {
		line, after, ended := bytes.Cut(p, []byte("\n"))
		if room := MaxLogLine - len(w.rest); len(line) > room {
			line, after, ended = p[:room], p[room:], false
		}
		if !ended && len(w.rest)+len(line) < MaxLogLine {
			w.rest = append(w.rest, line...)
			return out
		}
		if len(w.rest) > 0 {
			line, w.rest = append(w.rest, line...), nil
		}
		out = LogEntry{now, w.stream, !ended, line}.Append(out)
		p = after
	}
	return out
}

// flush ends a line that the stream left open.
func (w *lineWriter) flush(out []byte, now time.Time) []byte {
	if len(w.rest) == 0 {
		return out
	}
	out = LogEntry{now, w.stream, false, w.rest}.Append(out)
	w.rest = nil
	return out
}
