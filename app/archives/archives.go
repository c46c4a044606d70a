package archives

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/periplus/periplus/app/dropin"
	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/base/pki"
	"github.com/periplus/periplus/containers/image"
)

// endings are those of archives; other files in the directory are not looked at.
var endings = []string{".tar", ".tar.gz", ".tgz", ".tar.zst", ".tzst", ".tar.zstd"}

// Config is what an Importer needs.
type Config struct {
	Dir string
	// Record is the file that says what has been imported.
	Record string
	Images *image.Store
	Log    *slog.Logger
}

// imported is an archive that was taken in.
type imported struct {
	Size   int64     `json:"size"`
	Time   time.Time `json:"time"`
	Images []string  `json:"images"`
}

// An Importer imports what is in the directory.
type Importer struct {
	config Config
	dir    dropin.Directory
	done   map[string]imported
	// refused are archives that cannot be imported, as they were: they are tried again
	// when they change.
	refused map[string]imported
}

// New makes an Importer. A record that cannot be read is begun anew.
func New(c Config) *Importer {
	i := &Importer{config: c, done: map[string]imported{}, refused: map[string]imported{}}
	i.dir = dropin.Directory{Path: c.Dir, Sync: i.sync}
	data, err := os.ReadFile(c.Record)
	if err == nil {
		err = json.Unmarshal(data, &i.done)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.Log.Warn("cannot read which image archives were imported: all are imported again", base.KeyPath, c.Record, base.KeyError, err)
	}
	return i
}

// Import imports what is there now.
func (i *Importer) Import(ctx context.Context) { i.dir.Now(ctx) }

// Run imports what is dropped in, until ctx ends.
func (i *Importer) Run(ctx context.Context) error { return i.dir.Follow(ctx) }

func (i *Importer) sync(ctx context.Context, files []dropin.File) time.Duration {
	before := len(i.done)
	present, changed := map[string]bool{}, false
	for _, f := range files {
		if !slices.ContainsFunc(endings, func(e string) bool { return strings.HasSuffix(f.Name, e) }) {
			continue
		}
		present[f.Name] = true
		is := imported{Size: f.Info.Size(), Time: f.Info.ModTime().UTC()}
		if i.have(f.Name, is) || same(i.refused[f.Name], is) {
			continue
		}
		start := time.Now()
		ids, names, err := i.take(ctx, f.Path)
		if err != nil {
			if ctx.Err() != nil {
				break
			}
			i.refused[f.Name] = is
			i.config.Log.Error("cannot import an image archive", base.KeyPath, f.Path, base.KeyError, err)
			continue
		}
		delete(i.refused, f.Name)
		is.Images = ids
		i.done[f.Name], changed = is, true
		i.config.Log.Info("image archive imported", base.KeyPath, f.Path, base.KeyImage, strings.Join(names, " "), base.KeyDuration, time.Since(start))
	}
	for name := range i.done {
		if !present[name] {
			delete(i.done, name) // its images stay
		}
	}
	if changed || len(i.done) != before {
		i.save()
	}
	return 0
}

func same(a, b imported) bool { return a.Size == b.Size && a.Time.Equal(b.Time) }

// have reports that an archive was imported and its images are still there.
func (i *Importer) have(name string, is imported) bool {
	was, ok := i.done[name]
	if !ok || !same(was, is) {
		return false
	}
	for _, id := range was.Images {
		if _, err := i.config.Images.Get(id); err != nil {
			return false
		}
	}
	return true
}

func (i *Importer) take(ctx context.Context, path string) (ids, names []string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	got, err := i.config.Images.Import(ctx, f, image.ImportOptions{})
	if err != nil {
		return nil, nil, err
	}
	for _, img := range got {
		ids = append(ids, img.ID)
		names = append(names, img.RepoTags...)
	}
	return ids, names, nil
}

func (i *Importer) save() {
	data, err := json.Marshal(i.done)
	if err == nil {
		err = pki.WriteFile(i.config.Record, data, 0o600)
	}
	if err != nil {
		i.config.Log.Warn("cannot note which image archives were imported", base.KeyError, fmt.Errorf("%s: %w", i.config.Record, err))
	}
}
