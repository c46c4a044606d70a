package image

import (
	"context"
	"errors"
	"io"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

var (
	// ErrNotFound is returned when no image of that name, digest or ID is in the store.
	ErrNotFound = errors.New("not found")
	// ErrPinned is returned when an image must not be removed.
	ErrPinned = errors.New("image is pinned")
	// ErrInvalidReference is returned when a name is not a valid image reference.
	ErrInvalidReference = errors.New("invalid reference format")
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
	Config      v1.Image // the OCI configuration: Config.Config.Entrypoint, .Cmd, .Env, .User …
}

// Store keeps images below one directory.
type Store struct{}

// Open opens or makes the store in dir, and removes what an interrupted run left half written.
func Open(dir string, o Options) (*Store, error) { return nil, errors.New("TODO") }

// Close ends the store. Images stay.
func (s *Store) Close() error { return nil }

// Pull fetches ref ("nginx", "quay.io/a/b:tag", "host:5000/a@sha256:…"), whatever the store has,
// and returns the image with its layers unpacked. Pulls of the same thing at the same time are one.
func (s *Store) Pull(ctx context.Context, ref string, o PullOptions) (*Image, error) { return nil, nil }

// Get finds an image by name, name@digest, ID, or a unique prefix of an ID of at least 4 digits. ErrNotFound.
func (s *Store) Get(ref string) (*Image, error) { return nil, nil }

// Unpack makes sure that the image's layers are there (a power loss may have cost them)
// and acquires the top one for the caller, who calls release once a container is prepared on it.
func (s *Store) Unpack(ctx context.Context, img *Image) (chainID string, release func(), err error) {
	return "", nil, nil
}

// List lists the images, ordered by ID.
func (s *Store) List() []*Image { return nil }

// Remove removes a name; with the last name, or given an ID, the image. ErrNotFound, ErrPinned.
func (s *Store) Remove(ctx context.Context, ref string) error { return nil }

// ImportOptions are the wishes of one import.
type ImportOptions struct {
	// Name is given to an image that the archive has no name for.
	Name string
}

// Import reads an archive as written by docker save or Export, or an OCI layout, as tar,
// tar+gzip or tar+zstd, and returns its images.
func (s *Store) Import(ctx context.Context, r io.Reader, o ImportOptions) ([]*Image, error) {
	return nil, nil
}

// Export writes the images as a tar archive that is an OCI layout and can be read by docker load as well.
func (s *Store) Export(ctx context.Context, w io.Writer, refs ...string) error { return nil }

// EnsureSelf makes sure that the image periplus.io/peri:<version>, made of the binary exe, is there and
// that no older one is, and returns it.
func (s *Store) EnsureSelf(ctx context.Context, exe, version string) (*Image, error) { return nil, nil }
