#!/bin/sh
# benchmarks/nccl_clients/build.sh: builds nccl-tests of a copy of its sources, which NCCL_TESTS
# names (github.com/NVIDIA/nccl-tests; none is kept here), into OUT (bin/nccl-tests), for sm_90 or
# ARCH. It needs nvcc and NCCL's headers (scripts/nvcc.sh, scripts/nccl-headers.sh) and no
# network beyond what those want, no GPU and no NCCL: the binaries are linked with a library
# that has NCCL's name and functions, and nothing in them; where they run they find NCCL. So
# they can be built on one machine and carried to another, OUT.tar.xz being small.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
sources=${NCCL_TESTS:-}
out=${OUT:-$root/bin/nccl-tests}
arch=${ARCH:-90}
[ -n "$sources" ] && [ -e "$sources/src/common.cu" ] || {
	echo "nccl_clients: NCCL_TESTS has to name the sources of nccl-tests" >&2
	exit 2
}

found=$("$root/scripts/nvcc.sh")
nvcc=$(echo "$found" | sed -n 1p)
include=$("$root/scripts/nccl-headers.sh" 2.28.9)
home=$(cd "$(dirname "$nvcc")/.." && pwd)
libs=$home/lib
[ ! -d "$home/lib64" ] || libs=$home/lib64

# The sources are left as they are.
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cp -R "$sources/." "$tmp/tests"
mkdir -p "$tmp/nccl/lib"
ln -s "$include" "$tmp/nccl/include"
awk '!/^#/ { printf ".globl %s\n%s: .byte 0\n", $1, $1 }' "$root/runtime/nccl/src/symbols.txt" |
	sed '1i .text' >"$tmp/names.s"
"${CXX:-c++}" -shared -nostdlib -Wl,-soname,libnccl.so.2 -o "$tmp/nccl/lib/libnccl.so" "$tmp/names.s"

make -s -C "$tmp/tests/src" build BUILDDIR="$tmp/build" NCCL_HOME="$tmp/nccl" CUDA_HOME="$home" \
	CUDA_LIB="$libs" NVCC="$nvcc" CUDARTLIB=cudart_static NVCC_GENCODE="-gencode=arch=compute_$arch,code=sm_$arch"
mkdir -p "$out"
for f in "$tmp/build"/*_perf; do
	strip -o "$out/$(basename "$f")" "$f"
done
tar cJf "$out.tar.xz" -C "$(dirname "$out")" "$(basename "$out")"
ls "$out" "$out.tar.xz"
