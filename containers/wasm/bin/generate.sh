#!/bin/sh
# Builds the runner of WebAssembly modules for the target architecture into this directory.
set -eu
cd "$(dirname "$0")"
arch=${GOARCH:-$(go env GOARCH)}
CGO_ENABLED=0 GOOS=linux GOARCH=$arch go build -trimpath -ldflags="-s -w -buildid=" -o "wasm-$arch" ../../../cmd/helper/wasm
gzip -9 -n -c "wasm-$arch" > "wasm-$arch.gz.new"
rm "wasm-$arch"
mv "wasm-$arch.gz.new" "wasm-$arch.gz"
