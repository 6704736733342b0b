#!/bin/sh
# scripts/nccl.sh [target]: builds the library with NCCL's interface, which carries the
# default table within it (algorithms/default_table.star) and the kernels of the runtime;
# docs/nccl.md. A CUDA compiler and nccl.h are found, or installed, by scripts/nvcc.sh and
# scripts/nccl-headers.sh; bin/mscclsh makes the table (make build).
#   gpu    for all architectures, to bin/libmscclsh_nccl.so: the default
#   sm90   the same for one architecture
#   dev    the same for fp32 sums on one architecture, in minutes: to compile and to try
#   host   for threads of this CPU, without a compiler for GPUs: what the tests run
#   check  builds that and runs the tests: symbols, choices, values, fallback, processes
#   tsan   the clients among them under ThreadSanitizer
#   clients_gpu  what benchmarks/nccl_clients needs beside the library
# TABLE names another table for the library to carry. PART of a name restricts the clients
# of check and tsan to some.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
target=${1:-gpu}
lib="$root/runtime/nccl"
table=${TABLE:-}

usage() {
	echo "usage: scripts/nccl.sh [gpu|sm90|dev|host|check|tsan|clients_gpu]" >&2
	exit 2
}

# default_table makes the table that the library carries, and sets table to it.
default_table() {
	[ -z "$table" ] || return 0
	if [ ! -x "$root/bin/mscclsh" ]; then
		echo "bin/mscclsh is not there, which makes the table: make build" >&2
		exit 3
	fi
	mkdir -p "$lib/build"
	table="$lib/build/default.mscclsh"
	(cd "$root" && bin/mscclsh table build algorithms/default_table.star -o "$table")
}

# headers sets include to the folder of the nccl.h that is compiled against.
headers() {
	include=$("$root/scripts/nccl-headers.sh" 2.28.9)
}

on_gpu() {
	headers
	found=$("$root/scripts/nvcc.sh")
	nvcc=$(echo "$found" | sed -n 1p)
	link=$(echo "$found" | sed -n 2p)
	default_table
	archs=
	case $target in
	sm90) archs=90 ;;
	gpu)
		for a in 75 80 90; do
			if "$nvcc" --list-gpu-arch 2>/dev/null | grep -qx "compute_$a"; then
				archs="$archs $a"
			else
				echo "nccl: this compiler can't compile for sm_$a: left out" >&2
			fi
		done
		;;
	esac
	goal=gpu made=libmscclsh_nccl.so
	[ "$target" != dev ] || goal=dev made=libmscclsh_nccl_dev.so
	sub=
	[ "$target" != sm90 ] || sub=sm90
	make -s -C "$lib" "$goal" NVCC="$nvcc" LINK="$link" NCCL_INCLUDE="$include" TABLE="$table" \
		${archs:+ARCHS="$archs"} ${sub:+SUB="$sub"}
	mkdir -p "$root/bin"
	cp "$lib/build${sub:+/$sub}/$made" "$root/bin/$made.new"
	mv "$root/bin/$made.new" "$root/bin/$made"
	echo "nccl: bin/$made"
}

on_host() {
	headers
	make -s -C "$lib" "$target" NCCL_INCLUDE="$include" ${CHOICES:+CHOICES="$CHOICES"} ${table:+TEST_TABLE="$table"} ${PART:+PART="$PART"}
}

case $target in
gpu | sm90 | dev) on_gpu ;;
host | tsan) on_host ;;
check)
	# All that can be had: the pinned versions' functions have to be in the library.
	"$root/scripts/nccl-headers.sh" >/dev/null
	if [ -z "${CHOICES:-}" ]; then
		mkdir -p "$lib/build"
		CHOICES="$lib/build/choices.mscclsh"
		(cd "$root" && scripts/go test -count=1 ./table -run Vectors -bundle "$CHOICES" >/dev/null)
	fi
	default_table
	on_host
	;;
clients_gpu) "$root/benchmarks/nccl_clients/build.sh" ;;
*) usage ;;
esac
