package wasm

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental/sock"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"
)

// ListenEnv names addresses to listen on for the module, separated by commas.
const ListenEnv = "PERIPLUS_WASM_LISTEN"

// Exit codes as shells have them.
const (
	ExitCannotRun  = 126 // not a module, or one that cannot be started
	ExitNotFound   = 127 // no such module
	exitTerminated = 128 + 15
)

// Config is a module's world.
type Config struct {
	Args           []string // the module's path, and its arguments
	Env            []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Root is what the module sees as /; default: all that the process sees.
	Root string
}

// Run runs the module to its end and returns its exit code. When ctx ends the module
// is stopped where it is, as a process without a handler for SIGTERM would be; one that
// waits in a call ends with the process, which is to exit then.
func Run(ctx context.Context, c Config) (int, error) {
	if c.Root == "" {
		c.Root = "/"
	}
	path, err := find(c)
	if err != nil {
		return ExitNotFound, err
	}
	code, err := os.ReadFile(path)
	if err != nil {
		return ExitCannotRun, err
	}
	if ctx, err = listen(ctx, c.Env); err != nil {
		return ExitCannotRun, err
	}
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCloseOnContextDone(true))
	wasi_snapshot_preview1.MustInstantiate(ctx, r)
	module, err := r.CompileModule(ctx, code)
	if err != nil {
		return ExitCannotRun, fmt.Errorf("%s is not a WebAssembly module that can be run: %w", c.Args[0], err)
	}
	config := wazero.NewModuleConfig().WithArgs(c.Args...).WithStdin(c.Stdin).WithStdout(c.Stdout).WithStderr(c.Stderr).
		WithSysWalltime().WithSysNanotime().WithSysNanosleep().WithRandSource(rand.Reader).WithName("").
		WithFSConfig(wazero.NewFSConfig().WithDirMount(c.Root, "/"))
	for _, e := range c.Env {
		if k, v, ok := strings.Cut(e, "="); ok && k != "" && k != ListenEnv {
			config = config.WithEnv(k, v)
		}
	}
	ended := make(chan error, 1)
	go func() {
		_, err := r.InstantiateModule(ctx, module, config)
		ended <- err
	}()
	select {
	case err = <-ended:
	case <-ctx.Done(): // it may be waiting for the network and not notice
		return exitTerminated, nil
	}
	var exit *sys.ExitError
	switch {
	case ctx.Err() != nil:
		return exitTerminated, nil
	case errors.As(err, &exit):
		return int(exit.ExitCode()), nil
	case err != nil:
		return ExitCannotRun, err
	}
	return 0, nil
}

// find looks for the module as execvp does for a program.
func find(c Config) (string, error) {
	name := c.Args[0]
	if strings.Contains(name, "/") {
		path := name
		if filepath.IsAbs(name) {
			path = filepath.Join(c.Root, name)
		}
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("%s: %w", name, exec.ErrNotFound)
		}
		return path, nil
	}
	for _, dir := range []string{".", filepath.Join(c.Root, "/")} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			return filepath.Join(dir, name), nil
		}
	}
	return "", fmt.Errorf("%s: %w", name, exec.ErrNotFound)
}

// listen prepares the sockets that the environment asks for.
func listen(ctx context.Context, env []string) (context.Context, error) {
	var sockets sock.Config
	for _, e := range env {
		list, ok := strings.CutPrefix(e, ListenEnv+"=")
		if !ok || list == "" {
			continue
		}
		for address := range strings.SplitSeq(list, ",") {
			host, port, err := net.SplitHostPort(strings.TrimSpace(address))
			if err != nil {
				return ctx, fmt.Errorf("%s: %q is not an address like 0.0.0.0:8080", ListenEnv, address)
			}
			n, err := strconv.ParseUint(port, 10, 16)
			if err != nil {
				return ctx, fmt.Errorf("%s: %q: the port must be a number up to 65535", ListenEnv, address)
			}
			if sockets == nil {
				sockets = sock.NewConfig()
			}
			sockets = sockets.WithTCPListener(host, int(n))
		}
	}
	if sockets == nil {
		return ctx, nil
	}
	return sock.WithConfig(ctx, sockets), nil
}
