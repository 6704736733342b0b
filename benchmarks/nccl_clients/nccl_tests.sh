#!/bin/sh
# benchmarks/nccl_clients/nccl_tests.sh [COLLECTIVE...]: nccl-tests' own binaries over the library,
# with their checks on: each collective with all types and all operations, in place and out of
# place (nccl-tests does both), sizes from 1 KiB to LARGEST (4M), buffers that are not
# registered and registered ones, launched one by one and in graphs, one thread for all GPUs and
# a thread a GPU. A line PASS or FAIL each, and how many calls programs carried out.
# Needs build.sh's binaries (NCCL_TESTS_BIN), the library (LIBRARY) and GPUS (2). No run begins
# once BUDGET seconds (540) are over. Ends with 1 if anything failed, with 3 if nothing can run.
set -u
cd "$(dirname "$0")/../.." || exit 3
. benchmarks/nccl_clients/common.sh
find_all
largest=${LARGEST:-4M}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
bad=0

# judge NAME: reads $out/log and $out/err of a run that ended with $code.
judge() {
	wrong=$(sed -n 's/^# Out of bounds values : \([0-9]*\).*/\1/p' "$out/log" | tail -n 1)
	served=$(awk '/stats:.*calls by programs/ { for (i = 2; i < NF; i++) if ($(i + 1) == "calls" && $(i + 2) == "by" && $(i + 3) ~ /^programs/) n += $i } END { print n + 0 }' "$out/err")
	if [ "$code" = 0 ] && [ "$wrong" = 0 ]; then
		echo "PASS $1: $served calls by programs"
	else
		echo "FAIL $1: exit code $code, ${wrong:-no count of} wrong values"
		tail -n 15 "$out/log" "$out/err"
		bad=1
	fi
}

# one NAME BINARY FLAGS...: runs a test over the library.
one() {
	name=$1
	binary=$2
	shift 2
	if [ "$(left)" -le 0 ]; then
		echo "LEFT OUT $name: $budget s are over"
		return
	fi
	if [ ! -x "$tests/$binary" ]; then
		echo "LEFT OUT $name: $tests/$binary is not there: benchmarks/nccl_clients/build.sh"
		return
	fi
	ours timeout $(($(left) + 60)) "$tests/$binary" "$@" -b 1K -e "$largest" -f 8 -n 2 -w 1 -c 1 >"$out/log" 2>"$out/err"
	code=$?
	judge "$name"
}

[ $# -gt 0 ] || set -- all_reduce all_gather reduce_scatter broadcast reduce alltoall gather scatter sendrecv
for c; do
	ops=
	case $c in all_reduce | reduce_scatter | reduce) ops="-o all" ;; esac
	roots=
	case $c in broadcast | reduce | gather | scatter) roots="-r -1" ;; esac
	# shellcheck disable=SC2086
	{
		one "$c, all types, one thread" "${c}_perf" -g "$gpus" -d all $ops $roots
		one "$c, a thread a GPU, registered" "${c}_perf" -t "$gpus" -g 1 -d float -o sum $roots -R 2
		one "$c, a thread a GPU, in graphs" "${c}_perf" -t "$gpus" -g 1 -d float -o sum $roots -G 2
		one "$c, registered, in graphs" "${c}_perf" -t "$gpus" -g 1 -d bfloat16 -o sum $roots -R 2 -G 2
		one "$c, not aligned" "${c}_perf" -g "$gpus" -d half -o sum $roots -u 1
	}
done
exit $bad
