package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/periplus/periplus/base/pki"
)

// marker says that a directory belongs to Periplus, and in which layout.
type marker struct {
	Layout  int    `json:"layout"`
	Created string `json:"createdBy"`
}

const (
	markerName = "periplus.json"
	layout     = 1
)

// openState takes hold of the state directory for this process. It creates an
// absent one; one with other things in it, of a newer layout or in use is an
// error, and is not touched.
func openState(dir string) (release func(), err error) {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("state directory: %w", err)
		}
	case err != nil:
		return nil, fmt.Errorf("state directory: %w", err)
	}
	path := filepath.Join(dir, markerName)
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && foreign(entries):
		return nil, fmt.Errorf("state directory %s holds %q and more, and is not Periplus's (it has no %s): choose an empty or new directory with --state-dir", dir, entries[0].Name(), markerName)
	case errors.Is(err, fs.ErrNotExist):
		data, err = json.Marshal(marker{layout, Release})
		if err != nil {
			return nil, err
		}
		if err := pki.WriteFile(path, data, 0o600); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, fmt.Errorf("state directory: %w", err)
	}
	var m marker
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("state directory %s is damaged: %s: %w", dir, markerName, err)
	}
	if m.Layout > layout {
		return nil, fmt.Errorf("state directory %s was written by a newer Periplus (layout %d, this one knows %d): use that version, or another directory", dir, m.Layout, layout)
	}
	return lock(path)
}

// foreign reports that there is more than the directories into which people drop files
// before the first start.
func foreign(entries []fs.DirEntry) bool {
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return !e.IsDir() || e.Name() != "manifests" && e.Name() != "images"
	})
}

// lock holds the marker file locked until release is called or the process ends.
func lock(path string) (release func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("state directory %s is in use by another peri: stop it with peri down, or choose another --state-dir", filepath.Dir(path))
		}
		return nil, fmt.Errorf("lock state directory: %w", err)
	}
	return func() { _ = f.Close() }, nil
}
