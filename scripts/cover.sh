#!/bin/sh
# The tests' coverage: statements that any test of the module reaches, a line a
# package, and the whole.
set -eu
cd "$(dirname "$0")/.."
scripts/go test -short -coverpkg=./... -coverprofile=coverage.out ./... >/dev/null
awk '
	NR > 1 { # file.go:line.col,line.col statements count; once a test binary
		statements[$1] = $2
		if ($3 > 0) reached[$1] = 1
	}
	END {
		for (block in statements) {
			package = block
			sub(/\/[^\/]*:.*/, "", package)
			all[package] += statements[block]
			total += statements[block]
			if (block in reached) {
				hit[package] += statements[block]
				whole += statements[block]
			}
		}
		sort = "sort -k2"
		for (package in all) printf "%5.1f%%  %s\n", 100 * hit[package] / all[package], package | sort
		close(sort)
		printf "%5.1f%%  of all %d statements\n", 100 * whole / total, total
	}' coverage.out
