package blob

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/periplus/periplus/linux/fsat"
)

var (
	// ErrNotFound is returned when there is no blob of that digest.
	ErrNotFound = errors.New("blob not found")
	// ErrCorrupt is returned when content does not have the digest or size it should have.
	ErrCorrupt = errors.New("content does not match its digest")
)

// Store is a directory of blobs.
type Store struct{ dir string }

// Open opens or makes the store in dir and drops what an interrupted run has left.
func Open(dir string) (*Store, error) {
	ingest := filepath.Join(dir, "ingest")
	if err := os.RemoveAll(ingest); err != nil {
		return nil, err
	}
	for _, d := range []string{filepath.Join(dir, "sha256"), ingest} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, err
		}
	}
	return &Store{dir}, nil
}

// CheckDigest returns an error unless digest is "sha256:" and 64 hexadecimal digits.
func CheckDigest(digest string) error {
	digits, ok := strings.CutPrefix(digest, "sha256:")
	if !ok || len(digits) != 64 || strings.Trim(digits, "0123456789abcdef") != "" {
		return fmt.Errorf("unsupported digest %q: want sha256:<64 hexadecimal digits>", digest)
	}
	return nil
}

// Digest is the digest of data.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func (s *Store) path(digest string) string {
	return filepath.Join(s.dir, "sha256", strings.TrimPrefix(digest, "sha256:"))
}

// Stat tells the size of a blob.
func (s *Store) Stat(digest string) (size int64, err error) {
	if err := CheckDigest(digest); err != nil {
		return 0, err
	}
	fi, err := os.Stat(s.path(digest))
	if errors.Is(err, os.ErrNotExist) {
		return 0, fmt.Errorf("%s: %w", digest, ErrNotFound)
	}
	if err != nil {
		return 0, err
	}
	return fi.Size(), nil
}

// Has reports whether the store has a blob.
func (s *Store) Has(digest string) bool {
	_, err := s.Stat(digest)
	return err == nil
}

// Read reads a small blob, at most limit bytes, and checks it.
func (s *Store) Read(digest string, limit int64) ([]byte, error) {
	r, err := s.Reader(digest)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s is larger than %d bytes", digest, limit)
	}
	return data, nil
}

// Reader reads a blob. At its end it fails with ErrCorrupt if the content is not what the digest says.
func (s *Store) Reader(digest string) (io.ReadCloser, error) {
	if err := CheckDigest(digest); err != nil {
		return nil, err
	}
	f, err := os.Open(s.path(digest))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", digest, ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	return &verifier{f: f, hash: sha256.New(), digest: digest}, nil
}

// Delete removes a blob. It is no error if there is none.
func (s *Store) Delete(digest string) error {
	err := os.Remove(s.path(digest))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// List lists the digests of all blobs.
func (s *Store) List() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, "sha256"))
	if err != nil {
		return nil, err
	}
	out := make([]string, 0, len(entries))
	for _, e := range entries {
		out = append(out, "sha256:"+e.Name())
	}
	return out, nil
}

// Sync makes the names of all blobs durable. Their content is since Commit.
func (s *Store) Sync() error { return fsat.SyncDir(filepath.Join(s.dir, "sha256")) }

// Put stores a small blob.
func (s *Store) Put(data []byte) (digest string, err error) {
	digest = Digest(data)
	if s.Has(digest) {
		return digest, nil
	}
	w, err := s.Create()
	if err != nil {
		return "", err
	}
	defer w.Abort(nil)
	if _, err := w.Write(data); err != nil {
		return "", err
	}
	return digest, w.Commit(digest, int64(len(data)))
}
