#!/bin/sh
# scripts/bench-gpu.sh [check|tables|all]: what docs/benchmarks-gpu.md is made of, on
# a machine with GPUs. It needs bin/mscclsh and libmscclsh_cuda.so (make build cuda),
# no Go and no compiler. Results go to $OUT, or to benchmarks/results.
#
#   check   every algorithm of the library, three protocols, several sizes: right?
#   tables  collectives at powers of two, the fastest of several programs, NCCL beside
#
# DEVICES (0,1) are the GPUs, RANKS ("2 4 8") the ranks of check, SIZES
# (1KiB..1GiB) those of the tables, ONLY a pattern for the names of algorithms or
# collectives, so that long runs can be cut into parts. Both end with exit code 1 if
# any output is wrong.
set -eu
cd "$(dirname "$0")/.."
part=${1:-all}
out=${OUT:-benchmarks/results}
devices=${DEVICES:-0,1}
ranks=${RANKS:-2 4 8}
sizes=${SIZES:-1KiB..1GiB}
only=${ONLY:-.}
bin=${MSCCLSH:-bin/mscclsh}
count=$(echo "$devices" | tr ',' '\n' | grep -c .)
mkdir -p "$out"

[ -x "$bin" ] || { echo "$bin is not there: make build" >&2; exit 3; }

machine() {
	"$bin" version
	nvidia-smi --query-gpu=index,name,driver_version,clocks.sm,clocks.max.sm --format=csv 2>/dev/null || true
	nvidia-smi topo -m 2>/dev/null || true
}

# run LIMIT COMMAND...: with a limit in seconds, so that nothing hangs for long.
run() {
	limit=$1
	shift
	timeout "$limit" "$@"
}

# takes SCRIPT PARAMETER: whether the script has it.
takes() { "$bin" "@algorithms/$1.star" --help | grep -q "^  --$2 "; }

check() {
	log=$out/check.log
	: >"$log"
	tried=0
	wrong=0
	for name in $("$bin" algorithms | sed -n 's|^@algorithms/\([a-z0-9_]*\)\.star.*|\1|p' | grep -e "$only"); do
		shapes=$(for n in $ranks; do echo "--ranks=$n"; done)
		takes "$name" nodes && shapes="--nodes=2,--gpus=1 --nodes=2,--gpus=2 --nodes=2,--gpus=4"
		takes "$name" ranks || takes "$name" nodes || shapes=--seed=1
		modes=--seed=1
		takes "$name" inplace && modes="--inplace=true --inplace=false"
		for shape in $shapes; do
			for protocol in Simple LL LL128; do
				for mode in $modes; do
					args="$(echo "$shape" | tr ',' ' ') --protocol=$protocol $mode"
					takes "$name" protocol || args="$(echo "$shape" | tr ',' ' ') $mode"
					tried=$((tried + 1))
					# shellcheck disable=SC2086
					if run 120 "$bin" bench --backend cuda --devices "$devices" --csv --iterations 2 --warmup 1 --launches 2 \
						--target plain --sizes 0,4,12,1020,4KiB,60004,1MiB,4194316 "@algorithms/$name.star" $args \
						>"$out/one.csv" 2>"$out/one.err"; then
						echo "right $name $args" >>"$log"
					else
						wrong=$((wrong + 1))
						{ echo "WRONG $name $args (exit code $?)"; cat "$out/one.err"; } | tee -a "$log"
					fi
				done
			done
		done
	done
	rm -f "$out/one.csv" "$out/one.err"
	echo "check: $tried programs, $wrong of them wrong or failed" | tee -a "$log"
	[ "$wrong" = 0 ]
}

# candidates COLLECTIVE: programs that are worth trying, a script and parameters a
# line; each up to the size where it can't win any more. NCCL runs beside the first,
# which therefore takes all sizes.
candidates() {
	case $1 in
	allreduce)
		for i in 16 32 8; do echo "allreduce_allpairs --protocol=Simple --instances=$i"; done
		for i in 8 16 32; do echo "allreduce_allpairs --protocol=LL128 --instances=$i --max-bytes=64MiB"; done
		for i in 1 4 16; do echo "allreduce_one_step --protocol=LL --instances=$i --max-bytes=1MiB"; done
		for i in 1 4 16 32; do echo "allreduce_one_step --protocol=LL128 --instances=$i --max-bytes=4MiB"; done
		echo "allreduce_ring --protocol=Simple --instances=16"
		;;
	allgather | reduce_scatter | alltoall | sendrecv)
		script=$1_direct
		[ "$1" = sendrecv ] && script=sendrecv
		for i in 32 8; do echo "$script --protocol=Simple --instances=$i"; done
		for i in 8 32; do echo "$script --protocol=LL128 --instances=$i --max-bytes=64MiB"; done
		for i in 1 4; do echo "$script --protocol=LL --instances=$i --max-bytes=1MiB"; done
		;;
	esac
}

