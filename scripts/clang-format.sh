#!/bin/sh
# scripts/clang-format.sh [check|fix]: compares the C++ and CUDA sources with what
# clang-format makes of them (.clang-format), or rewrites them. Versions differ in what
# they make, so it is one version: clang-format on PATH if it is that, else the Python
# wheel, installed into .cache. Without either nothing is checked, and a line says so.
set -eu
cd "$(dirname "$0")/.."
version=19.1.7
venv=.cache/clang-format

# right COMMAND: whether it is of the version's series.
right() {
	"$1" --version 2>/dev/null | grep -q "version ${version%%.*}\."
}

install() {
	echo "clang-format: installing $version into $venv" >&2
	python3 -m venv "$venv" && "$venv/bin/pip" install -q "clang-format==$version"
}

if right clang-format; then
	format=clang-format
elif right "$venv/bin/clang-format" || install >&2; then
	format=$venv/bin/clang-format
else
	echo "clang-format: ${version%%.*} is not on PATH and can't be installed: the C++ sources' format is not checked" >&2
	exit 0
fi

sources=$(find runtime/cuda/lib runtime/nccl benchmarks -name build -prune -o \
	\( -name '*.h' -o -name '*.cpp' -o -name '*.cu' \) -print | sort)
case ${1:-check} in
check)
	# shellcheck disable=SC2086
	if ! "$format" --dry-run -Werror $sources; then
		echo "clang-format: scripts/clang-format.sh fix rewrites them" >&2
		exit 1
	fi
	;;
fix)
	# shellcheck disable=SC2086
	"$format" -i $sources
	;;
*)
	echo "usage: scripts/clang-format.sh [check|fix]" >&2
	exit 2
	;;
esac
