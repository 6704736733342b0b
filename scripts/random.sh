#!/bin/sh
# scripts/random.sh N: N random programs are compiled, checked and run, and must
# give the values that a naive model of each predicts.
set -eu
cd "$(dirname "$0")/.."
MSCCLSH_PROGRAMS=$1 exec scripts/go test -count=1 -timeout 6h -run '^TestRandomPrograms$' -v ./internal/endtoend
