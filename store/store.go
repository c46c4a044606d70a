package store

import (
	"context"
	"errors"
	"fmt"
)

var (
	// ErrNotFound is returned when a key does not exist.
	ErrNotFound = errors.New("key not found")
	// ErrExists is returned by Create when the key exists.
	ErrExists = errors.New("key exists already")
	// ErrCompacted is returned when a revision asked for is older than the store keeps.
	ErrCompacted = errors.New("revision has been compacted")
	// ErrTooLarge is returned by writes of values that are larger than the store takes.
	ErrTooLarge = errors.New("value is too large for the store")
	// ErrUnavailable is returned when the store cannot be reached or has lost its
	// quorum. Whether a write was done is then not known.
	ErrUnavailable = errors.New("the store does not answer")
)

// A ConflictError is returned by Update and Delete when the key's modification
// revision is not the expected one. Current is the entry as it is now; its Mod
// is 0 when the key is gone.
type ConflictError struct {
	Current Entry
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%s is at revision %d now", e.Current.Key, e.Current.Mod)
}

// An Entry is a key's value with the revisions of its creation and last change.
// The value must not be modified.
type Entry struct {
	Key    string
	Value  []byte
	Create int64
	Mod    int64
}

// An Event is one change. On a deletion Value is nil and Mod is the deletion's revision.
type Event struct {
	Entry
	Deleted bool
}

// Any is the Mod of an Op that does not mind what is there.
const Any = -1

// An Op is one write of a Commit.
type Op struct {
	Key string
	// Value is what is stored, nil to remove the key.
	Value []byte
	// Mod is the revision of the key's last change, 0 if it must not exist, or Any.
	Mod int64
}

// ListOptions restrict a List.
type ListOptions struct {
	// Start is the first key wanted, "" for the prefix's first.
	Start string
	// Limit is the most entries returned, 0 for all.
	Limit int64
	// Revision reads the past, 0 the present.
	Revision int64
}

// A ListResult is a range of entries in key order, read at Revision.
type ListResult struct {
	Entries  []Entry
	Revision int64
	// Remaining counts the entries after the last one returned.
	Remaining int64
}

// A Store keeps entries. Its methods may be called concurrently. Every
// successful write is durable when the method returns.
type Store interface {
	// Get returns the entry of key, or ErrNotFound. The read is linearizable.
	Get(ctx context.Context, key string) (Entry, error)
	// List returns the entries whose keys begin with prefix.
	List(ctx context.Context, prefix string, o ListOptions) (ListResult, error)
	// Create stores a new key, or fails with ErrExists.
	Create(ctx context.Context, key string, value []byte) (revision int64, err error)
	// Update replaces the value if the key's last change was at revision mod, else
	// it fails with a *ConflictError.
	Update(ctx context.Context, key string, value []byte, mod int64) (revision int64, err error)
	// Delete removes the key if its last change was at revision mod, else it fails
	// with a *ConflictError.
	Delete(ctx context.Context, key string, mod int64) (revision int64, err error)
	// Commit does all ops, each of another key, in one transaction with one revision, or
	// none of them: then it fails with a *ConflictError about the first op whose key is
	// not as its Mod says. An etcd that is not embedded takes 128 ops at most.
	Commit(ctx context.Context, ops ...Op) (revision int64, err error)
	// Watch calls handle with the changes below prefix that came after revision
	// after, in order; all changes of one revision come in one call. handle is also
	// called without events, with a revision up to which all is known: once as soon
	// as the watch is set up, and now and then.
	// Watch blocks until ctx ends (nil), the revision is too old (ErrCompacted) or
	// the connection breaks.
	Watch(ctx context.Context, prefix string, after int64, handle func(events []Event, revision int64)) error
	// Revision returns the store's current revision (linearizable).
	Revision(ctx context.Context) (int64, error)
	// Compact forgets history before revision.
	Compact(ctx context.Context, revision int64) error
	// Close ends the store. Calls under way fail.
	Close() error
}
