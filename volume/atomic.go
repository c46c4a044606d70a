package volume

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A File is one file of a volume that is made from API objects.
type File struct {
	Data []byte
	Mode fs.FileMode
	// Owner is the user who owns the file, nil means root.
	Owner *int64
}

// A Payload is the wanted content of a volume: files by their relative path.
type Payload map[string]File

const (
	dataLink    = "..data"     // leads to the directory of the current content
	newDataLink = "..data_tmp" // its successor, until the rename
	maxPathLen  = 4096
)

// Project makes dir contain exactly the payload, switching from the old to the
// new content in one step for whoever reads it:
//
//	dir/app.conf   → ..data/app.conf
//	dir/..data     → ..2026_02_03_04_05_06.123   the one link that is switched
//	dir/..2026_…/app.conf
//
// Nothing is written when the content is the same. finish, if not nil, is called
// on the new directory before the switch, to set owners. (The directory layout
// is that of upstream's atomic writer; programs watch ..data.)
func Project(dir string, payload Payload, finish func(newDir string) error) error {
	clean := make(Payload, len(payload))
	for path, f := range payload {
		if err := validPath(path); err != nil {
			return err
		}
		clean[filepath.Clean(path)] = f
	}

	// 1. What is there now?
	oldName, err := os.Readlink(filepath.Join(dir, dataLink))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	oldDir := ""
	if err == nil {
		oldDir = filepath.Join(dir, oldName)
		if same, err := sameContent(oldDir, clean); err != nil {
			return err
		} else if same {
			// A crash may have come between the switch and the links.
			return linkVisible(dir, clean)
		}
	}

	// 2. Write the new directory beside the old one.
	newDir, err := os.MkdirTemp(dir, time.Now().UTC().Format("..2006_01_02_15_04_05."))
	if err != nil {
		return err
	}
	if err := fill(newDir, clean, finish); err != nil {
		return errors.Join(err, os.RemoveAll(newDir))
	}

	// 3. Switch.
	next := filepath.Join(dir, newDataLink)
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, os.RemoveAll(newDir))
	}
	if err := os.Symlink(filepath.Base(newDir), next); err != nil {
		return errors.Join(err, os.RemoveAll(newDir))
	}
	if err := os.Rename(next, filepath.Join(dir, dataLink)); err != nil {
		return errors.Join(err, os.Remove(next), os.RemoveAll(newDir))
	}

	// 4. Names that are new, names that are gone, and the old content.
	if err := linkVisible(dir, clean); err != nil {
		return err
	}
	if err := unlinkStale(dir, clean); err != nil {
		return err
	}
	return removeOld(dir, filepath.Base(newDir))
}

func validPath(path string) error {
	switch {
	case path == "":
		return errors.New("invalid path: must not be empty")
	case filepath.IsAbs(path):
		return fmt.Errorf("invalid path: must be relative path: %s", path)
	case len(path) > maxPathLen:
		return fmt.Errorf("invalid path: must be less than or equal to %d characters", maxPathLen)
	case slices.Contains(strings.Split(path, "/"), ".."):
		return fmt.Errorf("invalid path: must not contain '..': %s", path)
	case strings.HasPrefix(path, ".."):
		return fmt.Errorf("invalid path: must not start with '..': %s", path)
	}
	for name := range strings.SplitSeq(path, "/") {
		if len(name) > 255 {
			return fmt.Errorf("invalid path: filenames must be less than or equal to %d characters", 255)
		}
	}
	return nil
}

// sameContent reports whether dir has exactly the payload's files with its data.
// Modes and owners of a running pod's volume do not change.
func sameContent(dir string, payload Payload) (bool, error) {
	seen := 0
	same := true
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return nil
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		want, ok := payload[rel]
		if !ok {
			same = false
			return fs.SkipAll
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if !bytes.Equal(data, want.Data) {
			same = false
			return fs.SkipAll
		}
		seen++
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return same && seen == len(payload), err
}

func fill(dir string, payload Payload, finish func(string) error) error {
	if err := os.Chmod(dir, 0o755); err != nil { // MkdirTemp gives 0700
		return err
	}
	for path, f := range payload {
		full := filepath.Join(dir, path)
		if parent := filepath.Dir(path); parent != "." {
			if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
				return err
			}
		}
		if err := os.WriteFile(full, f.Data, f.Mode.Perm()); err != nil {
			return err
		}
		if f.Owner != nil {
			if err := os.Chown(full, int(*f.Owner), -1); err != nil {
				return err
			}
		}
		if err := os.Chmod(full, f.Mode.Perm()); err != nil { // the umask
			return err
		}
	}
	if finish != nil {
		return finish(dir)
	}
	return nil
}

// visible lists the first components of the payload's paths: the names in dir.
func visible(payload Payload) map[string]struct{} {
	names := make(map[string]struct{}, len(payload))
	for path := range payload {
		name, _, _ := strings.Cut(path, "/")
		names[name] = struct{}{}
	}
	return names
}

func linkVisible(dir string, payload Payload) error {
	for _, name := range slices.Sorted(maps.Keys(visible(payload))) {
		target := filepath.Join(dataLink, name)
		err := os.Symlink(target, filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

func unlinkStale(dir string, payload Payload) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	names := visible(payload)
	for _, e := range entries {
		if _, wanted := names[e.Name()]; wanted || strings.HasPrefix(e.Name(), "..") || e.Type()&fs.ModeSymlink == 0 {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// removeOld removes the former content, also what a crash left behind.
func removeOld(dir, current string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), "..2") && e.Name() != current {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
