package overlayfs

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/containers/snapshot"
	"github.com/periplus/periplus/linux/fsat"
	"github.com/periplus/periplus/linux/overlay"
)

// Snapshotter is a snapshot.Snapshotter on overlayfs.
type Snapshotter struct {
	root  string
	boot  string   // the kernel's boot ID
	extra []string // mount options
	log   *slog.Logger

	mu      sync.Mutex            // guards what follows, and renames between tmp, layers and active
	layers  map[string]*layer     // by chain ID
	active  map[string]*container // by container ID
	dirty   map[*layer]struct{}   // not known to be on the disk
	syncing bool                  // a goroutine is at it
	closed  bool

	background sync.WaitGroup // deletions and syncs
}

var _ snapshot.Snapshotter = (*Snapshotter)(nil)

// layer is one unpacked layer. All but needs is immutable.
type layer struct {
	chainID string
	dir     string // layers/<name>
	parent  *layer
	usage   snapshot.Usage
	needs   int // pins, layers above and containers; guarded by Snapshotter.mu
}

// container is a prepared root file system.
type container struct {
	top      *layer // nil: no layers, or lost
	readOnly bool
	users    string // the user namespace that the layers' IDs are mapped for; ""
	lost     bool   // the layers are gone
	want     string // if so, the name of the top one's directory
}

// Open opens or makes the snapshotter's directory. It fails with
// snapshot.ErrUnsupported if root is on a file system that cannot hold an upper
// directory, or if the kernel has no overlayfs.
func Open(root string, log *slog.Logger) (*Snapshotter, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	for _, d := range []string{"layers", "active", "tmp", "empty/0", "empty/1"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			return nil, err
		}
	}
	// The layers hold set-id programs, which the users of the machine must not reach.
	if err := os.Chmod(root, 0o700); err != nil {
		return nil, err
	}
	on, err := overlay.IsOverlay(root)
	if err != nil {
		return nil, err
	}
	if on {
		return nil, fmt.Errorf("%w: %s is itself on overlayfs (a container's root file system?), "+
			"which cannot hold the writable layers of containers; put the state directory on a volume, a disk or a tmpfs", snapshot.ErrUnsupported, root)
	}
	if err := overlay.Supported(); err != nil {
		return nil, fmt.Errorf("%w: %w", snapshot.ErrUnsupported, err)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil, err
	}
	if log == nil {
		log = slog.Default()
	}
	s := &Snapshotter{
		root: root, boot: strings.TrimSpace(string(boot)), extra: overlay.DefaultExtra(), log: log,
		layers: map[string]*layer{}, active: map[string]*container{}, dirty: map[*layer]struct{}{},
	}
	if err := s.load(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.syncLocked()
	return s, nil
}

// Root is the directory that everything is stored below.
func (s *Snapshotter) Root() string { return s.root }

// Close waits for work in the background.
func (s *Snapshotter) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.background.Wait()
	return nil
}

// temp makes a new directory below tmp.
func (s *Snapshotter) temp() (string, error) {
	dir, err := os.MkdirTemp(filepath.Join(s.root, "tmp"), "")
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o711) // containers of other users go through it
}

// discard deletes a directory of tmp in the background.
func (s *Snapshotter) discard(dir string) {
	s.background.Go(func() {
		if err := os.RemoveAll(dir); err != nil {
			s.log.Warn("Deleting failed", base.KeyPath, dir, base.KeyError, err)
		}
	})
}

// trashLocked moves a directory away and deletes it in the background.
func (s *Snapshotter) trashLocked(dir string) error {
	tmp, err := s.temp()
	if err != nil {
		return err
	}
	err = os.Rename(dir, filepath.Join(tmp, "old"))
	s.discard(tmp)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// syncLocked starts writing new layers to the disk unless that is going on.
func (s *Snapshotter) syncLocked() {
	if s.syncing || s.closed || len(s.dirty) == 0 {
		return
	}
	s.syncing = true
	s.background.Go(s.sync)
}

// sync writes layers to the disk until there is no new one.
func (s *Snapshotter) sync() {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.syncing = false }()
	for len(s.dirty) > 0 {
		batch := s.dirty
		s.dirty = map[*layer]struct{}{}
		s.mu.Unlock()
		err := fsat.Syncfs(s.root)
		s.mu.Lock()
		for l := range batch {
			if err == nil && s.layers[l.chainID] == l {
				err = mark(filepath.Join(l.dir, syncedFile))
			}
		}
		if err != nil { // the layers are unpacked again if the machine dies
			s.log.Warn("Writing layers to the disk failed", base.KeyPath, s.root, base.KeyError, err)
			return
		}
	}
}

// mark makes an empty file.
func mark(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}
