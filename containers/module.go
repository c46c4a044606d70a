package containers

import (
	"path/filepath"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	wasmbin "github.com/periplus/periplus/containers/wasm/bin"
)

// runnerPath is where containers of WebAssembly modules find their runner.
const runnerPath = "/.periplus/wasm"

// runModule makes the container's program a WebAssembly module, which the runner
// runs: it is mounted, and comes first on the command line.
func (r *Runtime) runModule(spec *specs.Spec) error {
	runner, err := wasmbin.Extract(filepath.Join(r.cfg.StateDir, "bin"))
	if err != nil {
		return err
	}
	spec.Mounts = append(spec.Mounts, specs.Mount{
		Destination: runnerPath, Type: "bind", Source: runner, Options: []string{"bind", "ro", "nosuid", "nodev"},
	})
	spec.Process.Args = append([]string{runnerPath}, spec.Process.Args...)
	return nil
}
