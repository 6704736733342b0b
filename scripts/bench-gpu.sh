#!/bin/sh
# scripts/bench-gpu.sh [tables|yardsticks|composition|onesided|rivals|all]: what docs/benchmarks-gpu.md is
# made of, on a machine with GPUs. It needs bin/mscclsh and libmscclsh_cuda.so (make build
# cuda), no Go and no compiler. Results go to $OUT, or to benchmarks/results.
#
#   tables       collectives at powers of two, the fastest of several programs, NCCL beside
#   yardsticks   kernels written by hand for the same (make yardsticks), on two GPUs
#   composition  one program against several launches: benchmarks/composition.sh
#   onesided     programs of puts, signals and packets beside the programs of sends and receives
#                of the same algorithm, to onesided.csv and onesided.txt: packets beside LL,
#                zero copy beside Direct; and plans of others, if PLANS names a folder of them
#   rivals       libraries with NCCL's interface, a process a GPU (make yardsticks): NCCL, of
#                MSCCLSH_NCCL_LIB if that is set, and MSCCL++'s, if MSCCLPP_NCCL names its
#                libmscclpp_nccl.so; to rivals.csv. It needs no bin/mscclsh
#
# DEVICES (0,1) are the GPUs, SMALLEST and LARGEST (1KiB, 1GiB) bound the sizes, ONLY is a
# pattern for the names of collectives, so that long runs can be cut into parts; EAGER=1
# starts the tables' launches one by one, without a graph, and DTYPE (fp32) is their
# type. Ends with exit code 1 if any output is wrong. Whether the library is right everywhere is what
# scripts/gpu-test.sh says.
set -eu
cd "$(dirname "$0")/.."
part=${1:-all}
out=${OUT:-benchmarks/results}
devices=${DEVICES:-0,1}
smallest=${SMALLEST:-1KiB}
largest=${LARGEST:-1GiB}
only=${ONLY:-.}
dtype=${DTYPE:-fp32}
graph=--graph
[ -z "${EAGER:-}" ] || graph=
bin=${MSCCLSH:-bin/mscclsh}
. scripts/gpu-tables.sh
count=$(gpus "$devices")
mkdir -p "$out"

[ "$part" = rivals ] || [ -x "$bin" ] || { echo "$bin is not there: make build" >&2; exit 3; }

# run LIMIT COMMAND...: with a limit in seconds, so that nothing hangs for long.
run() {
	limit=$1
	shift
	timeout "$limit" "$@"
}

# candidates COLLECTIVE: programs that are worth trying: a script, the largest size at
# which it can win, and parameters, one a line. NCCL runs beside the first, which takes all
# sizes.
candidates() {
	case $1 in
	allreduce)
		for i in 64 32; do echo "allreduce_allpairs 1GiB --protocol=Direct --instances=$i"; done
		for i in 64 32 16; do echo "allreduce_one_step 8MiB --protocol=LL128 --instances=$i"; done
		for i in 1 2 4 8; do echo "allreduce_one_step 128KiB --protocol=LL128 --instances=$i"; done
		echo "allreduce_one_step 16KiB --protocol=LL --instances=1"
		[ "$count" -gt 2 ] || return 0
		for i in 32 16; do echo "allreduce_allpairs 16MiB --protocol=LL128 --instances=$i"; done
		for i in 16 8; do echo "allreduce_ring 1GiB --protocol=Simple --instances=$i"; done
		;;
	allgather | reduce_scatter | alltoall | sendrecv)
		script=$1_direct
		[ "$1" = sendrecv ] && script=sendrecv
		for i in 32 64 16; do echo "$script 1GiB --protocol=Direct --instances=$i"; done
		for i in 32 16; do echo "$script 8MiB --protocol=LL128 --instances=$i"; done
		for i in 1 4 8; do echo "$script 128KiB --protocol=LL128 --instances=$i"; done
		echo "$script 16KiB --protocol=LL --instances=1"
		;;
	esac
}

