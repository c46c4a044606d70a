// Package wasm runs WebAssembly modules as containers (WASI preview 1).
//
//	pod: runtimeClassName: wasmtime ──► handler "wasmtime"
//	container ── crun ──► /.periplus/wasm MODULE args…   (cmd/helper/wasm, read-only)
//	                            └── wazero: module, its memory; files of the container, no system calls
//
// Such a container is a container like any other (namespaces, cgroup, volumes, log,
// probes over the network), in which the module is the program: its image's entry
// point is a .wasm file, its platform wasi/wasm or wasm. The runner is a static
// program that needs nothing from the image.
//
// A module has its arguments, its environment, standard streams, and the container's
// file system. Preview 1 cannot open sockets; a module that serves gets listening ones:
// PERIPLUS_WASM_LISTEN=0.0.0.0:8080 opens that port, as file descriptor 3 on after the
// directories, as wasmtime's --tcplisten does.
package wasm
