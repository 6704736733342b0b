#!/bin/sh
# scripts/nvcc.sh: prints two lines, the path of a CUDA compiler and the options that
# linking with it needs. It takes the first of these, installs it if it must, and says
# on standard error which:
#   nvcc on PATH; NVIDIA's wheels in .cache/cuda; Debian's package, as root.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
version=13.0
venv="$root/.cache/cuda"

# wheels prints the folder that NVIDIA's wheels unpack into, if it is there.
wheels() {
	for d in "$venv"/lib/python3*/site-packages/nvidia/cu13; do
		if [ -x "$d/bin/nvcc" ]; then echo "$d"; fi
	done
}

install_wheels() {
	echo "cuda: installing NVIDIA's $version wheels into .cache/cuda" >&2
	python3 -m venv "$venv" &&
		"$venv/bin/pip" install -q "nvidia-cuda-nvcc==$version.*" "nvidia-cuda-crt==$version.*" \
			"nvidia-nvvm==$version.*" "nvidia-cuda-runtime==$version.*" "nvidia-cuda-cccl==$version.*"
}

# install_debian wants a source with the component non-free, which it leaves to the
# machine's owner.
install_debian() {
	[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
	apt-get -qq update
	apt-cache policy nvidia-cuda-toolkit | grep -q 'Candidate: [0-9]' || return 1
	echo "cuda: installing Debian's nvidia-cuda-toolkit" >&2
	DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends nvidia-cuda-toolkit >&2
}

# found NVCC OPTIONS FROM: prints what was found.
found() {
	release=$("$1" --version | sed -n 's/.*release \([0-9.]*\).*/\1/p')
	echo "cuda: compiler $1, CUDA $release, $3" >&2
	printf '%s\n%s\n' "$1" "$2"
}

if command -v nvcc >/dev/null 2>&1; then
	found "$(command -v nvcc)" "" "from PATH"
elif [ -n "$(wheels)" ] || { install_wheels >&2 && [ -n "$(wheels)" ]; }; then
	home=$(wheels)
	found "$home/bin/nvcc" "-L$home/lib" "from NVIDIA's wheels"
elif install_debian; then
	found "$(command -v nvcc)" "" "from Debian's package"
else
	echo "cuda: nvcc is not on PATH, NVIDIA's wheels can't be installed, and neither can Debian's nvidia-cuda-toolkit:" >&2
	echo "    install the CUDA toolkit ($version, or 11.8 and later), or python3-venv and a network," >&2
	echo "    or, on Debian, add the components contrib and non-free and run as root" >&2
	exit 3
fi
