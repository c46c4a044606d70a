package overlayfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/periplus/periplus/containers/snapshot"
	"github.com/periplus/periplus/linux/fsat"
	"github.com/periplus/periplus/linux/overlay"
)

// staged is what Stage leaves beside the unpacked files for Commit.
type staged struct {
	Bytes       int64    `json:"bytes"`
	Inodes      int64    `json:"inodes"`
	Implicit    []string `json:"implicit,omitempty"`
	NeedsParent bool     `json:"needsParent,omitempty"`
}

const stagedFile = "staged.json"

// layerName is the directory of a chain ID: 128 bits of it, since the mount
// call has room for one page of paths only. layer.json has all of it.
func layerName(chainID string) (string, error) {
	hex, ok := strings.CutPrefix(chainID, "sha256:")
	if !ok || len(hex) != 64 || strings.Trim(hex, "0123456789abcdef") != "" {
		return "", fmt.Errorf("chain ID %q is not sha256:<64 hexadecimal digits>", chainID)
	}
	return hex[:32], nil
}

// Stage unpacks a layer into a directory below tmp.
func (s *Snapshotter) Stage(ctx context.Context, diff io.Reader) (string, error) {
	dir, err := s.temp()
	if err != nil {
		return "", err
	}
	if err := s.stage(ctx, dir, diff); err != nil {
		s.discard(dir)
		return "", err
	}
	return filepath.Base(dir), nil
}

func (s *Snapshotter) stage(ctx context.Context, dir string, diff io.Reader) error {
	fs, err := makeRoot(dir)
	if err != nil {
		return err
	}
	out, err := snapshot.Unpack(ctx, fs, diff, snapshot.Convert)
	if err != nil {
		return err
	}
	return writeJSON(filepath.Join(dir, stagedFile), staged{out.Bytes, out.Inodes, out.Implicit, out.NeedsParent})
}

// makeRoot makes the root directory of a layer in dir.
func makeRoot(dir string) (string, error) {
	fs := filepath.Join(dir, "fs")
	if err := os.Mkdir(fs, 0o755); err != nil {
		return "", err
	}
	return fs, os.Chmod(fs, 0o755) // in spite of the umask
}

// Discard drops what Stage made.
func (s *Snapshotter) Discard(name string) {
	if name != "" && name == filepath.Base(name) {
		s.discard(filepath.Join(s.root, "tmp", name))
	}
}

// Commit gives a staged layer its name.
func (s *Snapshotter) Commit(ctx context.Context, name, chainID, parentID string, reopen func() (io.ReadCloser, error)) error {
	dir := filepath.Join(s.root, "tmp", filepath.Base(name))
	if s.Acquire(chainID) {
		s.discard(dir)
		return nil
	}
	parent, err := s.holdParent(parentID)
	if err != nil {
		s.discard(dir)
		return err
	}
	var st staged
	if err = readJSON(filepath.Join(dir, stagedFile), &st); err == nil {
		if !st.NeedsParent {
			st.NeedsParent, err = adopt(filepath.Join(dir, "fs"), parent, st.Implicit)
		}
		if err == nil && st.NeedsParent {
			s.discard(dir)
			dir, st, err = s.apply(ctx, parent, reopen)
		}
	}
	if err == nil {
		err = s.publish(dir, chainID, parent, snapshot.Usage{Bytes: st.Bytes, Inodes: st.Inodes})
	}
	if err != nil {
		s.discard(dir)
		s.Release(parentID)
	}
	return err
}

