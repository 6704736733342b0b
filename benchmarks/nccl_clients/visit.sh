#!/bin/sh
# benchmarks/nccl_clients/visit.sh [tests|torch|decode|bench]...: all clients on a machine with GPUs,
# within BUDGET seconds (540), in this order unless parts are named; what they print goes to
# OUT (benchmarks/results/nccl_clients) too. It needs bin/libmscclsh_nccl.so (make nccl, or
# LIBRARY), nccl-tests' binaries (build.sh, NCCL_TESTS_BIN), and a python3 with PyTorch; what is
# missing is said, and its part left out. No compiler and no network. At the end it counts
# lines PASS and FAIL; exit code 1 if there is a FAIL or nothing passed.
set -u
cd "$(dirname "$0")/../.." || exit 3
. benchmarks/nccl_clients/common.sh
find_all
out=${OUT:-benchmarks/results/nccl_clients}
mkdir -p "$out"
export OUT="$out" LIBRARY="$library" GPUS="$gpus"
[ $# -gt 0 ] || set -- tests torch decode bench
: >"$out/visit.txt"

# part NAME SECONDS COMMAND...: runs a part, with so many seconds at most.
part() {
	name=$1
	most=$2
	shift 2
	time=$(left)
	[ "$time" -gt "$most" ] && time=$most
	if [ "$time" -le 10 ]; then
		echo "LEFT OUT $name: $budget s are over" | tee -a "$out/visit.txt"
		return
	fi
	from=$(date +%s)
	{
		BUDGET=$time timeout $((time + 45)) "$@" 2>&1
		code=$?
		# 1 is told of by lines that say FAIL.
		[ $code -le 1 ] || echo "LEFT OUT $name: it could not run, exit code $code"
	} | tee "$out/$name.txt"
	cat "$out/$name.txt" >>"$out/visit.txt"
	echo "--- $name: $(($(date +%s) - from)) s" | tee -a "$out/visit.txt"
}

{
	nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null || echo "no nvidia-smi"
	echo "library $library, NCCL ${nccl:-of the loader's choice}, $gpus GPUs, NVLS off"
} | tee -a "$out/visit.txt"
for p; do
	case $p in
	tests) part tests 200 benchmarks/nccl_clients/nccl_tests.sh ;;
	torch) part torch 120 python3 benchmarks/nccl_clients/torch_check.py --library "$library" --gpus "$gpus" --limit 55 ;;
	decode)
		for batch in 1 16; do
			part "decode-$batch" 70 python3 benchmarks/nccl_clients/decode.py --library "$library" --gpus "$gpus" --batch "$batch" --limit 30
		done
		;;
	bench) part bench 240 benchmarks/nccl_clients/bench.sh ;;
	*)
		echo "usage: benchmarks/nccl_clients/visit.sh [tests|torch|decode|bench]..." >&2
		exit 2
		;;
	esac
done
passed=$(grep -c '^PASS' "$out/visit.txt")
failed=$(grep -c '^FAIL' "$out/visit.txt")
echo "nccl_clients: $passed passed, $failed failed, $(grep -c '^LEFT OUT' "$out/visit.txt") left out"
[ "$failed" = 0 ] && [ "$passed" != 0 ]
