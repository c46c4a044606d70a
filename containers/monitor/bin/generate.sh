#!/bin/sh
# Builds the monitor for the target architecture into this directory.
set -eu
cd "$(dirname "$0")"
arch=${GOARCH:-$(go env GOARCH)}
CGO_ENABLED=0 GOOS=linux GOARCH=$arch go build -trimpath -ldflags="-s -w -buildid=" -o "monitor-$arch" ../../../cmd/helper/monitor
gzip -9 -n -c "monitor-$arch" > "monitor-$arch.gz.new"
rm "monitor-$arch"
mv "monitor-$arch.gz.new" "monitor-$arch.gz"
