package inotify

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Op says what happened to an entry; several may come together.
type Op uint32

// What may happen.
const (
	Write  Op = unix.IN_MODIFY
	Create Op = unix.IN_CREATE | unix.IN_MOVED_TO
	Remove Op = unix.IN_DELETE | unix.IN_MOVED_FROM
	// Moved is the part of Create that brings a whole file. Closed, after writing, is
	// told only to those who ask for it.
	Moved  Op = unix.IN_MOVED_TO
	Closed Op = unix.IN_CLOSE_WRITE
	// Lost: events were dropped by the kernel, or the directory itself is gone.
	Lost Op = unix.IN_Q_OVERFLOW | unix.IN_IGNORED | unix.IN_UNMOUNT
)

// An Event is a change of the entry Name of the directory.
type Event struct {
	Name string
	Op   Op
}

// Has reports whether one of the bits of o happened.
func (e Event) Has(o Op) bool { return e.Op&o != 0 }

// A Watcher watches one directory. One goroutine may call Next at a time.
type Watcher struct {
	f       *os.File
	buf     [4096]byte
	pending []byte
}

// Watch begins to watch dir for writing, creation and removal: no change after it
// returns is missed. Ops, if given, are what is told instead.
func Watch(dir string, ops ...Op) (*Watcher, error) {
	mask := Write | Create | Remove
	for i, op := range ops {
		if i == 0 {
			mask = 0
		}
		mask |= op
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("inotify: %w (raise fs.inotify.max_user_instances)", err)
	}
	f := os.NewFile(uintptr(fd), "inotify")
	if _, err := unix.InotifyAddWatch(fd, dir, uint32(mask)|unix.IN_ONLYDIR); err != nil {
		f.Close() //nolint:errcheck // nothing was written
		return nil, fmt.Errorf("inotify: watch %s: %w", dir, err)
	}
	return &Watcher{f: f}, nil
}

// Next waits for the next event. It returns ctx's error when ctx ends; the
// Watcher can only be closed after that.
func (w *Watcher) Next(ctx context.Context) (Event, error) {
	if len(w.pending) < unix.SizeofInotifyEvent {
		stop := context.AfterFunc(ctx, func() { w.f.Close() }) //nolint:errcheck // ends the Read below
		n, err := w.f.Read(w.buf[:])
		stop()
		if err != nil {
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			return Event{}, err
		}
		w.pending = w.buf[:n]
	}
	mask := binary.NativeEndian.Uint32(w.pending[4:])
	end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(w.pending[12:]))
	name := bytes.TrimRight(w.pending[unix.SizeofInotifyEvent:end], "\x00")
	e := Event{Name: string(name), Op: Op(mask)}
	w.pending = w.pending[end:]
	return e, nil
}

// Close ends the watch.
func (w *Watcher) Close() error { return w.f.Close() }
