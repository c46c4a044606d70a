package local

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/periplus/periplus/linux/disk"
)

const (
	volumesDir   = "volumes"
	snapshotsDir = "snapshots"
	recordName   = "volume.json"
	imageName    = "data.img"
	treeName     = "data"
	unfinished   = ".new-"
	leaving      = ".gone-"
)

// Backings of a volume.
const (
	backingImage     = "image"
	backingDirectory = "directory"
)

// A record is what is known of a volume or a snapshot.
type record struct {
	Name    string    `json:"name"`
	Size    int64     `json:"size"` // bytes
	Backing string    `json:"backing"`
	FSType  string    `json:"fsType,omitempty"`
	Source  string    `json:"source,omitempty"` // of a copy: "snapshot/<id>" or "volume/<id>"
	Made    time.Time `json:"made"`
	// Formatted says that the file system is complete.
	Formatted bool `json:"formatted,omitempty"`

	id string
}

// store keeps records on the disk: a directory each, complete as soon as it has
// its final name.
type store struct{ dir string }

var plainID = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,126}[a-z0-9])?$`)

// idOf makes an identifier of a name: the name itself where it can be one.
func idOf(name string) string {
	if plainID.MatchString(name) {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return "v-" + hex.EncodeToString(sum[:16])
}

func (s store) path(kind, id string, names ...string) string {
	return filepath.Join(append([]string{s.dir, kind, id}, names...)...)
}

// open makes the directories and removes what was left half done.
func (s store) open() error {
	for _, kind := range []string{volumesDir, snapshotsDir} {
		if err := os.MkdirAll(s.path(kind, ""), 0o700); err != nil {
			return err
		}
		entries, err := os.ReadDir(s.path(kind, ""))
		if err != nil {
			return err
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), unfinished) || strings.HasPrefix(e.Name(), leaving) {
				if err := os.RemoveAll(s.path(kind, e.Name())); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// get returns nil if there is no such record.
func (s store) get(kind, id string) (*record, error) {
	if !plainID.MatchString(id) {
		return nil, nil
	}
	data, err := os.ReadFile(s.path(kind, id, recordName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r := &record{id: id}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("%s: %w", s.path(kind, id, recordName), err)
	}
	return r, nil
}

// list returns all records in the order of their identifiers.
func (s store) list(kind string) ([]*record, error) {
	entries, err := os.ReadDir(s.path(kind, ""))
	if err != nil {
		return nil, err
	}
	var out []*record
	for _, e := range entries {
		r, err := s.get(kind, e.Name())
		if err != nil {
			return nil, err
		}
		if r != nil {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b *record) int { return strings.Compare(a.id, b.id) })
	return out, nil
}

// create makes a record whose content fill has put into dir. A crash before the
// end leaves nothing that counts.
func (s store) create(kind string, r *record, fill func(dir string) error) (err error) {
	dir := s.path(kind, unfinished+r.id)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	if err := fill(dir); err != nil {
		return err
	}
	if err := writeRecord(dir, r); err != nil {
		return err
	}
	if err := disk.SyncDir(dir); err != nil {
		return err
	}
	if err := os.Rename(dir, s.path(kind, r.id)); err != nil {
		return err
	}
	return disk.SyncDir(s.path(kind, ""))
}

// update replaces a record in one step.
func (s store) update(kind string, r *record) error {
	dir := s.path(kind, r.id)
	if err := writeRecord(dir, r); err != nil {
		return err
	}
	return disk.SyncDir(dir)
}

func writeRecord(dir string, r *record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	tmp := filepath.Join(dir, recordName+".tmp")
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	return os.Rename(tmp, filepath.Join(dir, recordName))
}

// remove takes a record away at once and its content after that.
func (s store) remove(kind, id string) error {
	gone := s.path(kind, leaving+id)
	if err := os.RemoveAll(gone); err != nil {
		return err
	}
	err := os.Rename(s.path(kind, id), gone)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := disk.SyncDir(s.path(kind, "")); err != nil {
		return err
	}
	return os.RemoveAll(gone)
}

// promised is how much of the disk volumes may still fill beyond what they take now.
func (s store) promised() (int64, error) {
	list, err := s.list(volumesDir)
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, r := range list {
		if r.Backing != backingImage {
			continue
		}
		taken, err := disk.Occupied(s.path(volumesDir, r.id, imageName))
		if err != nil {
			return 0, err
		}
		sum += max(0, r.Size-taken)
	}
	return sum, nil
}
