package program

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Packed is the name of the compressed program for this architecture.
func Packed(name string) string { return name + "-" + runtime.GOARCH + ".gz" }

// Extract puts the program below dir, unless this version is there, and returns its
// path. Programs of other versions stay: one may be running. It returns
// fs.ErrNotExist if there is none among files.
func Extract(files fs.FS, name, dir string) (string, error) {
	packed, err := fs.ReadFile(files, Packed(name))
	if err != nil {
		return "", err
	}
	digest := sha256.Sum256(packed)
	path := filepath.Join(dir, name+"-"+hex.EncodeToString(digest[:6]))
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return "", fmt.Errorf("embedded program %s: %w", name, err)
	}
	f, err := os.CreateTemp(dir, "."+name+"-")
	if err != nil {
		return "", err
	}
	defer os.Remove(f.Name())
	_, err = io.Copy(f, r)
	// Synced: a name that exists must stand for the whole program after a power loss.
	err = errors.Join(err, f.Chmod(0o755), f.Sync(), f.Close())
	if err != nil {
		return "", fmt.Errorf("extract the program %s: %w", name, err)
	}
	return path, os.Rename(f.Name(), path)
}
