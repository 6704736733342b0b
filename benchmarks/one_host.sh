#!/bin/sh
# benchmarks/one_host.sh [PART...]: all collectives on all GPUs of a host in one run of
# minutes, NCCL beside in the same process, multicast off. It needs bin/mscclsh and
# libmscclsh_cuda.so (make build cuda), no Go and no compiler, and builds nothing. The
# parts, in the order of their importance, all of them if none is named:
#
#   check        a program of each collective, and AllReduce with every protocol, values
#                compared on the host; if any is wrong nothing is measured
#   main         the programs that should be the fastest: CUDA graphs, out of place
#   composition  an AllReduce and a hierarchical one of two halves, each one program
#                against its phases, a launch each, and against NCCL's ReduceScatter and
#                AllGather as two calls: benchmarks/composition.sh
#   eager        those that were the fastest, launched one by one
#   more         programs with fewer instances, and what is less likely to be the fastest
#   inplace      those that were the fastest, in place
#
# eager and inplace go by the figures in $OUT, so they can be had from a later call too.
# Two halves of the host are taken for two nodes by the hierarchical AllReduce, the two-step
# AllToAll and AllToNext. Results go to $OUT (benchmarks/results/one_host): one_host.txt, a
# CSV file a collective, and best.tsv, the best program per size as a table:
#
#   collective, ranks, "in" or "out" of place, bytes from, bytes to, script, parameters
#
# with bytes as nccl-tests counts them. A range begins at a size that was measured and ends
# before the next; the last one ends at the largest size.
#
# DEVICES (all there are) are the GPUs, RANKS (as many) the ranks: with more of them each GPU
# runs several, and there is no NCCL to compare with. SMALLEST, LARGEST and STEP (1KiB, 1GiB,
# 4) are the sizes, ONLY a pattern for the names of collectives, DTYPE (fp32) the type, MOST
# (64) the instances at most, FLAGS more flags of mscclsh bench. No program begins that would
# not end within BUDGET (480) seconds by the longest one so far: what is left out is said.
# Ends with exit code 1 if an output is wrong or a program fails.
set -u
cd "$(dirname "$0")/.." || exit 2
out=${OUT:-benchmarks/results/one_host}
smallest=${SMALLEST:-1KiB}
largest=${LARGEST:-1GiB}
step=${STEP:-4}
only=${ONLY:-.}
dtype=${DTYPE:-fp32}
most=${MOST:-64}
flags=${FLAGS:-}
budget=${BUDGET:-480}
bin=${MSCCLSH:-bin/mscclsh}
begun=$(date +%s)
longest=0
bad=0
. scripts/gpu-tables.sh

usage() {
	echo "usage: benchmarks/one_host.sh [check|main|composition|eager|more|inplace]..." >&2
	exit 2
}
for p in "$@"; do
	case $p in check | main | composition | eager | more | inplace) ;; *) usage ;; esac
done
command -v "$bin" >/dev/null || { echo "$bin is not there: make build" >&2; exit 3; }

devices=${DEVICES:-${CUDA_VISIBLE_DEVICES:+0-$(($(gpus "$CUDA_VISIBLE_DEVICES") - 1))}}
if [ -z "$devices" ]; then
	count=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')
	[ "$count" -gt 0 ] || { echo "nvidia-smi finds no GPU: name those to use in DEVICES, such as 0-3" >&2; exit 3; }
	devices=0-$((count - 1))
fi
count=$(gpus "$devices")
ranks=${RANKS:-$count}
half=$((ranks / 2))
each=$(((ranks + count - 1) / count)) # ranks of a GPU
[ "$count" -gt 0 ] && [ "$ranks" -ge "$count" ] || { echo "RANKS=$ranks DEVICES=$devices: want at least a rank for each GPU" >&2; exit 2; }
can "$ranks"
mkdir -p "$out" || exit 3
text=$out/one_host.txt
list=$out/one_host.list

say() { echo "$*" | tee -a "$text"; }
left() { echo $((budget - ($(date +%s) - begun))); }
wanted() { echo "$1" | grep -q -e "$only"; }

# instances BLOCKS N: as many as a GPU has room for, if each needs so many thread blocks a
# rank and 128 are to be had; N at most.
instances() {
	i=$((128 / ($1 * each)))
	for bound in "$2" "$most"; do [ "$i" -le "$bound" ] || i=$bound; done
	[ "$i" -ge 1 ] || i=1
	echo "$i"
}

