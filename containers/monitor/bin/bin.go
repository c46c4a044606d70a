package bin

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

//go:generate ./generate.sh

// The pattern takes in this package's own few files, so that it matches
// something before the program has been built.
//
//go:embed *
var files embed.FS

// ErrMissing is returned when the program was not built before peri was.
var ErrMissing = errors.New("this peri was built without the container monitor: build it with make, " +
	"or run go generate ./containers/monitor/bin before go build")

// Extract puts the program below dir, unless this version is there, and
// returns its path. Programs of other versions stay: one may be running.
func Extract(dir string) (string, error) {
	packed, err := files.ReadFile("monitor-" + runtime.GOARCH + ".gz")
	if err != nil {
		return "", ErrMissing
	}
	digest := sha256.Sum256(packed)
	path := filepath.Join(dir, "monitor-"+hex.EncodeToString(digest[:6]))
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return "", fmt.Errorf("embedded container monitor: %w", err)
	}
	f, err := os.CreateTemp(dir, ".monitor-")
	if err != nil {
		return "", err
	}
	defer os.Remove(f.Name())
	_, err = io.Copy(f, r)
	// Synced: a name that exists must stand for the whole program after a power loss.
	err = errors.Join(err, f.Chmod(0o755), f.Sync(), f.Close())
	if err != nil {
		return "", fmt.Errorf("extract the container monitor: %w", err)
	}
	return path, os.Rename(f.Name(), path)
}
