package dropin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/periplus/periplus/linux/inotify"
)

// A File is one in the directory.
type File struct {
	Name string
	Path string
	Info fs.FileInfo
}

// A Directory is followed. Sync is never called twice at a time; if it returns a
// duration, it is called again after that time, or earlier if something changes.
type Directory struct {
	Path string
	Sync func(ctx context.Context, files []File) (retry time.Duration)

	mu    sync.Mutex // held by Sync
	again *time.Timer
	ended bool
}

// Follow makes the directory if it is missing and follows it until ctx ends.
func (d *Directory) Follow(ctx context.Context) error {
	defer d.end()
	for {
		lost, err := d.watch(ctx)
		if !lost || ctx.Err() != nil {
			return err
		}
		// The directory was removed: it is made again.
	}
}

func (d *Directory) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
	if d.again != nil {
		d.again.Stop()
	}
}

func (d *Directory) watch(ctx context.Context) (lost bool, err error) {
	if err := os.MkdirAll(d.Path, 0o755); err != nil { //nolint:gosec // people drop files here
		return false, err
	}
	w, err := inotify.Watch(d.Path, inotify.Create, inotify.Remove, inotify.Closed)
	if err != nil {
		return false, err
	}
	defer w.Close() //nolint:errcheck // only read
	d.Now(ctx)
	for {
		e, err := w.Next(ctx)
		switch {
		case err != nil && (ctx.Err() != nil || errors.Is(err, os.ErrClosed)):
			return false, nil
		case err != nil:
			return false, fmt.Errorf("follow %s: %w", d.Path, err)
		case e.Has(inotify.Lost) && e.Name == "":
			if _, err := os.Stat(d.Path); errors.Is(err, fs.ErrNotExist) {
				return true, nil
			}
			d.Now(ctx)
		case hidden(e.Name):
		case e.Has(inotify.Create) && !e.Has(inotify.Moved) && !d.whole(e.Name):
			// It is being written: Closed follows.
		default:
			d.Now(ctx)
		}
	}
}

// whole reports that a file which has just been made is a link to what is there already.
func (d *Directory) whole(name string) bool {
	info, err := os.Lstat(filepath.Join(d.Path, name))
	return err == nil && (info.Mode().Type() == fs.ModeSymlink || links(info) > 1)
}

// Now reads the directory and calls Sync.
func (d *Directory) Now(ctx context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended || ctx.Err() != nil {
		return
	}
	if d.again != nil {
		d.again.Stop()
		d.again = nil
	}
	if retry := d.Sync(ctx, d.files()); retry > 0 {
		d.again = time.AfterFunc(retry, func() { d.Now(ctx) })
	}
}

// files are the directory's, by name, without hidden ones and directories.
func (d *Directory) files() []File {
	entries, err := os.ReadDir(d.Path)
	if err != nil {
		return nil
	}
	var out []File
	for _, e := range entries {
		path := filepath.Join(d.Path, e.Name())
		info, err := os.Stat(path) // behind a link, too
		if err == nil && info.Mode().IsRegular() && !hidden(e.Name()) {
			out = append(out, File{e.Name(), path, info})
		}
	}
	return out
}

// hidden files are those that editors and copying programs make for themselves.
func hidden(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~") || strings.HasSuffix(name, ".swp") || strings.HasSuffix(name, ".tmp") || strings.HasSuffix(name, ".part")
}
