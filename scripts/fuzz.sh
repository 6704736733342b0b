#!/bin/sh
# scripts/fuzz.sh DURATION: runs every fuzz target of the module that long.
set -eu
cd "$(dirname "$0")/.."
time=${1:-10s}
grep -rlE '^func Fuzz[A-Z]' --include='*_test.go' . | sort | while read -r file; do
	pkg=$(dirname "$file")
	sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file" | while read -r target; do
		echo "fuzz: $pkg $target for $time"
		scripts/go test -run '^$' -fuzzminimizetime 1x -fuzz "^$target\$" -fuzztime "$time" "$pkg" </dev/null
	done
done
