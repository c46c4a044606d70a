package image

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/containers/image/blob"
	"github.com/periplus/periplus/containers/image/registry"
)

var (
	// ErrNotFound is returned when no image of that name, digest or ID is in the store.
	ErrNotFound = errors.New("not found")
	// ErrPinned is returned when an image must not be removed.
	ErrPinned = errors.New("image is pinned")
	// ErrInvalidReference is returned when a name is not a valid image reference.
	ErrInvalidReference = errors.New("invalid reference format")
	// ErrLocked is returned by Open when another process has the store open.
	ErrLocked = errors.New("in use by another process")
)

// An Image is one image of the store. It is immutable.
type Image struct {
	ID          string   // digest of the configuration, "sha256:<hex>"
	RepoTags    []string // "docker.io/library/nginx:1.29", sorted
	RepoDigests []string // "docker.io/library/nginx@sha256:<hex>", sorted
	Manifest    string   // digest of the manifest
	ChainID     string   // the top layer; "" for an image without layers
	Size        int64    // bytes of all blobs
	Pinned      bool     // never removed by garbage collection
	Config      v1.Image // the OCI configuration without history: Config.Config.Entrypoint, .Cmd, .Env, .User …
}

// Store keeps images below one directory.
type Store struct {
	dir     string
	options Options
	layers  Layers
	blobs   *blob.Store
	client  *registry.Client
	lock    *os.File
	pulls   flights
	chains  keyedLock // one goroutine at a time makes a layer

	writing sync.Mutex // serialises changes of records, on disk and in memory

	mu     sync.Mutex        // guards what follows
	images map[string]*entry // by image ID
	names  map[string]string // tag and digest references → image ID
	refs   map[string]int    // blobs → images and running pulls that need them
}

// entry is an image with what only the store needs.
type entry struct {
	record record
	image  *Image
	held   bool // the top layer is acquired
}

// Open opens or makes the store in dir, and removes what an interrupted run left half written.
func Open(dir string, o Options) (_ *Store, err error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, "records"), 0o700); err != nil {
		return nil, err
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			lock.Close()
		}
	}()
	blobs, err := blob.Open(filepath.Join(dir, "blobs"))
	if err != nil {
		return nil, err
	}
	auths := map[string]authn.AuthConfig{}
	for host, a := range o.Auths {
		auths[host] = *a.config()
	}
	s := &Store{
		dir: dir, options: o, layers: o.Layers, blobs: blobs, lock: lock,
		client: registry.New(registry.Config{
			Mirrors: o.Mirrors, PlainHTTP: o.PlainHTTP, InsecureTLS: o.InsecureTLS, Auths: auths, Transport: o.Transport,
		}),
		images: map[string]*entry{}, names: map[string]string{}, refs: map[string]int{},
	}
	if err := s.load(); err != nil {
		return nil, fmt.Errorf("open image store %s: %w", dir, err)
	}
	return s, nil
}

// lockDir makes sure that one process at a time works in dir.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrLocked
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("image store %s: %w", dir, err)
	}
	return f, nil
}

// load reads the records and drops blobs and layers that none of them needs.
func (s *Store) load() error {
	records, err := readRecords(filepath.Join(s.dir, "records"), s.options.Log)
	if err != nil {
		return err
	}
	slices.SortFunc(records, func(a, b record) int { return a.Updated.Compare(b.Updated) }) // the newest has the name
	for _, r := range records {
		e := &entry{record: r, image: r.image()}
		e.held = r.chainID() == "" || s.layers.Acquire(r.chainID())
		s.putLocked(e)
	}
	have, err := s.blobs.List()
	if err != nil {
		return err
	}
	for _, d := range have {
		if s.refs[d] == 0 {
			if err := s.blobs.Delete(d); err != nil {
				return err
			}
		}
	}
	return s.layers.Collect(context.Background())
}

// Close ends the store. Images stay.
func (s *Store) Close() error {
	s.client.Close()
	return s.lock.Close()
}

// Get finds an image by name, name@digest, ID, or a unique prefix of an ID of at least 4 digits.
func (s *Store) Get(ref string) (*Image, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, err := s.findLocked(ref)
	if err != nil {
		return nil, err
	}
	return e.image, nil
}

