#!/bin/sh
# scripts/setup.sh build|test: makes sure that what building (or testing) needs
# is here. As root on Debian it installs what is missing; otherwise it names
# what is missing and what will therefore be skipped.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
want=$(sed -n 's/^go //p' "$root/go.mod")
level=${1:-test}

has() { command -v "$1" >/dev/null 2>&1; }

can_install() { [ "$(id -u)" = 0 ] && has apt-get; }

updated=
install() {
	if [ -z "$updated" ]; then
		apt-get -qq update
		updated=1
	fi
	echo "setup: installing $*" >&2
	DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$@" >/dev/null
}

# fetch_go gets the toolchain as the module that it is, which Go of any version
# can download and verify against the checksum database. Only Go 1.21 and later
# run such a module by themselves, so it is unpacked for those that can't.
fetch_go() {
	has go || install golang-go ca-certificates
	os=$(go env GOOS)
	arch=$(go env GOARCH)
	module="golang.org/toolchain@v0.0.1-go$want.$os-$arch"
	echo "setup: fetching $module" >&2
	tmp=$(mktemp -d)
	# In an empty folder: this module's go.mod may be too new for this Go.
	dir=$(cd "$tmp" && GOFLAGS=-modcacherw GO111MODULE=on go mod download -json "$module" |
		sed -n 's/^[[:space:]]*"Dir": "\(.*\)",*$/\1/p')
	rmdir "$tmp"
	[ -n "$dir" ] || return 1
	goroot="$root/.cache/go$want"
	rm -rf "$goroot.tmp" "$goroot"
	mkdir -p "$root/.cache"
	cp -R "$dir" "$goroot.tmp"
	chmod -R u+w "$goroot.tmp"
	# A module can hold neither executables nor another go.mod.
	chmod +x "$goroot.tmp"/bin/* "$goroot.tmp"/pkg/tool/*/*
	find "$goroot.tmp" -name _go.mod | while read -r f; do
		mv "$f" "$(dirname "$f")/go.mod"
	done
	mv "$goroot.tmp" "$goroot"
}

if ! "$root/scripts/go" version >/dev/null 2>&1; then
	if ! { has go || can_install; } || ! fetch_go; then
		echo "setup: Go $want is missing and nothing can be built without it:" >&2
		echo "    install it from https://go.dev/dl, or run make as root on Debian with a network" >&2
		exit 3
	fi
fi
[ "$level" = test ] || exit 0

# The race detector needs a C compiler to link with.
if ! has gcc && ! has cc; then
	if can_install; then
		install gcc libc6-dev
	else
		echo "setup: no C compiler: the race detector is skipped" >&2
	fi
fi

# The GPU kernel's build for this CPU, through which the GPU backend is tested.
if ! has g++ && can_install; then
	install g++
fi
if has g++ && has make; then
	make --silent --no-print-directory -j "$(nproc)" -C "$root/runtime/cuda/lib" host >&2
else
	echo "setup: no C++ compiler: the tests of the GPU backend are skipped" >&2
fi