// holdParent pins the parent of a layer to be; a nil layer has none.
func (s *Snapshotter) holdParent(id string) (*layer, error) {
	if id == "" {
		return nil, nil
	}
	if !s.Acquire(id) {
		return nil, fmt.Errorf("parent layer %s: %w", id, snapshot.ErrNotFound)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.layers[id], nil
}

// publish renames dir to the layer's place and pins the layer. The pin on the
// parent becomes the new layer's need of it.
func (s *Snapshotter) publish(dir, chainID string, parent *layer, u snapshot.Usage) error {
	name, err := layerName(chainID)
	if err != nil {
		return err
	}
	rec := record{ChainID: chainID, Bytes: u.Bytes, Inodes: u.Inodes, Boot: s.boot}
	l := &layer{chainID: chainID, dir: filepath.Join(s.root, "layers", name), parent: parent, usage: u, needs: 1}
	if parent != nil {
		rec.Parent = parent.chainID
	}
	if err := writeJSON(filepath.Join(dir, recordFile), rec); err != nil {
		return err
	}
	os.Remove(filepath.Join(dir, stagedFile))
	s.mu.Lock()
	defer s.mu.Unlock()
	if have := s.layers[chainID]; have != nil { // somebody else was faster
		have.needs++
		s.releaseLocked(parent)
		s.discard(dir)
		return nil
	}
	if err := os.Rename(dir, l.dir); err != nil {
		return err
	}
	s.layers[chainID] = l
	s.dirty[l] = struct{}{}
	s.syncLocked()
	return nil
}

// Build makes a layer without an archive.
func (s *Snapshotter) Build(_ context.Context, chainID string, fill func(dir string) error) error {
	if s.Acquire(chainID) {
		return nil
	}
	dir, err := s.temp()
	if err != nil {
		return err
	}
	fs, err := makeRoot(dir)
	if err == nil {
		err = fill(fs)
	}
	var u snapshot.Usage
	if err == nil {
		u, err = usage(fs)
	}
	if err == nil {
		err = s.publish(dir, chainID, nil, u)
	}
	if err != nil {
		s.discard(dir)
	}
	return err
}

// apply unpacks a layer on top of its mounted parent, as it makes no sense alone.
func (s *Snapshotter) apply(ctx context.Context, parent *layer, reopen func() (io.ReadCloser, error)) (dir string, st staged, err error) {
	if parent == nil {
		return "", st, errors.New("the layer links to a file that it does not contain, and has no parent")
	}
	if dir, err = s.temp(); err != nil {
		return "", st, err
	}
	fs, err := makeRoot(dir)
	if err != nil {
		return dir, st, err
	}
	work, merged := filepath.Join(dir, "work"), filepath.Join(dir, mergedDir)
	for _, d := range []string{work, merged} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return dir, st, err
		}
	}
	if err := fsat.CopyAttributes(filepath.Join(parent.dir, "fs"), fs, snapshot.OverlayAttr); err != nil {
		return dir, st, err
	}
	if err := overlay.Mount(merged, overlay.Options{Lower: parent.lower(), Upper: fs, Work: work, Extra: s.extra}); err != nil {
		return dir, st, err
	}
	err = unpackOnto(ctx, merged, reopen)
	if uerr := overlay.Unmount(merged); err == nil {
		err = uerr
	}
	if err != nil {
		return dir, st, err
	}
	for _, d := range []string{work, merged} {
		if err := os.RemoveAll(d); err != nil {
			return dir, st, err
		}
	}
	u, err := usage(fs)
	return dir, staged{Bytes: u.Bytes, Inodes: u.Inodes}, err
}

func unpackOnto(ctx context.Context, dir string, reopen func() (io.ReadCloser, error)) error {
	r, err := reopen()
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = snapshot.Unpack(ctx, dir, r, snapshot.Apply)
	return err
}

// Acquire pins a layer.
func (s *Snapshotter) Acquire(chainID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.layers[chainID]
	if l != nil {
		l.needs++
	}
	return l != nil
}

// Release takes back one pin.
func (s *Snapshotter) Release(chainID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.releaseLocked(s.layers[chainID])
}

// releaseLocked takes one need from l and removes what nothing needs any more.
func (s *Snapshotter) releaseLocked(l *layer) {
	for l != nil {
		if l.needs--; l.needs > 0 {
			return
		}
		if !s.dropLocked(l) {
			return
		}
		l = l.parent
	}
}

// dropLocked removes a layer.
func (s *Snapshotter) dropLocked(l *layer) bool {
	if err := s.trashLocked(l.dir); err != nil {
		s.log.Warn("Removing a layer failed", "layer", l.chainID, "err", err)
		return false
	}
	delete(s.layers, l.chainID)
	delete(s.dirty, l)
	return true
}

// Collect removes every layer that nothing needs.
func (s *Snapshotter) Collect(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.layers {
		if l.needs == 0 {
			l.needs = 1
			s.releaseLocked(l)
		}
	}
	return nil
}

// LayersUsage is what all layers occupy.
func (s *Snapshotter) LayersUsage() (bytes, inodes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.layers {
		bytes += l.usage.Bytes
		inodes += l.usage.Inodes
	}
	return bytes, inodes
}

// lower lists the directories of l and all below it, the topmost first.
func (l *layer) lower() []string {
	var out []string
	for ; l != nil; l = l.parent {
		out = append(out, filepath.Join(l.dir, "fs"))
	}
	return out
}
