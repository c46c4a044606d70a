#!/bin/sh
# Installs the Debian packages that Periplus needs to run and to be tested:
# quick and silent when they are there.
set -eu

# crun starts containers, iptables and nftables show rules to people and tests,
# e2fsprogs makes the file systems of local volumes, openssl looks at certificates in
# tests, busybox-static is the content of test images, gcc is for the race detector.
packages="crun nftables iptables iproute2 util-linux e2fsprogs openssl busybox-static curl ca-certificates gcc libc6-dev"

missing=
for p in $packages; do
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing="$missing $p"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" != 0 ]; then
	echo "These packages are missing:$missing. Install them as root: apt-get install$missing" >&2
	exit 1
fi
echo "installing:$missing"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# shellcheck disable=SC2086 # a list
if ! { apt-get -q update && apt-get -q -y --no-install-recommends install $missing; } >"$log" 2>&1; then
	tail -n 20 "$log" >&2
	echo "apt-get could not install:$missing" >&2
	exit 1
fi
