package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
)

// A Program is an image that is one static program, which this node carries inside.
// It costs nothing before it is first pulled; then it is made, and kept.
type Program struct {
	// Name is the repository, "periplus.io/sidecar", Version the tag.
	Name, Version string
	// File is the program's name in the root directory, and the entry point.
	File string
	// Extract puts the program somewhere and returns its path, which differs for
	// programs that differ.
	Extract func() (path string, err error)
}

// program makes a program's image, or returns the one that is there.
func (s *Store) program(ctx context.Context, ref Reference, p *Program) (*Image, error) {
	path, err := p.Extract()
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", ref, err)
	}
	fi, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", ref, err)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s\n%d\n", selfFormat, ref, path, fi.Size()))
	img, err := s.ensureBuilt(ctx, built{ref: ref, program: p.File, exe: path, key: hex.EncodeToString(sum[:]), size: fi.Size()})
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", ref, err)
	}
	return img, nil
}
