#!/bin/sh
# scripts/nccl-headers.sh [VERSION...]: puts nccl.h of NCCL's pinned versions, or of those
# named, and the headers beside it into .cache/nccl/VERSION, and prints that folder, one a line. For
# each it takes the first of these that is that version, and says on standard error which:
#   what is in .cache already; CUDA_HOME, NCCL_HOME and the system's folders; NVIDIA's
#   wheels where Python has them installed; the wheel, fetched with pip and thrown away
#   again but for its headers.
# Ends with exit code 3 if one can't be had.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
package=nvidia-nccl-cu13
# The one that GPU machines' PyTorch brings, and the newest.
pinned="2.28.9 2.32.3"
[ $# -gt 0 ] || set -- $pinned

# version_of FILE: the version that a header says it is, such as 2.28.9.
version_of() {
	sed -n 's/^#define NCCL_\(MAJOR\|MINOR\|PATCH\) *\([0-9]*\).*/\2/p' "$1" 2>/dev/null | tr '\n' '.' | sed 's/\.$//'
}

# installed VERSION: where a header of that version lies on this machine, if it does.
installed() {
	for f in "${NCCL_HOME:-/usr}/include/nccl.h" "${CUDA_HOME:-/usr/local/cuda}/include/nccl.h" \
		/usr/include/nccl.h /usr/local/include/nccl.h $(wheel_headers); do
		if [ "$(version_of "$f")" = "$1" ]; then
			echo "$f"
			return
		fi
	done
}

wheel_headers() {
	python3 -c 'import os, sys
for p in sys.path:
    f = os.path.join(p, "nvidia", "nccl", "include", "nccl.h")
    if os.path.exists(f): print(f)' 2>/dev/null || true
}

# a_pip prints a command that is pip; it makes one in folder $1 if it must, for which
# Debian wants a package of its own.
a_pip() {
	if python3 -m pip --version >/dev/null 2>&1; then
		echo "python3 -m pip"
		return
	fi
	if ! python3 -m venv "$1/venv" >/dev/null 2>&1; then
		[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
		echo "nccl: installing python3-venv" >&2
		{ apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends python3-venv; } >/dev/null 2>&1 || return 1
		rm -rf "$1/venv"
		python3 -m venv "$1/venv" >/dev/null 2>&1 || return 1
	fi
	echo "$1/venv/bin/python -m pip"
}

# keep FROM TO: copies nccl.h of a folder and what belongs to it.
keep() {
	cp -R "$1"/nccl*.h "$1"/nccl_device "$2" 2>/dev/null || cp "$1"/nccl.h "$2"
}

# fetch VERSION FOLDER: the wheel's headers, into FOLDER/include. All processors' wheels have the same one, and
# which name a pip knows this machine by depends on its age: the first that fits is taken.
fetch() {
	pip=$(a_pip "$2") || return 1
	for platform in manylinux_2_27_x86_64 manylinux_2_18_x86_64 manylinux2014_x86_64; do
		# shellcheck disable=SC2086
		if $pip download -q --disable-pip-version-check --no-deps --only-binary=:all: --platform $platform \
			-d "$2" "$package==$1" >"$2/log" 2>&1; then
			python3 - "$2" <<'PY'
import glob, os, sys, zipfile
inside = "nvidia/nccl/include/"
with zipfile.ZipFile(glob.glob(sys.argv[1] + "/*.whl")[0]) as z:
    for name in z.namelist():
        if not name.startswith(inside) or name.endswith("/"): continue
        to = os.path.join(sys.argv[1], "include", name[len(inside):])
        os.makedirs(os.path.dirname(to), exist_ok=True)
        with open(to, "wb") as f: f.write(z.read(name))
PY
			return
		fi
	done
	tail -n 2 "$2/log" >&2
	return 1
}

missing=
for v; do
	to=$root/.cache/nccl/$v
	from=
	if [ "$(version_of "$to/nccl.h")" != "$v" ]; then
		mkdir -p "$to"
		from=$(installed "$v")
		if [ -n "$from" ]; then
			echo "nccl: nccl.h $v is $from" >&2
			keep "$(dirname "$from")" "$to"
		else
			tmp=$(mktemp -d)
			trap 'rm -rf "$tmp"' EXIT
			echo "nccl: fetching nccl.h $v out of $package" >&2
			if command -v python3 >/dev/null && fetch "$v" "$tmp" && [ "$(version_of "$tmp/include/nccl.h")" = "$v" ]; then
				keep "$tmp/include" "$to"
			else
				rmdir "$to"
				missing="$missing $v"
			fi
			rm -rf "$tmp"
			trap - EXIT
		fi
	fi
	[ ! -e "$to/nccl.h" ] || echo "$to"
done
if [ -n "$missing" ]; then
	echo "nccl: nccl.h of these versions is not on this machine and can't be fetched:$missing" >&2
	echo "    put it at .cache/nccl/VERSION/nccl.h, or install python3 with pip and a network" >&2
	exit 3
fi