# one LARGEST PARAMETERS: measures a program; $script, $rival and $count are the caller's.
one() {
	most=$1
	[ "$(bytes "$most")" -lt "$(bytes "$largest")" ] || most=$largest
	[ "$(bytes "$smallest")" -le "$(bytes "$most")" ] || return 0
	# shellcheck disable=SC2086
	run 300 "$bin" bench --backend cuda --devices "$devices" $graph --dtype "$dtype" $rival --csv --sizes "$smallest..$most" \
		"@algorithms/$script.star" --ranks "$count" $2 >"$out/one.csv" 2>"$out/one.err" || echo "exit code $?" >>"$out/one.err"
}

tables() {
	can "$count"
	bad=0
	: >"$out/tables.txt"
	machine | tee -a "$out/tables.txt"
	for c in $(printf '%s\n' allreduce allgather reduce_scatter alltoall sendrecv | grep -e "$only"); do
		csv=$out/$c.csv
		new=$out/$c.new
		rm -f "$new"
		rival="--against nccl"
		candidates "$c" | while read -r program; do
			mode=" --inplace=false"
			[ "$c" = sendrecv ] && mode=
			script=${program%% *}
			rest=${program#* }
			upto=${rest%% *}
			rest=${rest#* }
			: >"$out/one.csv"
			: >"$out/one.err"
			one "$upto" "$rest$mode"
			if grep -q 'loading NCCL' "$out/one.err"; then
				echo "without NCCL: $(head -n 1 "$out/one.err")" | tee -a "$out/tables.txt" >&2
				rival=
				one "$upto" "$rest$mode"
			fi
			if [ -s "$out/one.err" ]; then
				{ echo "$program: failed"; cat "$out/one.err"; } | tee -a "$out/tables.txt" >&2
				echo "$program" >>"$out/bad"
			fi
			# NCCL's columns are there once.
			named "$script $rest" "$new" "$out/one.csv"
			[ ! -s "$out/one.csv" ] || rival=
		done
		[ -s "$new" ] || continue
		mv "$new" "$csv"
		{ echo; echo "$c, $count ranks on GPUs $devices, $dtype, out of place, ${graph:+graph, }NVLS off:"; best "$csv"; } | tee -a "$out/tables.txt"
	done
	[ ! -e "$out/bad" ] || { bad=1; rm -f "$out/bad"; }
	rm -f "$out"/*.new "$out/one.csv" "$out/one.err"
	return $bad
}

yardsticks() {
	yard=${YARDSTICKS:-benchmarks/yardsticks/build}
	[ -x "$yard/allreduce" ] || { echo "$yard/allreduce is not there: make yardsticks" >&2; return 3; }
	run 120 "$yard/probe" >"$out/probe.csv"
	run 280 "$yard/allreduce" >"$out/yardsticks.csv"
}

# nccl: where NCCL is, looked for as mscclsh does.
nccl() {
	if [ -n "${MSCCLSH_NCCL_LIB:-}" ]; then
		echo "$MSCCLSH_NCCL_LIB"
	elif ldconfig -p 2>/dev/null | grep -q 'libnccl\.so\.2'; then
		echo libnccl.so.2
	else
		python3 -c 'import os, sys
paths = [os.path.join(p, "nvidia", "nccl", "lib", "libnccl.so.2") for p in sys.path]
print(next((p for p in paths if os.path.exists(p)), "libnccl.so.2"))' 2>/dev/null || echo libnccl.so.2
	fi
}

# rival NAME LIBRARY COLLECTIVE PLACE BUFFERS: a library's rows, with a name for each.
rival() {
	flag=
	[ "$4" = out ] || flag=--in-place
	# shellcheck disable=SC2086
	run 280 "$yard/nccl_api" --library "$2" --collective "$3" $flag --buffers "$5" --devices "$devices" \
		--min "$(bytes "$smallest")" --max "$(bytes "$largest")" >"$out/one.csv" || bad=1
	sed -e 1d -e "s|^|$1,$3,$4,$5,|" "$out/one.csv" >>"$out/rivals.csv"
	rm -f "$out/one.csv"
}

# beside CSV: the libraries of every collective, one size a line.
beside() {
	awk -F, '
	NR == 1 { next }
	{
		table = $2 ", " ($3 == "in" ? "in place" : "out of place")
		column = $1 ($4 == "plain" ? "" : " " $4)
		if (!((table) in tables)) { tables[table] = ++n; name[n] = table }
		t = tables[table]
		if (!((t, column) in columns)) { columns[t, column] = ++width[t]; head[t, width[t]] = column }
		if (!((t, $5) in sizes)) { sizes[t, $5] = ++height[t]; size[t, height[t]] = $5 }
		us[t, $5, column] = $9 == "yes" ? $6 : $9 == "no" ? "WRONG" : $9
	}
	END {
		for (t = 1; t <= n; t++) {
			printf "\n%s, us:\n%12s", name[t], "size(B)"
			for (c = 1; c <= width[t]; c++) printf " %16s", head[t, c]
			print ""
			for (i = 1; i <= height[t]; i++) {
				printf "%12d", size[t, i]
				for (c = 1; c <= width[t]; c++) printf " %16s", us[t, size[t, i], head[t, c]]
				print ""
			}
		}
	}' "$1"
}

# pairs: a script, the parameters of the program of sends and receives, and after ; those of the
# one that becomes one-sided, or the script of puts and packets (@) and its own, one a line.
pairs() {
	for i in 1 4 16; do echo "allreduce_one_step --protocol=LL --instances=$i;--protocol=LL --instances=$i"; done
	for i in 1 8 32; do echo "allreduce_allpairs --protocol=LL --instances=$i;--protocol=LL --instances=$i"; done
	for s in allreduce_allpairs allgather_direct reduce_scatter_direct alltoall_direct; do
		for i in 8 32; do echo "$s --protocol=Direct --instances=$i;--protocol=Simple --instances=$i"; done
	done
	for i in 1 4 16; do echo "allreduce_one_step --protocol=LL --instances=$i;@onesided_allreduce_one_shot --instances=$i"; done
	for i in 1 8 32; do echo "allreduce_allpairs --protocol=LL --instances=$i;@onesided_allreduce_two_shot --instances=$i"; done
	for i in 8 32 64; do echo "allreduce_allpairs --protocol=Direct --instances=$i;@onesided_allreduce_zero_copy --instances=$i"; done
	for i in 8 32; do
		echo "allgather_direct --protocol=Direct --instances=$i;@onesided_allgather_fullmesh --instances=$i"
		echo "alltoall_direct --protocol=Direct --instances=$i --inplace=false;@onesided_alltoall --instances=$i --inplace=false"
	done
}

# column NAME FILE ARGS...: adds what bench says of a program to onesided.csv.
column() {
	name=$1
	file=$2
	shift 2
	if run 300 "$bin" bench --backend cuda --devices "$devices" $graph --dtype "$dtype" --csv --sizes "$smallest..$largest" \
		"$file" "$@" >"$out/one.csv" 2>"$out/one.err"; then
		named "$name" "$out/onesided.new" "$out/one.csv"
	else
		{ echo "$name: failed"; cat "$out/one.err"; } | tee -a "$out/onesided.txt" >&2
		bad=1
	fi
}

# ratios CSV: the programs of each pair side by side.
ratios() {
	awk -F, '
	NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
	$at["skipped"] == "" && $at["median_us"] != "" {
		split($1, part, "; ")
		key = part[1] SUBSEP $at["bytes"]
		us = $at["wrong"] == 0 ? $at["median_us"] : "WRONG"
		if (part[2] == "two-sided") { two[key] = us; order[++n] = key } else if (part[2] == "one-sided") one[key] = us
		else printf "%-44s %12d %21s %10s\n", part[1], $at["bytes"], "plan", us
	}
	END {
		printf "%-44s %12s %10s %10s %7s\n", "program", "size(B)", "two(us)", "one(us)", "ratio"
		for (i = 1; i <= n; i++) {
			split(order[i], part, SUBSEP)
			a = two[order[i]]; b = one[order[i]]
			r = a + 0 > 0 && b + 0 > 0 ? b / a : 0
			if (r) { sum += log(r); m++; if (r > worst) { worst = r; where = part[1] " at " part[2] } }
			printf "%-44s %12d %10s %10s %7.3f\n", part[1], part[2], a, b, r
		}
		if (m) printf "geometric mean of one-sided over two-sided: %.3f, most %.3f, %s\n", exp(sum / m), worst, where
	}' "$1"
}

onesided() {
	can "$count"
	bad=0
	rm -f "$out/onesided.new"
	{ machine; echo; } >"$out/onesided.txt"
	pairs | grep -e "$only" >"$out/pairs"
	while read -r script rest; do
		two=${rest%;*}
		one=${rest#*;}
		case $one in
		@*)
			other=${one#@}
			# shellcheck disable=SC2086
			column "${other%% *} beside $script $two; two-sided" "@algorithms/$script.star" --ranks "$count" $two
			# shellcheck disable=SC2086
			column "${other%% *} beside $script $two; one-sided" "@algorithms/${other%% *}.star" --ranks "$count" ${other#* }
			continue
			;;
		esac
		# shellcheck disable=SC2086
		"$bin" --emit plan -o "$out/one.json" "@algorithms/$script.star" --ranks "$count" $one >/dev/null 2>"$out/one.err" || {
			{ echo "$script $one: no plan"; cat "$out/one.err"; } | tee -a "$out/onesided.txt" >&2
			bad=1
			continue
		}
		# shellcheck disable=SC2086
		column "$script $two; two-sided" "@algorithms/$script.star" --ranks "$count" $two
		column "$script $two; one-sided" "$out/one.json"
	done <"$out/pairs"
	for f in "${PLANS:-/nowhere}"/*.json; do
		[ ! -e "$f" ] || column "$(basename "$f" .json); plan" "$f"
	done
	[ ! -s "$out/onesided.new" ] || mv "$out/onesided.new" "$out/onesided.csv"
	[ ! -s "$out/onesided.csv" ] || ratios "$out/onesided.csv" | tee -a "$out/onesided.txt"
	rm -f "$out/one.csv" "$out/one.csv.named" "$out/one.err" "$out/one.json" "$out/pairs"
	return $bad
}

rivals() {
	yard=${YARDSTICKS:-benchmarks/yardsticks/build}
	[ -x "$yard/nccl_api" ] || { echo "$yard/nccl_api is not there: make yardsticks" >&2; return 3; }
	bad=0
	lib=$(nccl)
	# MSCCL++ keeps its connections only if it is told that all ranks use their buffers alike.
	export MSCCLPP_NCCL_SYMMETRIC_MEMORY=1 MSCCLPP_LOG_LEVEL="${MSCCLPP_LOG_LEVEL:-WARN}"
	# With NCCL behind it, it would hand on what it has kernels for.
	unset MSCCLPP_NCCL_LIB_PATH
	echo "library,collective,place,buffers,bytes,median_us,min_us,max_us,ok" >"$out/rivals.csv"
	for c in $(printf '%s\n' allreduce allgather reduce_scatter | grep -e "$only"); do
		for place in in out; do
			rival NCCL "$lib" "$c" $place plain
			rival NCCL "$lib" "$c" $place windows
			# It has no reduce-scatter of its own: it would be NCCL's.
			[ -z "${MSCCLPP_NCCL:-}" ] || [ "$c" = reduce_scatter ] || rival MSCCL++ "$MSCCLPP_NCCL" "$c" $place plain
		done
	done
	beside "$out/rivals.csv" | tee "$out/rivals.txt"
	return $bad
}

composition() { OUT=$out DEVICES=$devices MSCCLSH=$bin benchmarks/composition.sh; }

case $part in
tables | yardsticks | composition | onesided | rivals) $part ;;
all)
	tables
	[ ! -x "${YARDSTICKS:-benchmarks/yardsticks/build}/allreduce" ] || yardsticks
	composition
	onesided
	# NCCL alone is in the tables.
	[ -z "${MSCCLPP_NCCL:-}" ] || rivals
	;;
*)
	echo "usage: scripts/bench-gpu.sh [tables|yardsticks|composition|onesided|rivals|all]" >&2
	exit 2
	;;
esac