# candidate COLLECTIVE FROM TO SCRIPT BLOCKS INSTANCES PARAMETERS...: a line of a list of
# programs, for sizes from and to.
candidate() {
	c=$1 from=$2 to=$3 script=$4 i=$(instances "$5" "$6")
	shift 6
	case $script in
	allreduce_hierarchical | alltoall_two_step | alltonext)
		[ $((ranks % 2)) = 0 ] || return 0
		set -- --nodes=2 --gpus=$half "$@"
		;;
	*) set -- --ranks="$ranks" "$@" ;;
	esac
	wanted "$c" && echo "$c $from $to $script --instances=$i $*"
}

# programs: those of main. The first of a collective is for all sizes: NCCL runs beside it.
programs() {
	small=$((16777216 / ranks)) # where sending everything everywhere stops being cheap
	candidate allreduce 0 1GiB allreduce_allpairs "$ranks" 64 --protocol=Direct
	candidate allreduce 0 16KiB allreduce_one_step 1 1 --protocol=LL
	candidate allreduce 0 256KiB allreduce_one_step 1 8 --protocol=LL128
	candidate allreduce 0 1MiB allreduce_allpairs 1 16 --protocol=LL
	candidate allreduce 4KiB $small allreduce_one_step 1 64 --protocol=LL128
	candidate allreduce 64KiB 16MiB allreduce_allpairs 1 64 --protocol=LL128
	candidate allreduce 256KiB 1GiB allreduce_ring 4 8 --channels=4 --protocol=Simple
	candidate allreduce 4MiB 1GiB allreduce_ring 1 32 --protocol=Simple
	candidate allreduce 4MiB 1GiB allreduce_ring 4 64 --protocol=Direct
	candidate allreduce 1MiB 1GiB allreduce_hierarchical 5 64 --protocol=Direct
	candidate allreduce 0 16MiB allreduce_hierarchical 2 16 --protocol=LL128
	for c in allgather:2 reduce_scatter:1 alltoall:$((ranks - 1)); do
		few=${c#*:} c=${c%:*} # blocks of an instance whose thread blocks have several peers
		candidate "$c" 0 1GiB "${c}_direct" "$ranks" 64 --protocol=Direct
		candidate "$c" 0 64KiB "${c}_direct" "$few" 1 --protocol=LL
		candidate "$c" 0 16MiB "${c}_direct" "$few" 32 --protocol=LL128
	done
	candidate alltoall 0 16MiB alltoall_two_step $((half + 1)) 16 --protocol=LL128
	candidate alltoall 1MiB 1GiB alltoall_two_step $((half + 1)) 64 --protocol=Direct
	candidate alltonext 0 1GiB alltonext $((half + 1)) 64 --protocol=Direct
	candidate alltonext 0 16MiB alltonext $((half + 1)) 32 --protocol=LL128
}

# others: those of more.
others() {
	candidate allreduce 0 64KiB allreduce_one_step 1 4 --protocol=LL
	candidate allreduce 16KiB 4MiB allreduce_allpairs 1 32 --protocol=LL128
	candidate allreduce 64KiB 16MiB allreduce_ring 4 8 --channels=4 --protocol=LL128
	candidate allreduce 4MiB 1GiB allreduce_ring 1 16 --protocol=Simple
	candidate allreduce 256KiB 1GiB allreduce_allpairs $((2 * ranks)) 64 --protocol=Direct
	candidate allreduce 4MiB 1GiB allreduce_hierarchical 2 32 --protocol=Simple
	[ $((ranks & (ranks - 1))) != 0 ] || candidate allreduce 4KiB 16MiB allreduce_halving_doubling 3 16 --protocol=LL128
	for c in allgather reduce_scatter alltoall; do
		candidate "$c" 1MiB 1GiB "${c}_direct" $((2 * ranks)) 64 --protocol=Direct
		candidate "$c" 0 1MiB "${c}_direct" $((ranks - 1)) 4 --protocol=LL128
	done
	candidate allgather 16MiB 1GiB allgather_ring 1 32 --protocol=Simple
	candidate reduce_scatter 16MiB 1GiB reduce_scatter_ring 1 32 --protocol=Simple
	candidate alltonext 0 64KiB alltonext $((half + 1)) 1 --protocol=LL
	candidate alltonext 4MiB 1GiB alltonext $((half + 1)) 32 --protocol=Simple
}

# sizes FROM TO: those measured of them, as a list for bench; none if that is empty.
sizes() {
	lo=$(bytes "$smallest")
	while [ "$lo" -lt "$(bytes "$1")" ]; do lo=$((lo * step)); done
	hi=$(bytes "$2")
	[ "$hi" -le "$(bytes "$largest")" ] || hi=$(bytes "$largest")
	[ "$lo" -gt "$hi" ] || echo "$lo..$hi:$step"
}

# bench NAME FLAGS... : bench within the time that is left, to one.csv and one.err. It tells
# what came of it: 0 done, 1 failed (said and noted), 2 not run or of no use.
bench() {
	name=$1
	shift
	time=$(left)
	if [ "$time" -le "$longest" ]; then
		say "left out, $time s are left and one took $longest: $name"
		return 2
	fi
	[ "$time" -le 120 ] || time=120
	start=$(date +%s)
	# shellcheck disable=SC2086
	timeout "$time" "$bin" bench --backend cuda --devices "$devices" --dtype "$dtype" --csv $flags "$@" >"$out/one.csv" 2>"$out/one.err" &
	child=$!
	wait "$child"
	code=$?
	child=
	took=$(($(date +%s) - start + 1))
	[ "$took" -le "$longest" ] || longest=$took
	[ "$code" != 0 ] || return 0
	if [ "$code" = 124 ] && [ "$time" -lt 120 ]; then
		say "left out, not done in the $time s that were left: $name"
		return 2
	fi
	if grep -q 'thread blocks .* at once, but .* fit' "$out/one.err"; then
		say "left out: $name: $(head -n 1 "$out/one.err")"
		return 2
	fi
	say "failed with exit code $code after $took s: $name"
	tee -a "$text" <"$out/one.err" >&2
	bad=1
	return 1
}

# place SCRIPT WHERE: the parameter for in or out, which not all scripts have.
place() {
	[ "$1" = alltoall_two_step ] || echo "--inplace=$([ "$2" = in ] && echo true || echo false)"
}

# measure WHERE MODE: measures each candidate of $list, into a table a collective.
measure() {
	where=$1 mode=$2
	graph=
	[ "$mode" = eager ] || graph=--graph
	while read -r c from to script rest <&3; do
		range=$(sizes "$from" "$to")
		[ -n "$range" ] || continue
		table=$out/$c-$where-$mode.csv
		grep -q -s -e "^$script $rest," "$table" && continue
		rival=
		# NCCL's columns are there once.
		head -n 1 "$table" 2>/dev/null | grep -q NCCL || rival=$nccl
		# shellcheck disable=SC2046,SC2086
		bench "$mode, $where: $script $rest" $graph $rival --verify device --sizes "$range" "@algorithms/$script.star" $rest $(place "$script" "$where")
		case $? in
		0 | 1) [ ! -s "$out/one.csv" ] || named "$script $rest" "$table" "$out/one.csv" ;;
		esac
	done 3<"$list"
}

