#!/bin/sh
# Runs every fuzz target of the module for a while: scripts/fuzz.sh 20s
set -eu
cd "$(dirname "$0")/.."
time=${1:-20s}
for file in $(git grep -l --untracked -E '^func Fuzz[A-Z]' -- '*_test.go'); do
	for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file"); do
		echo "== $(dirname "$file") $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "./$(dirname "$file")"
	done
done
