package bin

import (
	"embed"
	"errors"
	"io/fs"

	"github.com/periplus/periplus/base/program"
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
	if _, err := fs.Stat(files, program.Packed("monitor")); err != nil {
		return "", ErrMissing
	}
	return program.Extract(files, "monitor", dir)
}
