// Package bin carries the built program that runs WebAssembly modules inside peri,
// compressed, and extracts it once per version, as containers/monitor/bin does.
package bin
