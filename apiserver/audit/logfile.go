package audit

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// stamp is how the time at which a file was full is part of its name.
const stamp = "2006-01-02T15-04-05.000"

// A logFile is the log backend. Files are 0600: they tell who did what.
type logFile struct {
	path, format string
	maxSize      int64
	maxBackups   int
	maxAge       time.Duration
	compress     bool
	limit        limit
	full         chan struct{} // has an item when there may be files to compress

	mu       sync.Mutex // guards what follows
	file     *os.File
	size     int64
	closeNot bool // the file is the standard output
}

var _ Sink = (*logFile)(nil)

func openLog(o *Options, log *slog.Logger) (*logFile, error) {
	l := &logFile{compress: o.LogCompress, limit: limit{o.LogTruncate, o.LogTruncateEach, log}, full: make(chan struct{}, 1), path: o.LogPath, format: o.LogFormat, maxSize: int64(o.LogMaxSize) << 20, maxBackups: o.LogMaxBackup, maxAge: time.Duration(o.LogMaxAge) * 24 * time.Hour}
	if l.maxSize == 0 {
		l.maxSize = 100 << 20
	}
	if l.path == "-" {
		l.file, l.closeNot = os.Stdout, true
		return l, nil
	}
	if err := os.MkdirAll(filepath.Dir(l.path), 0o700); err != nil {
		return nil, err
	}
	return l, l.openLocked()
}

func (l *logFile) openLocked() error {
	f, err := os.OpenFile(l.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.file, l.size = f, info.Size()
	return nil
}

// Write implements Sink.
func (l *logFile) Write(events ...*auditv1.Event) error {
	var out []byte
	for _, e := range events {
		e, err := l.limit.shorten(e)
		if err != nil {
			return err
		}
		if e == nil {
			continue
		}
		text, err := line(l.format, e)
		if err != nil {
			return err
		}
		out = append(out, text...)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closeNot && l.size > 0 && l.size+int64(len(out)) > l.maxSize {
		if err := l.rotateLocked(); err != nil {
			return fmt.Errorf("begin a new audit log file: %w", err)
		}
	}
	if l.file == nil {
		return os.ErrClosed
	}
	n, err := l.file.Write(out)
	l.size += int64(n)
	return err
}

// rotateLocked puts the full file aside, under its name and the time, and begins a new one.
func (l *logFile) rotateLocked() error {
	ext := filepath.Ext(l.path)
	now := time.Now().UTC()
	aside := strings.TrimSuffix(l.path, ext) + "-" + now.Format(stamp) + ext
	for taken(aside) { // full within a millisecond
		now = now.Add(time.Millisecond)
		aside = strings.TrimSuffix(l.path, ext) + "-" + now.Format(stamp) + ext
	}
	err := l.file.Close()
	l.file = nil
	err = errors.Join(err, os.Rename(l.path, aside), l.openLocked())
	l.forgetLocked()
	select {
	case l.full <- struct{}{}:
	default:
	}
	return err
}

// forgetLocked deletes files that are too old or too many.
func (l *logFile) forgetLocked() {
	if l.maxBackups == 0 && l.maxAge == 0 {
		return
	}
	old := l.old()
	for i, f := range old {
		if l.maxBackups > 0 && len(old)-i > l.maxBackups || l.maxAge > 0 && time.Since(f.when) > l.maxAge {
			_ = os.Remove(f.name) // the next rotation tries again
		}
	}
}
