package server

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/periplus/periplus/linux/inotify"
)

// logOptions choose what of a log is read.
type logOptions struct {
	tail       int64 // lines from the end, negative: all
	limit      int64 // bytes at most, negative: no limit
	since      time.Time
	timestamps bool
	follow     bool
	// Where the streams go, nil: not wanted.
	stdout, stderr io.Writer
	// flush sends on what was written; called before every wait.
	flush func()
}

// Lines are cut by the runtime at 16 KiB; what is longer than this is no log.
const maxLogLine = 1 << 20

var errLimit = errors.New("limit reached")

// readLog copies a container's log. With follow it goes on until exited is
// closed and everything is read, or ctx ends; it waits for inotify, and changes
// to the new file when the log is rotated.
func readLog(ctx context.Context, path string, o logOptions, exited <-chan struct{}) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	var changes *logChanges
	if o.follow { // before reading, so that nothing is missed in between
		if changes, err = watchLog(ctx, path); err != nil {
			return err
		}
		defer changes.close()
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { f.Close() }() //nolint:errcheck // only read
	info, err := f.Stat()
	if err != nil {
		return err
	}
	start, err := tailStart(f, info.Size(), o.tail)
	if err != nil {
		return err
	}
	if _, err := f.Seek(start, io.SeekStart); err != nil {
		return err
	}

	reader := &logReader{options: o, in: bufio.NewReaderSize(f, 64<<10), left: o.limit}
	for last := false; ; {
		if err := reader.toEnd(); err != nil {
			if errors.Is(err, errLimit) {
				err = nil
			}
			return err
		}
		if !o.follow {
			return ignoreLimit(reader.rest())
		}
		o.flush()
		// The file is read up to its end. Is it still the one?
		switch next, err := replaced(path, f); {
		case err != nil:
			return err
		case next != nil:
			// What came between the end that we saw and the rotation.
			err := reader.toEnd()
			if err == nil {
				err = reader.rest()
			}
			if err != nil {
				next.Close() //nolint:errcheck // only read
				return ignoreLimit(err)
			}
			f.Close() //nolint:errcheck // only read
			f = next
			reader.in.Reset(f)
			continue
		}
		if last {
			return ignoreLimit(reader.rest())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-exited:
			last = true // read once more: the end was written before
			exited = nil
		case <-changes.signal:
		case err := <-changes.failed:
			return err
		}
	}
}

func ignoreLimit(err error) error {
	if errors.Is(err, errLimit) {
		return nil
	}
	return err
}

// replaced opens the file that is at path now if it is not f.
func replaced(path string, f *os.File) (*os.File, error) {
	now, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // between two renames
	}
	if err != nil {
		return nil, err
	}
	was, err := f.Stat()
	if err != nil || os.SameFile(now, was) {
		return nil, err
	}
	next, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return next, err
}

// A logReader copies lines from one file after the other.
type logReader struct {
	options logOptions
	in      *bufio.Reader
	pending []byte  // the beginning of a line whose end is not written yet
	skip    bool    // in the middle of something that is no line
	middle  [2]bool // by stream: the last line was partial, the next continues it
	left    int64   // bytes that may still be written, negative: no limit
}

// toEnd copies all complete lines up to the end of the file.
func (r *logReader) toEnd() error {
	if r.left == 0 {
		return errLimit
	}
	for {
		chunk, err := r.in.ReadSlice('\n')
		switch {
		case err == nil && r.skip:
			r.skip = false
		case err == nil && len(r.pending) == 0:
			err = r.copy(chunk)
		case err == nil:
			line := append(r.pending, chunk...)
			r.pending = r.pending[:0]
			err = r.copy(line)
		case r.skip:
		case len(r.pending)+len(chunk) > maxLogLine:
			r.pending, r.skip = r.pending[:0], true
		default:
			r.pending = append(r.pending, chunk...)
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
	}
}

// rest copies a last line that has no line feed.
func (r *logReader) rest() error {
	line := r.pending
	r.pending, r.skip = nil, false
	if len(line) == 0 {
		return nil
	}
	return r.copy(line)
}

func (r *logReader) copy(line []byte) error {
	l, err := parseLogLine(line)
	if err != nil {
		return nil //nolint:nilerr // a line that a crash cut is left out
	}
	stream, out := 0, r.options.stdout
	if l.stderr {
		stream, out = 1, r.options.stderr
	}
	begins := !r.middle[stream]
	r.middle[stream] = l.partial
	if out == nil || l.time.Before(r.options.since) {
		return nil
	}
	content := l.content
	if r.options.timestamps && begins {
		content = append(l.time.AppendFormat(make([]byte, 0, len(content)+40), layoutOut), ' ')
		content = append(content, l.content...)
	}
	if r.left >= 0 && int64(len(content)) > r.left {
		content = content[:r.left]
	}
	n, err := out.Write(content)
	if err != nil {
		return err
	}
	if r.left >= 0 {
		if r.left -= int64(n); r.left == 0 {
			return errLimit
		}
	}
	return nil
}

// logChanges says when a log file may have changed.
type logChanges struct {
	signal chan struct{} // holds one token after any number of changes
	failed chan error
	cancel context.CancelFunc
	ended  chan struct{}
}

func watchLog(ctx context.Context, path string) (*logChanges, error) {
	watcher, err := inotify.Watch(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	c := &logChanges{signal: make(chan struct{}, 1), failed: make(chan error, 1), cancel: cancel, ended: make(chan struct{})}
	base := filepath.Base(path)
	go func() {
		defer close(c.ended)
		defer watcher.Close() //nolint:errcheck // nothing is written
		for {
			e, err := watcher.Next(ctx)
			if err != nil {
				if ctx.Err() == nil {
					c.failed <- err
				}
				return
			}
			if e.Name != base && !e.Has(inotify.Lost) {
				continue
			}
			select {
			case c.signal <- struct{}{}:
			default:
			}
		}
	}()
	return c, nil
}

func (c *logChanges) close() {
	c.cancel()
	<-c.ended
}
