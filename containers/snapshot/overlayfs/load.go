package overlayfs

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/containers/snapshot"
	"github.com/periplus/periplus/linux/overlay"
)

const (
	recordFile = "layer.json"
	syncedFile = "synced"
	mergedDir  = "merged"
)

// record is layer.json.
type record struct {
	ChainID string `json:"chainID"`
	Parent  string `json:"parent,omitempty"`
	Bytes   int64  `json:"bytes"`
	Inodes  int64  `json:"inodes"`
	Boot    string `json:"boot"` // the machine's boot in which it was unpacked
}

// load reads what is there and throws away what is not whole.
func (s *Snapshotter) load() error {
	left, err := os.ReadDir(filepath.Join(s.root, "tmp"))
	if err != nil {
		return err
	}
	for _, e := range left {
		dir := filepath.Join(s.root, "tmp", e.Name())
		if err := overlay.Unmount(filepath.Join(dir, mergedDir)); err != nil {
			return err
		}
		s.discard(dir)
	}
	byDir, err := s.loadLayers()
	if err != nil {
		return err
	}
	return s.loadActive(byDir)
}

// loadLayers returns the layers that can be trusted, by the names of their directories.
func (s *Snapshotter) loadLayers() (map[string]*layer, error) {
	entries, err := os.ReadDir(filepath.Join(s.root, "layers"))
	if err != nil {
		return nil, err
	}
	records := map[string]record{} // by chain ID
	for _, e := range entries {
		dir := filepath.Join(s.root, "layers", e.Name())
		var r record
		err := readJSON(filepath.Join(dir, recordFile), &r)
		name, nameErr := layerName(r.ChainID)
		if err != nil || nameErr != nil || name != e.Name() || !s.durable(dir, r) {
			s.log.Info("Dropping an incomplete layer", base.KeyPath, dir)
			if err := s.trashLocked(dir); err != nil {
				return nil, err
			}
			continue
		}
		records[r.ChainID] = r
	}
	byDir := map[string]*layer{}
	for id := range records {
		if l := s.loadLayer(id, records); l != nil {
			byDir[filepath.Base(l.dir)] = l
		}
	}
	return byDir, nil
}

// durable reports that a layer's files are on the disk, or still in memory since they were written.
func (s *Snapshotter) durable(dir string, r record) bool {
	if r.Boot == s.boot {
		return true
	}
	_, err := os.Lstat(filepath.Join(dir, syncedFile))
	return err == nil
}

// loadLayer makes the layer id and those below it. It is nil, and gone, if one of them is missing.
func (s *Snapshotter) loadLayer(id string, records map[string]record) *layer {
	if l := s.layers[id]; l != nil {
		return l
	}
	r, ok := records[id]
	if !ok {
		return nil
	}
	delete(records, id) // each is visited once, whatever the files say
	name, _ := layerName(id)
	l := &layer{
		chainID: id, dir: filepath.Join(s.root, "layers", name),
		usage: snapshot.Usage{Bytes: r.Bytes, Inodes: r.Inodes},
	}
	if r.Parent != "" {
		if l.parent = s.loadLayer(r.Parent, records); l.parent == nil {
			s.log.Info("Dropping a layer without its parent", "layer", id)
			if err := s.trashLocked(l.dir); err != nil {
				s.log.Warn("Removing a layer failed", "layer", id, base.KeyError, err)
			}
			return nil
		}
		l.parent.needs++
	}
	s.layers[id] = l
	if _, err := os.Lstat(filepath.Join(l.dir, syncedFile)); err != nil {
		s.dirty[l] = struct{}{}
	}
	return l
}

// loadActive reads the containers. One whose layers are lost cannot be mounted
// again; it stays listed, so that its owner removes it.
func (s *Snapshotter) loadActive(byDir map[string]*layer) error {
	entries, err := os.ReadDir(filepath.Join(s.root, "active"))
	if err != nil {
		return err
	}
	for _, e := range entries {
		dir := filepath.Join(s.root, "active", e.Name())
		target, err := os.Readlink(filepath.Join(dir, parentLink))
		if err != nil {
			if err := s.trashLocked(dir); err != nil {
				return err
			}
			continue
		}
		_, noUpper := os.Lstat(filepath.Join(dir, "fs"))
		c := &container{top: byDir[target], readOnly: noUpper != nil}
		if c.top == nil && target != noParent {
			c.lost, c.want = true, target
		}
		if c.top != nil {
			c.top.needs++
		}
		s.active[e.Name()] = c
	}
	return nil
}

func readJSON(path string, v any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}

func writeJSON(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}

// usage adds up the files below dir, each once.
func usage(dir string) (snapshot.Usage, error) {
	var u snapshot.Usage
	seen := map[uint64]bool{}
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			if os.IsNotExist(err) { // the container is running
				return nil
			}
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return nil
		}
		st, ok := fi.Sys().(*syscall.Stat_t)
		if !ok || st.Nlink > 1 && !fi.IsDir() && seen[st.Ino] {
			return nil
		}
		if st.Nlink > 1 && !fi.IsDir() {
			seen[st.Ino] = true
		}
		u.Bytes += st.Blocks * 512
		u.Inodes++
		return nil
	})
	return u, err
}

// whiteout reports the character device 0/0.
func whiteout(fi fs.FileInfo) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && fi.Mode()&fs.ModeCharDevice != 0 && st.Rdev == 0
}
