package audit

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// packed is how names of compressed files end.
const packed = ".gz"

// An oldFile is a log file that was full.
type oldFile struct {
	name string
	when time.Time
}

// old are the full files, compressed or not, by time.
func (l *logFile) old() []oldFile {
	ext := filepath.Ext(l.path)
	prefix := strings.TrimSuffix(l.path, ext) + "-"
	var out []oldFile
	for _, pattern := range []string{ext, ext + packed} {
		names, _ := filepath.Glob(prefix + "*" + pattern) // only a bad pattern is an error
		for _, name := range names {
			if when, err := time.Parse(stamp, strings.TrimSuffix(strings.TrimPrefix(name, prefix), pattern)); err == nil {
				out = append(out, oldFile{name, when})
			}
		}
	}
	slices.SortFunc(out, func(a, b oldFile) int { return a.when.Compare(b.when) })
	return out
}

// Run implements Sink: it compresses files that are full, also those that an earlier
// process has left.
func (l *logFile) Run(ctx context.Context) error {
	if l.path == "-" || !l.compress {
		<-ctx.Done()
		return nil
	}
	for {
		var errs []error
		for _, f := range l.old() {
			if !strings.HasSuffix(f.name, packed) {
				errs = append(errs, pack(f.name))
			}
		}
		if err := errors.Join(errs...); err != nil {
			l.limit.log.Error("Old audit log files could not be compressed.", "error", err)
		}
		select {
		case <-l.full:
			continue
		default:
		}
		select {
		case <-ctx.Done():
			return nil
		case <-l.full:
		}
	}
}

// pack replaces a file by a compressed one. One that was deleted meanwhile is fine.
func pack(name string) (err error) {
	in, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // only read
	unfinished := name + packed + ".tmp"
	out, err := os.OpenFile(unfinished, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	w := gzip.NewWriter(out)
	_, err = io.Copy(w, in)
	if err = errors.Join(err, w.Close(), out.Sync(), out.Close()); err == nil {
		err = os.Rename(unfinished, name+packed)
	}
	if err != nil {
		return fmt.Errorf("compress %s: %w", name, errors.Join(err, os.Remove(unfinished)))
	}
	return os.Remove(name)
}

// taken reports whether a full file has this name, compressed or not.
func taken(name string) bool {
	_, err := os.Lstat(name)
	_, err2 := os.Lstat(name + packed)
	return err == nil || err2 == nil
}
