package bin

import (
	"embed"
	"errors"
	"io/fs"

	"github.com/periplus/periplus/base/program"
)

// Handler is the runtime handler of WebAssembly: what RuntimeClasses name.
const Handler = "wasmtime"

//go:generate ./generate.sh

// The pattern takes in this package's own few files, so that it matches something
// before the program has been built.
//
//go:embed *
var files embed.FS

// ErrMissing is returned when the program was not built before peri was.
var ErrMissing = errors.New("this peri was built without the runner of WebAssembly modules: build it with make, " +
	"or run go generate ./containers/wasm/bin before go build")

// Extract puts the program below dir, unless this version is there, and returns its path.
func Extract(dir string) (string, error) {
	path, err := program.Extract(files, "wasm", dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", ErrMissing
	}
	return path, err
}
