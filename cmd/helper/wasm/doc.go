// Command wasm runs one WebAssembly module as the process of a container: see
// containers/wasm. peri carries it inside and puts it into containers whose pod has the
// RuntimeClass wasmtime.
package main
