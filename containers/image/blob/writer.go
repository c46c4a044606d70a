package blob

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// ErrAborted is what followers of a blob get that is not completed.
var ErrAborted = errors.New("blob was not completed")

// Writer takes the content of a new blob.
type Writer struct {
	store *Store
	file  *os.File
	hash  hash.Hash

	mu   sync.Mutex
	more sync.Cond // signals growth and the end; uses mu
	size int64     // bytes that followers may read
	done bool
	err  error // why there will be no more
}

// Create starts a blob. The caller ends it with Commit or Abort; Abort after Commit does nothing.
func (s *Store) Create() (*Writer, error) {
	f, err := os.CreateTemp(filepath.Join(s.dir, "ingest"), "")
	if err != nil {
		return nil, err
	}
	w := &Writer{store: s, file: f, hash: sha256.New()}
	w.more.L = &w.mu
	return w, nil
}

// Write appends to the blob.
func (w *Writer) Write(p []byte) (int, error) {
	n, err := w.file.Write(p)
	w.hash.Write(p[:n])
	w.mu.Lock()
	w.size += int64(n)
	w.mu.Unlock()
	w.more.Broadcast()
	return n, err
}

// Size is the number of bytes written.
func (w *Writer) Size() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.size
}

// Digest is the digest of what has been written so far. Not to be called beside Write.
func (w *Writer) Digest() string { return "sha256:" + hex.EncodeToString(w.hash.Sum(nil)) }

// Commit checks the content, flushes it to the disk and gives it its name. A
// negative size is not checked. Followers see the end of the content as soon as it is checked.
func (w *Writer) Commit(digest string, size int64) error {
	err := CheckDigest(digest)
	if err == nil && size >= 0 && size != w.Size() {
		err = fmt.Errorf("%s: %w: got %d bytes, want %d", digest, ErrCorrupt, w.Size(), size)
	}
	if got := w.Digest(); err == nil && got != digest {
		err = fmt.Errorf("%s: %w: got %s", digest, ErrCorrupt, got)
	}
	if err != nil {
		w.Abort(err)
		return err
	}
	w.finish(nil)
	err = w.file.Sync()
	if cerr := w.file.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(w.file.Name(), w.store.path(digest))
	}
	if err != nil {
		os.Remove(w.file.Name())
	}
	return err
}

// Abort drops the blob; followers get err, or ErrAborted if that is nil.
func (w *Writer) Abort(err error) {
	if err == nil {
		err = ErrAborted
	}
	if !w.finish(err) {
		return
	}
	w.file.Close()
	os.Remove(w.file.Name())
}

// finish says that nothing follows; it reports whether that was new.
func (w *Writer) finish(err error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done {
		return false
	}
	w.done, w.err = true, err
	w.more.Broadcast()
	return true
}

// Follow reads the blob from its beginning, waiting for what is not written yet.
// io.EOF comes only after the whole content has been checked.
func (w *Writer) Follow() (io.ReadCloser, error) {
	f, err := os.Open(w.file.Name())
	if err != nil {
		return nil, err
	}
	return &follower{w: w, file: f}, nil
}

type follower struct {
	w    *Writer
	file *os.File
	off  int64
}

func (f *follower) Read(p []byte) (int, error) {
	f.w.mu.Lock()
	for f.off >= f.w.size && !f.w.done {
		f.w.more.Wait()
	}
	left, err := f.w.size-f.off, f.w.err
	f.w.mu.Unlock()
	if err != nil {
		return 0, err
	}
	if left == 0 {
		return 0, io.EOF
	}
	n, err := f.file.Read(p[:min(int64(len(p)), left)])
	f.off += int64(n)
	return n, err
}

func (f *follower) Close() error { return f.file.Close() }

// verifier reads a blob and compares it with its digest at the end.
type verifier struct {
	f      *os.File
	hash   hash.Hash
	digest string
}

func (v *verifier) Read(p []byte) (int, error) {
	n, err := v.f.Read(p)
	v.hash.Write(p[:n])
	if err == io.EOF {
		if got := "sha256:" + hex.EncodeToString(v.hash.Sum(nil)); got != v.digest {
			return n, fmt.Errorf("%s: %w: got %s", v.digest, ErrCorrupt, got)
		}
	}
	return n, err
}

func (v *verifier) Close() error { return v.f.Close() }
