#!/bin/sh
# Builds the sidecar for the target architecture into this directory.
set -eu
cd "$(dirname "$0")"
arch=${GOARCH:-$(go env GOARCH)}
CGO_ENABLED=0 GOOS=linux GOARCH=$arch go build -trimpath -ldflags="-s -w -buildid=" -o "sidecar-$arch" ../../../cmd/helper/sidecar
gzip -9 -n -c "sidecar-$arch" > "sidecar-$arch.gz.new"
rm "sidecar-$arch"
mv "sidecar-$arch.gz.new" "sidecar-$arch.gz"
