#!/bin/sh
# scripts/bench.sh MSCCLSH: the figures of docs/benchmarks.md.
set -eu
cd "$(dirname "$0")/.."
scripts/go run ./internal/benchcmd "$@"
echo
scripts/go test -run '^$' -bench 'BenchmarkTrace|BenchmarkRing|BenchmarkCopy|BenchmarkWrite' -benchtime 2s ./trace ./starlib ./ir/... ./runtime/cpu
