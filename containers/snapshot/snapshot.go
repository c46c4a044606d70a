package snapshot

import (
	"context"
	"errors"
	"io"
)

var (
	// ErrNotFound is returned when no layer or container of that name exists.
	ErrNotFound = errors.New("not found")
	// ErrExists is returned by Prepare when the container has been prepared with other layers.
	ErrExists = errors.New("already exists")
	// ErrUnsupported is returned when the state directory or the kernel cannot do what the snapshotter needs.
	ErrUnsupported = errors.New("not supported")
)

// A Snapshotter stores layers and makes root file systems of them. All methods
// may be called at the same time. Chain IDs have the form "sha256:<hex>"; the
// empty chain ID stands for no layers at all.
type Snapshotter interface {
	// Root is the directory that everything is stored below.
	Root() string

	// Stage unpacks one layer's uncompressed tar stream into a directory that
	// nobody sees yet and returns its name. The parent need not be there, so
	// the layers of an image can be staged side by side.
	Stage(ctx context.Context, diff io.Reader) (staged string, err error)
	// Discard drops what Stage made.
	Discard(staged string)
	// Commit makes a staged layer the layer chainID on top of parent, which must
	// be pinned or otherwise held, and pins it. If that layer is already there the
	// staged one is dropped. A layer that cannot be unpacked without its parent
	// (files below a link that only the parent has) is read again through reopen.
	Commit(ctx context.Context, staged, chainID, parent string, reopen func() (io.ReadCloser, error)) error
	// Build makes the layer chainID, without a parent, by calling fill with an
	// empty directory, and pins it. If the layer exists it is only pinned.
	Build(ctx context.Context, chainID string, fill func(dir string) error) error

	// Acquire pins a layer and reports whether it is there.
	Acquire(chainID string) bool
	// Release takes back one pin. The last one removes the layer, and those
	// below it, unless something else needs them.
	Release(chainID string)
	// Collect removes every layer that nothing needs. It is called once, after a
	// start, when all images have acquired their layers.
	Collect(ctx context.Context) error
	// LayersUsage is what all layers together occupy.
	LayersUsage() (bytes, inodes int64)

	// Prepare makes the writable top of container id on the layers that end
	// with chainID. Calling it again with the same chainID changes nothing.
	Prepare(ctx context.Context, id, chainID string, o PrepareOptions) error
	// Mount mounts the root file system of container id at target, a directory.
	// It is private to the mount namespace of the caller's process.
	Mount(ctx context.Context, id, target string) error
	// Unmount takes a mount made by Mount away. It is no error if there is none.
	Unmount(ctx context.Context, target string) error
	// Remove drops the container's files. The caller has unmounted them. It is
	// no error if there are none.
	Remove(ctx context.Context, id string) error
	// Usage is what the container itself has written.
	Usage(ctx context.Context, id string) (Usage, error)
	// Prepared lists the containers that Prepare made and Remove has not removed.
	Prepared() []string

	// Close waits for work in the background. Mounts stay.
	Close() error
}

// PrepareOptions say how a container uses its root file system.
type PrepareOptions struct {
	// ReadOnly makes Mount show the layers alone, without a writable top: for image volumes.
	ReadOnly bool
	// Users, if not nil, says whom the files belong to in a user namespace.
	Users *Users
}

// Users are those of a user namespace: what belongs to user 0 in a layer belongs to UID
// in the container's root file system, and so on.
type Users struct {
	Namespace string // the file that the namespace is bound to
	UID, GID  uint32 // its root, on the machine
}

// Usage is space on disk.
type Usage struct {
	Bytes  int64
	Inodes int64
}