# fastest CSV: the programs that were the fastest at some size, as candidates, that of the
# largest size first and for all sizes, as NCCL runs beside it.
fastest() {
	c=$(basename "$1" -out-graph.csv)
	best "$1" | awk -v c="$c" -v most="$largest" '
	$1 ~ /^[0-9]+$/ {
		who = $7
		for (i = 8; i <= NF; i++) who = who " " $i
		if (!(who in from)) { from[who] = $1; order[++n] = who }
		to[who] = $1
		last = who
	}
	END {
		if (n) print c, 0, most, last
		for (i = 1; i <= n; i++) if (order[i] != last) print c, from[order[i]], to[order[i]], order[i]
	}'
}

# again COLLECTIVES: candidates that were the fastest out of place with graphs.
again() {
	for c in $1; do
		[ ! -s "$out/$c-out-graph.csv" ] || fastest "$out/$c-out-graph.csv"
	done
}

# ranges WHERE CSV: lines of best.tsv.
ranges() {
	c=$(basename "$2" "-$1-graph.csv")
	best "$2" | awk -v c="$c" -v ranks="$ranks" -v place="$1" '
	function line(to) { printf "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", c, ranks, place, from, to, script, rest }
	$1 ~ /^[0-9]+$/ {
		who = ""
		# Ranks have a column of their own.
		for (i = 8; i <= NF; i++) if ($i !~ /^--ranks=/) who = who (who == "" ? "" : " ") $i
		if (n++ && ($7 != script || who != rest)) line($1 - 1)
		if (n == 1 || $7 != script || who != rest) from = $1
		script = $7; rest = who; last = $1
	}
	END { if (n) line(last) }'
}

