#!/bin/sh
# scripts/proof.sh TESTS SETTING=VALUE...: runs the tests that hold the checker to
# other judges' verdicts, with their figures, under settings of internal/proof.
set -eu
cd "$(dirname "$0")/.."
tests=$1
shift
exec env "$@" scripts/go test -count=1 -timeout 6h -run "$tests" -v ./internal/proof
