#!/bin/sh
# benchmarks/nccl_clients/bench.sh [COLLECTIVE...]: nccl-tests over plain NCCL and over the library,
# in turns, a thread a GPU, fp32 and sums, out of place, sizes from 1 KiB to LARGEST (64M):
#   graph, registered      NCCL without -R and with -R 2, the library with -R 2
#   graph, not registered  NCCL and the library, neither with -R
#   eager, not registered  the same without graphs
# It prints a table a collective, us a call, the median of ROUNDS (3) runs, and the factor that
# the library is faster by; then PASS or FAIL for: registered in a graph, and not registered in
# either, nowhere more than 3 % slower; an eager allreduce of 1 KiB at least 1.2 times as fast.
# Needs what nccl_tests.sh needs. Ends with 1 if a line says FAIL.
set -u
cd "$(dirname "$0")/../.." || exit 3
. benchmarks/nccl_clients/common.sh
find_all
largest=${LARGEST:-64M}
rounds=${ROUNDS:-3}
out=${OUT:-benchmarks/results/nccl_clients}
mkdir -p "$out"
bad=0

# one COLLECTIVE COLUMN WITH FLAGS...: appends COLUMN BYTES US of a run; WITH is plain or ours.
one() {
	c=$1
	column=$2
	with=$3
	shift 3
	[ "$(left)" -gt 0 ] || return 0
	# nccl-tests' graphs hold several launches; its time is of one.
	set -- "$tests/${c}_perf" -t "$gpus" -g 1 -b 1K -e "$largest" -f 4 -d float -n 100 -w 20 -c 0 "$@"
	if [ "$with" = ours ]; then
		ours timeout 60 "$@" >"$out/log" 2>"$out/err"
	else
		timeout 60 "$@" >"$out/log" 2>"$out/err"
	fi
	code=$?
	if [ $code != 0 ]; then
		echo "FAIL $c, $column: exit code $code"
		tail -n 5 "$out/log" "$out/err"
		bad=1
	fi
	# Columns: size count type redop root, then time algbw busbw #wrong out of place, and in place.
	awk -v column="$column" '$1 ~ /^[0-9]+$/ && NF >= 12 { print column, $1, $6 }' "$out/log" >>"$out/$c.raw"
}

# table COLLECTIVE: the medians side by side, and the judgment.
table() {
	sort -k1,1 -k2,2n -k3,3n "$out/$1.raw" | awk -v c="$1" '
	function us(column, bytes,   k, n) {
		k = column " " bytes
		n = count[k]
		return n ? (n % 2 ? value[k, (n + 1) / 2] : (value[k, n / 2] + value[k, n / 2 + 1]) / 2) : 0
	}
	function faster(a, b) { return a > 0 && b > 0 ? sprintf("%.2f", a / b) : "-" }
	# slow notes the worst of a comparison that must not be more than 3 % slower.
	function slow(what, a, b, bytes) {
		if (a <= 0 || b <= 0) return
		judged[what] = 1
		if (b > 1.03 * a && b / a > worst[what]) { worst[what] = b / a; at[what] = bytes }
	}
	{ k = $1 " " $2; value[k, ++count[k]] = $3; if (!($2 in seen)) { seen[$2] = 1; size[++sizes] = $2 } }
	END {
		printf "\n%s, us a call:\n%10s | %10s %10s %10s %7s %7s | %10s %10s %7s | %10s %10s %7s\n", c, "bytes", "graph", "graph -R 2", "ours -R 2", "x", "x -R 2", "graph", "ours", "x", "eager", "ours", "x"
		for (i = 1; i <= sizes; i++) for (j = i + 1; j <= sizes; j++) if (size[j] + 0 < size[i] + 0) { t = size[i]; size[i] = size[j]; size[j] = t }
		for (i = 1; i <= sizes; i++) {
			b = size[i]
			g = us("graph", b); r = us("graph-R", b); ro = us("graph-R-ours", b); go = us("graph-ours", b); e = us("eager", b); eo = us("eager-ours", b)
			printf "%10d | %10.2f %10.2f %10.2f %7s %7s | %10.2f %10.2f %7s | %10.2f %10.2f %7s\n", b, g, r, ro, faster(g, ro), faster(r, ro), g, go, faster(g, go), e, eo, faster(e, eo)
			slow("registered in a graph", r, ro, b)
			slow("not registered in a graph", g, go, b)
			slow("not registered, eager", e, eo, b)
			if (c == "all_reduce" && b == 1024 && e > 0 && eo > 0) printf "%s all_reduce, eager, 1 KiB: %.2f times the speed of NCCL, at least 1.2\n", (e >= 1.2 * eo ? "PASS" : "FAIL"), e / eo
		}
		n = split("registered in a graph/not registered in a graph/not registered, eager", what, "/")
		for (i = 1; i <= n; i++) if (judged[w = what[i]]) if (worst[w]) printf "FAIL %s, %s: %.1f %% slower at %d bytes\n", c, w, 100 * (worst[w] - 1), at[w]; else printf "PASS %s, %s: nowhere more than 3 %% slower\n", c, w
	}'
}

[ $# -gt 0 ] || set -- all_reduce all_gather reduce_scatter alltoall
for c; do
	: >"$out/$c.raw"
	round=0
	while [ $round -lt "$rounds" ]; do
		one "$c" graph plain -G 20
		one "$c" graph-ours ours -G 20
		one "$c" graph-R plain -G 20 -R 2
		one "$c" graph-R-ours ours -G 20 -R 2
		one "$c" eager plain
		one "$c" eager-ours ours
		round=$((round + 1))
	done
	table "$c" | tee "$out/$c.txt"
	grep -q '^FAIL' "$out/$c.txt" && bad=1
done
exit $bad
