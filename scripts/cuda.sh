#!/bin/sh
# scripts/cuda.sh [target]: builds what needs a CUDA compiler (scripts/nvcc.sh finds or
# installs one), and says how many registers the kernels take and whether any spill.
#   gpu         the library that runs programs on GPUs, for all architectures: the default
#   dev         the same for fp32 sums on one architecture
#   sm90        the same for all kernels on one architecture
#   archs       kernels for older GPUs (sm_75, sm_80), sums of fp32, fp16 and bf16, no
#               library: that they compile, and fit the registers
#   processes_gpu  what dev has with the test of several processes, one file (docs/cuda.md)
#   yardsticks  the kernels by hand of benchmarks/yardsticks
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
target=${1:-gpu}
lib="$root/runtime/cuda/lib"

case $target in
sm90) at=$lib logs="$lib/build/sm90/gpu/*kernels_*.log" goal=gpu ;;
gpu | dev | archs) at=$lib logs="$lib/build/$target/*kernels_*.log" goal=$target ;;
processes_gpu) at=$lib logs="$lib/build/dev/*kernels_*.log" goal=processes_gpu ;;
yardsticks) at=$root/benchmarks/yardsticks logs="$root/benchmarks/yardsticks/build/*.log" goal=all ;;
*)
	echo "usage: scripts/cuda.sh [gpu|dev|sm90|archs|processes_gpu|yardsticks]" >&2
	exit 2
	;;
esac

found=$("$root/scripts/nvcc.sh")
nvcc=$(echo "$found" | sed -n 1p)
link=$(echo "$found" | sed -n 2p)

# What this compiler can't do is left out, and said.
archs=
release=$("$nvcc" --version | sed -n 's/.*release \([0-9]*\)\.\([0-9]*\).*/\1 \2/p')
major=${release% *}
can() { "$nvcc" --list-gpu-arch 2>/dev/null | grep -qx "compute_$1"; }
if [ "$target" = gpu ]; then
	for a in 75 80 90; do
		if can "$a"; then archs="$archs $a"; else echo "cuda: CUDA $major can't compile for sm_$a: left out" >&2; fi
	done
fi
if [ "$target" = yardsticks ] || [ "$target" = sm90 ]; then
	if ! can 90; then
		echo "cuda: $target is for sm_90, which this compiler can't compile for" >&2
		exit 3
	fi
fi
build=
[ "$target" != sm90 ] || build=build/sm90 archs=90

make -s -j "$(nproc)" -C "$at" "$goal" NVCC="$nvcc" LINK="$link" ${archs:+ARCHS="$archs"} ${build:+BUILD="$build"}

# Registers and spills of the kernels, as the assembler told them, by architecture.
# shellcheck disable=SC2086
awk '
	/Compiling entry function/ {
		arch = $NF
		gsub(/\047/, "", arch)
		hot = lib == 0 || $7 ~ /6kernel|12quick_kernel|10one_kernel|16one_quick_kernel/
		name = $7
		gsub(/\047/, "", name)
	}
	# What a kernel spills itself: the functions it calls are off the hot path.
	/Function properties for/ { own = $NF == name || $NF ~ /^_ZN7mscclsh(6|12quick_|10one_|16one_quick_)kernel/ }
	/spill stores/ && hot && own && ($5 != 0 || $9 != 0) { spills[arch]++; print "cuda: spills in " name " for " arch }
	/Used [0-9]+ registers/ && hot {
		for (i = 1; i < NF; i++) if ($i == "Used" && $(i + 1) + 0 > most[arch]) most[arch] = $(i + 1) + 0
		kernels[arch]++
	}
	END {
		for (a in kernels) printf "cuda: %s: %d kernels, at most %d registers, %d with spills\n", a, kernels[a], most[a], spills[a] | "sort"
	}
' lib="$([ "$at" = "$lib" ] && echo 1 || echo 0)" $logs