check() {
	hi=$(bytes "$largest")
	[ "$hi" -le 1048576 ] || hi=1048576
	programs | awk '{ p = $0; sub(/.*--protocol=/, "", p); sub(/ .*/, "", p) } !seen[$1 ($1 == "allreduce" ? p : "")]++' >"$list"
	while read -r c from to script rest <&3; do
		# shellcheck disable=SC2046,SC2086
		bench "check: $script $rest" --verify host --iterations 1 --warmup 1 --launches 2 --sizes "$(bytes "$smallest"),$hi" \
			"@algorithms/$script.star" $rest $(place "$script" out)
	done 3<"$list"
	[ "$bad" = 0 ] || { say "check: not right, so nothing is measured"; finish; }
	say "check: right after $(($(date +%s) - begun)) s"
}

# rivals finds out whether NCCL can run beside; it is told once why not.
rivals() {
	nccl=
	if [ "$ranks" -gt "$count" ]; then
		say "without NCCL: it takes one rank a GPU: $ranks ranks, $count GPUs"
	elif timeout 60 "$bin" bench --backend cuda --devices "$devices" --against nccl --sizes 1KiB --iterations 1 --quiet \
		@algorithms/allreduce_ring.star --ranks "$ranks" >/dev/null 2>"$out/one.err"; then
		nccl='--against nccl'
	elif grep -q 'loading NCCL' "$out/one.err"; then
		say "without NCCL: $(head -n 1 "$out/one.err")"
	else
		say "NCCL failed beside a ring AllReduce: $(head -n 1 "$out/one.err")"
		bad=1
	fi
}

composition() {
	wanted allreduce || return 0
	[ $((ranks % 2)) = 0 ] || return 0
	# Halves of one GPU would have nothing to do inside.
	inner=$half
	[ "$inner" -ge 2 ] || inner=2
	time=$(left)
	[ "$time" -gt "$longest" ] || { say "left out, $time s are left: composition"; return 0; }
	[ "$time" -le 100 ] || time=100
	hi=$(bytes "$largest")
	[ "$hi" -le 268435456 ] || hi=268435456
	OUT=$out DEVICES=$devices RANKS=$ranks GPUS=$inner MSCCLSH=$bin BUDGET=$time SIZES="$(bytes "$smallest")..$hi:$((step * step))" \
		PROTOCOLS=${PROTOCOLS:-LL128 Direct} INSTANCES=$(instances "$ranks" 16) FLAGS=$flags benchmarks/composition.sh || bad=1
}

# finish prints the tables of what was measured.
finish() {
	trap - INT TERM
	: >"$out/best.tsv"
	for mode in out-graph out-eager in-graph; do
		for c in allreduce allgather reduce_scatter alltoall alltonext; do
			csv=$out/$c-$mode.csv
			[ -s "$csv" ] || continue
			say
			where=$([ "${mode%-*}" = in ] && echo in place || echo out of place)
			say "$c, $ranks ranks on GPUs $devices, $dtype, $where, ${mode#*-}, NVLS off:"
			best "$csv" | tee -a "$text"
			case $mode in *-graph) ranges "${mode%-graph}" "$csv" >>"$out/best.tsv" ;; esac
		done
	done
	[ -s "$out/best.tsv" ] || rm -f "$out/best.tsv"
	say
	say "$(($(date +%s) - begun)) s of $budget"
	rm -f "$out/one.csv" "$out/one.err" "$list"
	exit $bad
}

: >"$text"
machine | tee -a "$text"
child=
trap '[ -z "$child" ] || kill "$child"; say "ended from outside"; bad=1; finish' INT TERM
rivals
[ $# -gt 0 ] || set -- check main composition eager more inplace
for p in "$@"; do
	case $p in
	main) # what was measured before of its programs would not fit its figures
		rm -f "$out"/*-out-graph.csv "$out"/*-out-eager.csv "$out"/*-in-graph.csv
		programs >"$list"
		measure out graph
		;;
	more)
		others >"$list"
		measure out graph
		;;
	eager)
		rm -f "$out"/*-out-eager.csv
		again "allreduce allgather reduce_scatter alltoall alltonext" >"$list"
		measure out eager
		;;
	inplace)
		rm -f "$out"/*-in-graph.csv
		again "allreduce allgather reduce_scatter" >"$list"
		measure in graph
		;;
	*) $p ;;
	esac
done
finish
