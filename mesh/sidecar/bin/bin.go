package bin

import (
	"embed"
	"errors"
	"io/fs"

	"github.com/periplus/periplus/base/program"
)

//go:generate ./generate.sh

// The pattern takes in this package's own few files, so that it matches something
// before the program has been built.
//
//go:embed *
var files embed.FS

const name = "sidecar"

// ErrMissing is returned when the program was not built before peri was.
var ErrMissing = errors.New("this peri was built without the sidecar: build it with make, " +
	"or run go generate ./mesh/sidecar/bin before go build")

// Present reports whether the program is inside.
func Present() bool {
	_, err := fs.Stat(files, program.Packed(name))
	return err == nil
}

// Extract puts the program below dir, unless this version is there, and returns its path.
func Extract(dir string) (string, error) {
	path, err := program.Extract(files, name, dir)
	if errors.Is(err, fs.ErrNotExist) && !Present() {
		return "", ErrMissing
	}
	return path, err
}
