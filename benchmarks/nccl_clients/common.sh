# What the scripts of this folder share; they set library, tests, gpus, budget and begun.

usage_error() {
	echo "nccl_clients: $1" >&2
	exit 3
}

# left: seconds of the budget.
left() { echo $((budget - ($(date +%s) - begun))); }

# find_all finds the library, nccl-tests and NCCL, or says what is missing. NVLink multicast is
# off: only what every machine has is measured.
find_all() {
	library=${LIBRARY:-bin/libmscclsh_nccl.so}
	tests=${NCCL_TESTS_BIN:-bin/nccl-tests}
	gpus=${GPUS:-2}
	budget=${BUDGET:-540}
	begun=$(date +%s)
	[ -e "$library" ] || usage_error "$library is not there: make nccl"
	if [ ! -d "$tests" ] && [ -e "$tests.tar.xz" ]; then tar xJf "$tests.tar.xz" -C "$(dirname "$tests")"; fi
	case $library in /*) ;; *) library=$PWD/$library ;; esac
	nccl=${MSCCLSH_NCCL_LIB:-}
	if [ -z "$nccl" ]; then
		nccl=$(python3 -c 'import os, sys
paths = [os.path.join(p, "nvidia", "nccl", "lib", "libnccl.so.2") for p in sys.path]
print(next((p for p in paths if os.path.exists(p)), ""))' 2>/dev/null || true)
	fi
	[ -z "$nccl" ] || export LD_LIBRARY_PATH="$(dirname "$nccl")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
	export NCCL_NVLS_ENABLE=0
}

# ours COMMAND...: with the library before NCCL, its counts on standard error.
ours() { LD_PRELOAD="$library" MSCCLSH_NCCL_STATS=1 "$@"; }