// findLocked looks for names first, as they could be hexadecimal too.
func (s *Store) findLocked(ref string) (*entry, error) {
	parsed, err := ParseReference(ref)
	if err == nil {
		if e := s.images[s.names[parsed.String()]]; e != nil {
			return e, nil
		}
	}
	digits, isID := strings.CutPrefix(ref, "sha256:")
	if e := s.images["sha256:"+digits]; e != nil {
		return e, nil
	}
	if len(digits) >= 4 && len(digits) <= 64 && isHex(digits) {
		var found *entry
		for id, e := range s.images {
			if !strings.HasPrefix(id[len("sha256:"):], digits) {
				continue
			}
			if found != nil {
				return nil, fmt.Errorf("image ID %q is ambiguous", ref)
			}
			found = e
		}
		if found != nil {
			return found, nil
		}
		isID = true
	}
	if err != nil && !isID {
		return nil, fmt.Errorf("image %q: %w", ref, err)
	}
	return nil, fmt.Errorf("image %q: %w", ref, ErrNotFound)
}

// List lists the images, ordered by ID.
func (s *Store) List() []*Image {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*Image, 0, len(s.images))
	for _, e := range s.images {
		out = append(out, e.image)
	}
	slices.SortFunc(out, func(a, b *Image) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// Usage is the number and size of all blobs that images need.
func (s *Store) Usage() (bytes, files int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := map[string]bool{}
	for _, e := range s.images {
		for digest, size := range e.record.blobs() {
			if !seen[digest] {
				seen[digest] = true
				bytes += size
				files++
			}
		}
	}
	return bytes, files
}

// Remove removes a name; with the last name, or given an ID, the image with
// everything that no other image and no container uses.
func (s *Store) Remove(_ context.Context, ref string) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	e, err := s.findLocked(ref)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	if e.record.Pinned {
		return fmt.Errorf("image %q: %w", ref, ErrPinned)
	}
	if parsed, err := ParseReference(ref); err == nil && slices.Contains(e.record.Tags, parsed.String()) && len(e.record.Tags) > 1 {
		r := e.record
		r.removeTag(parsed)
		return s.replace(e, r, e.held)
	}
	return s.drop(e)
}

// drop removes an image, the record first. s.writing is held.
func (s *Store) drop(e *entry) error {
	if err := removeRecord(filepath.Join(s.dir, "records"), e.record.ID); err != nil {
		return err
	}
	s.mu.Lock()
	garbage := s.takeLocked(e)
	s.mu.Unlock()
	if e.held && e.record.chainID() != "" {
		s.layers.Release(e.record.chainID())
	}
	s.deleteBlobs(garbage)
	return nil
}

// replace writes an image's record in the place of old, nil for a new image.
// held says whether the image has its top layer pinned. s.writing is held.
func (s *Store) replace(old *entry, r record, held bool) error {
	if err := writeRecord(filepath.Join(s.dir, "records"), r); err != nil {
		return err
	}
	s.mu.Lock()
	var garbage []string
	if old != nil {
		garbage = s.takeLocked(old)
	}
	s.putLocked(&entry{record: r, image: r.image(), held: held})
	s.mu.Unlock()
	s.deleteBlobs(garbage)
	return nil
}

// putLocked enters an image into the maps.
func (s *Store) putLocked(e *entry) {
	s.images[e.record.ID] = e
	for _, n := range append(slices.Clone(e.record.Tags), e.record.Digests...) {
		s.names[n] = e.record.ID
	}
	for d := range e.record.blobs() {
		s.refs[d]++
	}
}

// takeLocked takes an image out of the maps and returns the blobs that nothing needs now.
func (s *Store) takeLocked(e *entry) (garbage []string) {
	delete(s.images, e.record.ID)
	for _, n := range append(slices.Clone(e.record.Tags), e.record.Digests...) {
		if s.names[n] == e.record.ID {
			delete(s.names, n)
		}
	}
	for d := range e.record.blobs() {
		if s.unrefLocked(d) {
			garbage = append(garbage, d)
		}
	}
	return garbage
}

// unrefLocked reports that a blob is not needed any more.
func (s *Store) unrefLocked(digest string) bool {
	if s.refs[digest]--; s.refs[digest] > 0 {
		return false
	}
	delete(s.refs, digest)
	return true
}

// hold keeps blobs from being removed until release is called; those that no image needs by then go.
func (s *Store) hold(digests ...string) (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range digests {
		s.refs[d]++
	}
	return func() {
		s.mu.Lock()
		var garbage []string
		for _, d := range digests {
			if s.unrefLocked(d) {
				garbage = append(garbage, d)
			}
		}
		s.mu.Unlock()
		s.deleteBlobs(garbage)
	}
}

// deleteBlobs deletes blobs unless somebody has come to need them meanwhile.
func (s *Store) deleteBlobs(digests []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range digests {
		if s.refs[d] > 0 {
			continue
		}
		if err := s.blobs.Delete(d); err != nil {
			s.options.Log.Warn("Deleting a blob failed", "digest", d, base.KeyError, err)
		}
	}
}
