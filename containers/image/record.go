package image

import (
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/containers/image/blob"
	"github.com/periplus/periplus/linux/fsat"
)

// record is what is written down about an image. It is replaced, never changed.
type record struct {
	ID       string          `json:"id"`
	Manifest v1.Descriptor   `json:"manifest"`
	Config   v1.Descriptor   `json:"config"`
	Layers   []v1.Descriptor `json:"layers"`
	Spec     v1.Image        `json:"spec"` // without history
	Tags     []string        `json:"tags,omitempty"`
	Digests  []string        `json:"digests,omitempty"`
	Pinned   bool            `json:"pinned,omitempty"`
	Self     string          `json:"self,omitempty"` // of the image of the binary: which build
	Updated  time.Time       `json:"updated"`
}

// chainID is the top layer's.
func (r *record) chainID() string {
	ids := chainIDs(r.Spec.RootFS.DiffIDs)
	if len(ids) == 0 {
		return ""
	}
	return ids[len(ids)-1]
}

// blobs lists what the image needs from the content store, with sizes.
func (r *record) blobs() iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		if r.Self != "" {
			return // made of the binary, not of blobs
		}
		seen := map[string]bool{}
		for _, d := range append([]v1.Descriptor{r.Manifest, r.Config}, r.Layers...) {
			if digest := string(d.Digest); !seen[digest] {
				seen[digest] = true
				if !yield(digest, d.Size) {
					return
				}
			}
		}
	}
}

// image is what others see.
func (r *record) image() *Image {
	img := &Image{
		ID: r.ID, RepoTags: slices.Clone(r.Tags), RepoDigests: slices.Clone(r.Digests), Manifest: string(r.Manifest.Digest),
		ChainID: r.chainID(), Size: r.Manifest.Size + r.Config.Size, Pinned: r.Pinned, Config: r.Spec,
	}
	for _, l := range r.Layers {
		img.Size += l.Size
	}
	return img
}

// addNames returns the record with more names.
func (r record) addNames(tags, digests []string) record {
	r.Tags = union(r.Tags, tags)
	r.Digests = union(r.Digests, digests)
	return r
}

func union(a, b []string) []string {
	out := append(slices.Clone(a), b...)
	slices.Sort(out)
	return slices.Compact(out)
}

// covers reports that r says everything that o does.
func (r *record) covers(o record) bool {
	has := func(list []string) func(string) bool {
		return func(s string) bool { return !slices.Contains(list, s) }
	}
	return r.Manifest.Digest == o.Manifest.Digest && (r.Pinned || !o.Pinned) &&
		!slices.ContainsFunc(o.Tags, has(r.Tags)) && !slices.ContainsFunc(o.Digests, has(r.Digests))
}

// removeTag removes a tag, and the digests of its repository if that was the last one there.
func (r *record) removeTag(ref Reference) {
	r.Tags = slices.DeleteFunc(slices.Clone(r.Tags), func(t string) bool { return t == ref.String() })
	if !slices.ContainsFunc(r.Tags, func(t string) bool { return strings.HasPrefix(t, ref.Name()+":") }) {
		r.Digests = slices.DeleteFunc(slices.Clone(r.Digests), func(d string) bool { return strings.HasPrefix(d, ref.Name()+"@") })
	}
}

func recordPath(dir, id string) string {
	return filepath.Join(dir, strings.TrimPrefix(id, "sha256:")+".json")
}

// writeRecord replaces a record: it is on the disk when this returns.
func writeRecord(dir string, r record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "tmp-")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), recordPath(dir, r.ID))
	}
	if err != nil {
		os.Remove(f.Name())
		return err
	}
	return fsat.SyncDir(dir)
}

func removeRecord(dir, id string) error {
	if err := os.Remove(recordPath(dir, id)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return fsat.SyncDir(dir)
}

// readRecords reads all records. One that cannot be read is set aside.
func readRecords(dir string, log *slog.Logger) ([]record, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []record
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if strings.HasPrefix(e.Name(), "tmp-") {
			if err := os.Remove(path); err != nil {
				return nil, err
			}
		}
		if !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var r record
		err = json.Unmarshal(data, &r)
		if err == nil {
			err = r.check(e.Name())
		}
		if err != nil {
			log.Warn("Setting an unreadable image record aside", base.KeyPath, path, base.KeyError, err)
			if err := os.Rename(path, path+".bad"); err != nil {
				return nil, err
			}
			continue
		}
		out = append(out, r)
	}
	return out, nil
}

// check makes sure that a record can be worked with.
func (r *record) check(file string) error {
	if err := blob.CheckDigest(r.ID); err != nil {
		return err
	}
	if filepath.Base(recordPath("", r.ID)) != file {
		return errors.New("the file has another image's name")
	}
	for d := range r.blobs() {
		if err := blob.CheckDigest(d); err != nil {
			return err
		}
	}
	if len(r.Spec.RootFS.DiffIDs) != len(r.Layers) {
		return errors.New("the number of layers is not that of the configuration")
	}
	return nil
}

// config is a's form in the registry library.
func (a *Auth) config() *authn.AuthConfig {
	if a == nil {
		return nil
	}
	return &authn.AuthConfig{
		Username: a.Username, Password: a.Password, IdentityToken: a.IdentityToken, RegistryToken: a.RegistryToken,
	}
}
