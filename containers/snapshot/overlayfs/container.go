package overlayfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/periplus/periplus/containers/snapshot"
	"github.com/periplus/periplus/linux/fsat"
	"github.com/periplus/periplus/linux/mount"
	"github.com/periplus/periplus/linux/overlay"
)

const (
	parentLink = "parent" // links to the name of the top layer's directory
	noParent   = "none"   // or to this
)

// Prepare makes the upper and work directory of a container: a few system
// calls and no data, since every container start waits for it.
func (s *Snapshotter) Prepare(_ context.Context, id, chainID string, o snapshot.PrepareOptions) error {
	if err := checkID(id); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	top := s.layers[chainID]
	if chainID != "" && top == nil {
		return fmt.Errorf("container %s: layer %s: %w", id, chainID, snapshot.ErrNotFound)
	}
	if have := s.active[id]; have != nil {
		if have.lost && top != nil && have.want == filepath.Base(top.dir) { // the layer has been unpacked again
			have.top, have.lost = top, false
			top.needs++
		}
		if !have.lost && have.top == top && have.readOnly == o.ReadOnly {
			return nil
		}
		return fmt.Errorf("container %s: %w with other layers", id, snapshot.ErrExists)
	}
	tmp, err := s.temp()
	if err != nil {
		return err
	}
	if err = s.fillActive(tmp, top, o); err == nil {
		err = os.Rename(tmp, filepath.Join(s.root, "active", id))
	}
	if err != nil {
		s.discard(tmp)
		return fmt.Errorf("container %s: %w", id, err)
	}
	if top != nil {
		top.needs++
	}
	c := &container{top: top, readOnly: o.ReadOnly}
	if o.Users != nil {
		c.users = o.Users.Namespace // not kept over a restart: a container is mounted once
	}
	s.active[id] = c
	return nil
}

// fillActive makes what belongs into a container's directory.
func (s *Snapshotter) fillActive(dir string, top *layer, o snapshot.PrepareOptions) error {
	target := noParent
	if top != nil {
		target = filepath.Base(top.dir)
	}
	// A link is as durable as its name; a file's content would have to be synced.
	if err := os.Symlink(target, filepath.Join(dir, parentLink)); err != nil {
		return err
	}
	if o.ReadOnly {
		return nil
	}
	fs, err := makeRoot(dir)
	if err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(dir, "work"), 0o711); err != nil {
		return err
	}
	if top != nil {
		// The root directory of an overlay is the upper one.
		if err := fsat.CopyAttributes(filepath.Join(top.dir, "fs"), fs, snapshot.OverlayAttr); err != nil {
			return err
		}
	}
	if o.Users == nil {
		return nil
	}
	return shift(fs, o.Users)
}

// shift gives a directory to whom it belongs to in a user namespace.
func shift(dir string, u *snapshot.Users) error {
	fi, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	if err := os.Lchown(dir, int(u.UID+st.Uid), int(u.GID+st.Gid)); err != nil {
		return err
	}
	return os.Chmod(dir, fi.Mode()) // chown has taken set-id bits away
}

// Mount mounts a container's root file system.
func (s *Snapshotter) Mount(_ context.Context, id, target string) error {
	s.mu.Lock()
	c := s.active[id]
	s.mu.Unlock()
	if c == nil {
		return fmt.Errorf("container %s: %w", id, snapshot.ErrNotFound)
	}
	if c.lost {
		return fmt.Errorf("container %s: its layers did not survive a power loss: %w", id, snapshot.ErrNotFound)
	}
	o := overlay.Options{Lower: c.top.lower(), Extra: s.extra}
	dir := filepath.Join(s.root, "active", id)
	if c.users != "" && c.top != nil {
		// The overlay keeps what it is made of: the mount is needed for this moment only.
		mapped := filepath.Join(dir, "lower")
		if err := os.MkdirAll(mapped, 0o700); err != nil {
			return err
		}
		if err := mount.Mapped(filepath.Join(s.root, "layers"), mapped, c.users); err != nil {
			return fmt.Errorf("container %s: %w", id, err)
		}
		defer func() { _ = overlay.Unmount(mapped) }()
		for i, l := range o.Lower {
			o.Lower[i] = filepath.Join(mapped, filepath.Base(filepath.Dir(l)), "fs")
		}
	}
	least := 2 // the kernel wants two layers to show them read-only
	if !c.readOnly {
		o.Upper, o.Work = filepath.Join(dir, "fs"), filepath.Join(dir, "work")
		least = 1
	}
	for len(o.Lower) < least { // an overlay must not have a directory twice
		o.Lower = append(o.Lower, filepath.Join(s.root, "empty", strconv.Itoa(len(o.Lower))))
	}
	return overlay.Mount(target, o)
}

// Unmount takes a mount away.
func (s *Snapshotter) Unmount(_ context.Context, target string) error { return overlay.Unmount(target) }

// Remove drops a container's files.
func (s *Snapshotter) Remove(_ context.Context, id string) error {
	if err := checkID(id); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.trashLocked(filepath.Join(s.root, "active", id)); err != nil {
		return fmt.Errorf("container %s: %w", id, err)
	}
	if c := s.active[id]; c != nil {
		delete(s.active, id)
		s.releaseLocked(c.top)
	}
	return nil
}

// Usage adds up what a container has written.
func (s *Snapshotter) Usage(_ context.Context, id string) (snapshot.Usage, error) {
	s.mu.Lock()
	c := s.active[id]
	s.mu.Unlock()
	if c == nil {
		return snapshot.Usage{}, fmt.Errorf("container %s: %w", id, snapshot.ErrNotFound)
	}
	if c.readOnly {
		return snapshot.Usage{}, nil
	}
	return usage(filepath.Join(s.root, "active", id, "fs"))
}

// Prepared lists the containers, in order.
func (s *Snapshotter) Prepared() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := make([]string, 0, len(s.active))
	for id := range s.active {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func checkID(id string) error {
	if id == "" || id == "." || id == ".." || id != filepath.Base(id) {
		return errors.New("container ID " + fmt.Sprintf("%q", id) + " must be one path component")
	}
	return nil
}
