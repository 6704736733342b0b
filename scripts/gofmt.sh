#!/bin/sh
# Fails, naming the files, if any Go file isn't as gofmt writes it.
set -eu
cd "$(dirname "$0")/.."
gofmt=$(scripts/go env GOROOT)/bin/gofmt
bad=$(find . -name '*.go' -not -path './.cache/*' -print0 | xargs -0 "$gofmt" -l)
if [ -n "$bad" ]; then
	echo "gofmt would change:" >&2
	echo "$bad" >&2
	exit 1
fi
