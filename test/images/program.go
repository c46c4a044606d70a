package images

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// Program makes an image of a command of this repository, by its import path
// below the module: "test/images/admission". The module's files must be there.
func Program(ctx context.Context, pkg string) (v1.Image, error) {
	dir, err := os.MkdirTemp("", "periplus-program-")
	if err != nil {
		return nil, fmt.Errorf("program image: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	name := path.Base(pkg)
	exe := filepath.Join(dir, name)
	build := exec.CommandContext(ctx, "go", "build", "-ldflags", "-s -w", "-o", exe, "github.com/periplus/periplus/"+pkg)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("program image: build %s: %w\n%s", pkg, err, out)
	}
	data, err := os.ReadFile(exe)
	if err != nil {
		return nil, fmt.Errorf("program image: %w", err)
	}
	l := newLayer()
	for _, f := range append(skeleton(), File{Path: name, Mode: 0o755, Data: data}) {
		l.add(f)
	}
	return l.image(v1.Config{Entrypoint: []string{"/" + name}})
}

// Module makes an image of a command of this repository as a WebAssembly module and
// nothing else, for the platform wasi/wasm.
func Module(ctx context.Context, pkg string) (v1.Image, error) {
	dir, err := os.MkdirTemp("", "periplus-module-")
	if err != nil {
		return nil, fmt.Errorf("module image: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	name := path.Base(pkg) + ".wasm"
	exe := filepath.Join(dir, name)
	build := exec.CommandContext(ctx, "go", "build", "-ldflags", "-s -w", "-o", exe, "github.com/periplus/periplus/"+pkg)
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("module image: build %s: %w\n%s", pkg, err, out)
	}
	data, err := os.ReadFile(exe)
	if err != nil {
		return nil, fmt.Errorf("module image: %w", err)
	}
	l := newLayer()
	l.add(File{Path: name, Mode: 0o755, Data: data})
	img, err := l.image(v1.Config{Entrypoint: []string{"/" + name}})
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "wasi", "wasm"
	return mutate.ConfigFile(img, config)
}
