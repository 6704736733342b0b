#!/bin/sh
# benchmarks/composition.sh: what it gains that a collective is one program, on a machine
# with GPUs. It needs bin/mscclsh and libmscclsh_cuda.so (make build cuda), no Go and no
# compiler. Results go to $OUT, or to benchmarks/results: a CSV file a program, and
# composition.txt with all tables.
#
#   allpairs       one AllReduce against its ReduceScatter and AllGather, a launch each;
#                  against NCCL's AllReduce; against NCCL's ReduceScatter and AllGather
#   hierarchical   one AllReduce of 2 nodes of 2 and of 4 GPUs, all of them on the GPUs
#                  there are, against its three phases, a launch each
#
# DEVICES (0,1) are the GPUs, SIZES (1KiB..256MiB:4) the sizes, PROTOCOLS ("LL LL128
# Simple Direct") and INSTANCES ("16" of allpairs, a quarter of hierarchical) what is
# tried, ONLY a pattern for the names of the two. RANKS (one a GPU) are those of allpairs,
# GPUS ("2 4") of a node of hierarchical, FLAGS more flags of mscclsh bench. No program
# begins once BUDGET seconds (3600) are over. Ends with exit code 1 if any output is wrong
# or a program fails.
set -eu
cd "$(dirname "$0")/.."
out=${OUT:-benchmarks/results}
devices=${DEVICES:-0,1}
sizes=${SIZES:-1KiB..256MiB:4}
protocols=${PROTOCOLS:-LL LL128 Simple Direct}
instances=${INSTANCES:-16}
only=${ONLY:-.}
bin=${MSCCLSH:-bin/mscclsh}
budget=${BUDGET:-3600}
flags=${FLAGS:-}
begun=$(date +%s)
. scripts/gpu-tables.sh
count=$(gpus "$devices")
ranks=${RANKS:-$count}
command -v "$bin" >/dev/null || { echo "$bin is not there: make build" >&2; exit 3; }
can "$ranks"
mkdir -p "$out"
text=$out/composition.txt
: >"$text"
bad=0

# columns FILE: a CSV file for a person.
columns() {
	if command -v column >/dev/null; then column -s, -t "$1"; else cat "$1"; fi
}

# compare NAME AGAINST SCRIPT PARAMETERS...: measures and keeps what it says.
compare() {
	name=$1
	against=$2
	shift 2
	echo "$name" | grep -q -e "$only" || return 0
	left=$((budget - ($(date +%s) - begun)))
	[ "$left" -gt 0 ] || { echo "left out, $budget s are over: $name" | tee -a "$text"; return 0; }
	[ "$left" -le 300 ] || left=300
	echo "== $name: $*" | tee -a "$text"
	# shellcheck disable=SC2086
	if timeout "$left" "$bin" bench --backend cuda --devices "$devices" --graph --against "$against" \
		--sizes "$sizes" --csv $flags "$@" >"$out/composition-$name.csv" 2>"$out/composition.err"; then
		columns "$out/composition-$name.csv" | tee -a "$text"
	else
		echo "failed with exit code $?" | tee -a "$text"
		tee -a "$text" <"$out/composition.err" >&2
		bad=1
	fi
	rm -f "$out/composition.err"
}

# Without NCCL, or with several ranks on a GPU, only the phases are compared.
rivals=nccl,nccl-composed,phases
if ! timeout 60 "$bin" bench --backend cuda --devices "$devices" --graph --against nccl --sizes 1KiB --iterations 1 --quiet \
	@algorithms/allreduce_allpairs.star --ranks "$ranks" >/dev/null 2>"$out/composition.err"; then
	echo "without NCCL: $(head -n 1 "$out/composition.err")" | tee -a "$text" >&2
	rivals=phases
fi
rm -f "$out/composition.err"

for p in $protocols; do
	for i in $instances; do
		compare "allpairs-$i-$p" "$rivals" benchmarks/composition/allpairs.star --ranks "$ranks" --instances "$i" --protocol "$p"
		few=$(((i + 3) / 4))
		for gpus in ${GPUS:-2 4}; do
			beside=$rivals
			[ $((2 * gpus)) -le "$count" ] || beside=phases
			compare "hierarchical-2x$gpus-$few-$p" "$beside" benchmarks/composition/hierarchical.star --nodes 2 --gpus "$gpus" \
				--instances "$few" --protocol "$p"
		done
	done
done
exit $bad
