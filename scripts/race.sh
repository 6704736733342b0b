#!/bin/sh
# The tests under the race detector, or the reason why not.
set -eu
cd "$(dirname "$0")/.."
if ! command -v gcc >/dev/null 2>&1 && ! command -v cc >/dev/null 2>&1; then
	echo "race: skipped, no C compiler" >&2
	exit 0
fi
CGO_ENABLED=1 exec scripts/go test -race -short -timeout 30m "$@" ./...