# best CSV: the fastest program of each size beside NCCL.
best() {
	awk -F, '
	NR > 1 && $8 != "" && $14 == "" {
		if (!($2 in t)) { order[++n] = $2 }
		if (!($2 in t) || $8 < t[$2]) { t[$2] = $8; who[$2] = $1 }
		if ($15 != "" && $15 > 0) plain[$2] = $15
		if ($17 != "" && $17 > 0) win[$2] = $17
	}
	END {
		for (i = 2; i <= n; i++) for (j = i; j > 1 && order[j - 1] + 0 > order[j] + 0; j--) {
			x = order[j]; order[j] = order[j - 1]; order[j - 1] = x
		}
		printf "%12s %10s %10s %7s %10s %7s  %s\n", "size(B)", "time(us)", "NCCL(us)", "ratio", "windows", "ratio", "program"
		for (i = 1; i <= n; i++) {
			b = order[i]
			a = plain[b] ? plain[b] / t[b] : 0
			w = win[b] ? win[b] / t[b] : 0
			if (a) { sa += log(a); na++ }
			if (a || w) { m = a; if (w && (!a || w < a)) m = w; sm += log(m); nm++ }
			printf "%12d %10.2f %10.2f %7.3f %10.2f %7.3f  %s\n", b, t[b], plain[b], a, win[b], w, who[b]
		}
		if (na) printf "geometric mean of NCCL over ours: %.3f, of the better of its modes: %.3f\n", exp(sa / na), exp(sm / nm)
	}' "$1"
}

# one PARAMETERS: measures a program; $script, $rival and $count are the caller's.
one() {
	# shellcheck disable=SC2086
	run 300 "$bin" bench --backend cuda --devices "$devices" --graph $rival --csv --target plain --sizes "$sizes" \
		"@algorithms/$script.star" --ranks "$count" $1 >"$out/one.csv" 2>"$out/one.err" || echo "exit code $?" >>"$out/one.err"
}

tables() {
	bad=0
	: >"$out/tables.txt"
	machine | tee -a "$out/tables.txt"
	for c in $(printf '%s\n' allreduce allgather reduce_scatter alltoall sendrecv | grep -e "$only"); do
		csv=$out/$c.csv
		rm -f "$csv"
		rival="--against nccl"
		candidates "$c" | while read -r program; do
			mode=" --inplace=false"
			[ "$c" = sendrecv ] && mode=
			script=${program%% *}
			rest=${program#* }
			one "$rest$mode"
			if grep -q 'loading NCCL' "$out/one.err"; then
				echo "without NCCL: $(head -n 1 "$out/one.err")" | tee -a "$out/tables.txt" >&2
				rival=
				one "$rest$mode"
			fi
			if [ -s "$out/one.err" ]; then
				{ echo "$program: failed"; cat "$out/one.err"; } | tee -a "$out/tables.txt" >&2
				echo "$program" >>"$out/bad"
			fi
			# A line is the program's name and what bench prints; NCCL's columns are there once.
			sed -e "s|^bytes,|program,bytes,|; t" -e "s|^|$program,|" "$out/one.csv" >"$out/named.csv"
			if [ -s "$csv" ]; then sed 1d "$out/named.csv" >>"$csv"; else cp "$out/named.csv" "$csv"; fi
			[ ! -s "$out/one.csv" ] || rival=
		done
		[ -s "$csv" ] || continue
		{ echo; echo "$c, $count ranks on GPUs $devices, fp32, out of place, graph, NVLS off:"; best "$csv"; } | tee -a "$out/tables.txt"
	done
	[ ! -e "$out/bad" ] || { bad=1; rm -f "$out/bad"; }
	rm -f "$out/one.csv" "$out/one.err" "$out/named.csv"
	return $bad
}

case $part in
check) check ;;
tables) tables ;;
all)
	check
	tables
	;;
*)
	echo "usage: scripts/bench-gpu.sh [check|tables|all]" >&2
	exit 2
	;;
esac
