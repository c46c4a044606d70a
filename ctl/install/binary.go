package install

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// self is the running binary, even if its file has been replaced.
const self = "/proc/self/exe"

// copyBinary puts the running binary at a path. It is written beside and renamed:
// who runs or links the old file keeps that one.
func copyBinary(from, to string) (changed bool, err error) {
	same, err := sameContent(from, to)
	if err != nil || same {
		return false, err
	}
	dir := filepath.Dir(to)
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // as such directories are
		return false, err
	}
	in, err := os.Open(from)
	if err != nil {
		return false, err
	}
	defer in.Close()
	out, err := os.CreateTemp(dir, ".peri-")
	if err != nil {
		return false, err
	}
	defer os.Remove(out.Name())
	_, err = io.Copy(out, in)
	err = errors.Join(err, out.Chmod(0o755), out.Sync(), out.Close())
	if err == nil {
		err = os.Rename(out.Name(), to)
	}
	if err != nil {
		return false, fmt.Errorf("copy the binary to %s: %w", to, err)
	}
	return true, nil
}

// sameContent compares two files; one that does not exist differs.
func sameContent(a, b string) (bool, error) {
	x, err := os.Stat(a)
	if err != nil {
		return false, err
	}
	y, err := os.Stat(b)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if os.SameFile(x, y) {
		return true, nil
	}
	if x.Size() != y.Size() {
		return false, nil
	}
	var sums [2][]byte
	for i, path := range []string{a, b} {
		f, err := os.Open(path)
		if err != nil {
			return false, err
		}
		h := sha256.New()
		_, err = io.Copy(h, f)
		_ = f.Close()
		if err != nil {
			return false, err
		}
		sums[i] = h.Sum(nil)
	}
	return bytes.Equal(sums[0], sums[1]), nil
}

// link makes name a symbolic link to target. What is there and is not such a link
// stays.
func link(target, name string) error {
	have, err := os.Readlink(name)
	switch {
	case err == nil && have == target:
		return nil
	case err == nil:
		return fmt.Errorf("%s leads to %s already: remove it, or install without --kubectl", name, have)
	case !errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%s is there already: remove it, or install without --kubectl", name)
	}
	return os.Symlink(target, name)
}
