#!/bin/sh
# scripts/cuda.sh [target]: builds the CUDA interpreter's library (target gpu, the
# default, or dev) with the first compiler it finds, and says which:
#   nvcc on PATH; else NVIDIA's wheels, installed into .cache/cuda.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
target=${1:-gpu}
version=13.0
venv="$root/.cache/cuda"
lib="$root/runtime/cuda/lib"

# wheels prints the folder that NVIDIA's wheels unpack into, if it is there.
wheels() {
	for d in "$venv"/lib/python3*/site-packages/nvidia/cu13; do
		if [ -x "$d/bin/nvcc" ]; then echo "$d"; fi
	done
}

install() {
	echo "cuda: installing NVIDIA's $version wheels into .cache/cuda" >&2
	python3 -m venv "$venv" &&
		"$venv/bin/pip" install -q "nvidia-cuda-nvcc==$version.*" "nvidia-cuda-crt==$version.*" \
			"nvidia-nvvm==$version.*" "nvidia-cuda-runtime==$version.*" "nvidia-cuda-cccl==$version.*"
}

link=
if command -v nvcc >/dev/null 2>&1; then
	nvcc=$(command -v nvcc)
else
	if [ -z "$(wheels)" ] && ! install; then
		echo "cuda: nvcc is not on PATH and NVIDIA's wheels can't be installed:" >&2
		echo "    install the CUDA toolkit ($version or later), or python3-venv and a network" >&2
		exit 3
	fi
	home=$(wheels)
	nvcc="$home/bin/nvcc"
	link="-L$home/lib"
fi
echo "cuda: building with $nvcc ($("$nvcc" --version | sed -n 's/.*release \([0-9.]*\).*/\1/p'))" >&2
make -s -C "$lib" "$target" NVCC="$nvcc" LINK="$link"

# Registers and spills of the kernels, as the assembler told them.
awk '
	/Compiling entry function/ { hot = $7 ~ /6kernel/ }
	/spill stores/ { if (hot && ($5 != 0 || $9 != 0)) { spills++ } }
	/Used [0-9]+ registers/ {
		if (!hot) next
		for (i = 1; i < NF; i++) if ($i == "Used" && $(i + 1) + 0 > most) most = $(i + 1) + 0
		kernels++
	}
	END { printf "cuda: %d kernels, at most %d registers, %d with spills\n", kernels, most, spills }
' "$lib"/build/"$(if [ "$target" = dev ]; then echo dev; else echo gpu; fi)"/kernels_*.log
