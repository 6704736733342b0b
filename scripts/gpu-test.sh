#!/bin/sh
# scripts/gpu-test.sh [PART...]: checks values on a machine with GPUs. It needs
# bin/cuda.test and libmscclsh_cuda.so beside it or in the tree, and bin/mscclsh for one part
# (make gpu-test builds all), no Go and no compiler.
#
#   watchdog  programs that must hang: the watchdog ends and explains them
#   wrong     programs that make mistakes: they are found
#   mixed     10,000 launches back to back, of mixed programs, on one communicator
#   two       two communicators at once on the same GPUs, each on its own streams
#   wrapped   numbers of messages that come round to the same flags
#   replay    graphs replayed 1,000 times with inputs that change
#   onesided  programs of puts, signals, packets and ports: every operation, the library's
#             algorithms, what must hang; then 10,000 launches mixed with sends and receives,
#             and graphs replayed 1,000 times
#   one_host  benchmarks/one_host.sh in brief, to 1 MiB, with a rank and with four a GPU; it
#             needs bin/mscclsh too (make build) and is said to be left out without
#   cover     every two of all settings together, sizes to 1 GiB
#   large     buffers and chunks of more than 4 GiB
#   product   everything with everything, sizes to 64 KiB
#   sanitize  compute-sanitizer's memcheck, racecheck and synccheck on a spread
#
# Without a part it runs all but sanitize, in this order. No case begins once BUDGET
# seconds (150) are over; cases that were right are noted in STATE
# (benchmarks/results/gpu-test) and left out the next time, so that calling it again
# goes on. A new library wants a new STATE: its name has the library's checksum.
#
# DEVICES (0,1; sanitize: 0) are the GPUs, ONLY a part of the names of cases, FLAGS more
# flags of cuda.test, such as "-fp32sum" for a library without other kernels. A line
# each tells what came of the parts; exit code 1 if anything was wrong.
set -u
cd "$(dirname "$0")/.." || exit 2
bin=${CUDA_TEST:-bin/cuda.test}
budget=${BUDGET:-150}
devices=${DEVICES:-}
only=${ONLY:-}
flags=${FLAGS:-}
begun=$(date +%s)
bad=0
. scripts/gpu-tables.sh

lib=${MSCCLSH_CUDA_LIB:-}
for f in bin/libmscclsh_cuda.so runtime/cuda/lib/build/libmscclsh_cuda.so; do
	[ -n "$lib" ] || [ ! -e "$f" ] || lib=$f
done
[ -x "$bin" ] || { echo "$bin is not there: make gpu-test" >&2; exit 3; }
[ -n "$lib" ] && [ -e "$lib" ] || { echo "libmscclsh_cuda.so is not there: make cuda" >&2; exit 3; }
# cuda.test runs where it is told to, but finds the library by this name anywhere.
case $lib in /*) ;; *) lib=$PWD/$lib ;; esac
export MSCCLSH_CUDA_LIB="$lib"
state=${STATE:-benchmarks/results/gpu-test}/$(cksum <"$lib" | cut -d ' ' -f 1)

left() { echo $((budget - ($(date +%s) - begun))); }

# part NAME TEST [COMMAND...]: runs a test, under a command if one is given, and prints
# its line, and what failed.
part() {
	name=$1
	test=$2
	shift 2
	time=$(left)
	if [ "$time" -le 0 ]; then
		echo "gpu-test: $name: not begun, $budget s are over"
		return
	fi
	out=$(mktemp)
	# A case that has begun gets time to end.
	# shellcheck disable=SC2086
	timeout $((time + 120)) "$@" "$bin" -test.run "^$test\$" -test.v -test.timeout $((time + 110))s -budget "${time}s" \
		${devices:+-devices "$devices"} ${only:+-only "$only"} ${keep:+-state "$keep"} $flags >"$out" 2>&1
	code=$?
	if [ "$code" = 0 ]; then
		grep -e '^gpu-test:' -e "--- SKIP" -B1 "$out" | grep -v -e '^--$' -e '^===' -e '^---.*PASS' -e '^PASS'
	else
		grep -v -e '^===' "$out" | tail -n 60
		echo "gpu-test: $name: FAILED (exit code $code)"
		bad=1
	fi
	rm -f "$out"
}

sanitize() {
	tool=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer /usr/local/cuda*/compute-sanitizer/compute-sanitizer 2>/dev/null | head -n 1)
	if [ -z "$tool" ]; then
		echo "gpu-test: sanitize: compute-sanitizer is neither on PATH nor in /usr/local/cuda: install the CUDA toolkit" >&2
		exit 3
	fi
	# It runs one kernel at a time, so ranks must be blocks of one launch.
	devices=${devices:-0}
	keep=
	for check in memcheck racecheck synccheck; do
		part "sanitize $check" 'TestGPU(One)?Spread' "$tool" --tool "$check" --error-exitcode 9 --print-limit 10
	done
}

# one_host checks that the script which measures all GPUs of a host ends, in time and
# with right values; its figures are thrown away.
one_host() {
	name=one_host
	if [ ! -x "${MSCCLSH:-bin/mscclsh}" ]; then
		echo "gpu-test: $name: left out, ${MSCCLSH:-bin/mscclsh} is not there: make build"
		return
	fi
	list=${devices:-0,1}
	all=$(gpus "$list")
	for ranks in "$all" $((all * 4)); do
		time=$(left)
		if [ "$time" -le 0 ]; then
			echo "gpu-test: $name: not begun, $budget s are over"
			return
		fi
		[ "$time" -le 60 ] || time=60
		out=$(mktemp -d)
		if OUT=$out DEVICES=$list RANKS=$ranks BUDGET=$time SMALLEST=1KiB LARGEST=1MiB STEP=32 ONLY=. DTYPE=fp32 FLAGS="--iterations 5" \
			benchmarks/one_host.sh >"$out/log" 2>&1; then
			echo "gpu-test: $name: $ranks ranks on GPUs $list, $(grep -c '^left out' "$out/log") programs left out, $(tail -n 1 "$out/log")"
		else
			code=$?
			tail -n 60 "$out/log"
			echo "gpu-test: $name: FAILED (exit code $code)"
			bad=1
		fi
		rm -rf "$out"
	done
}

for p in "${@:-all}"; do
	keep=$state
	case $p in
	all)
		for one in watchdog:Watchdog wrong:Wrong mixed:Mixed two:Two wrapped:Wrapped replay:Replay 'onesided:One(Sided|Mixed|Replay)' one_host cover:Cover large:Large product:Product; do
			case $one in
			one_host) one_host ;;
			*) part "${one%:*}" "TestGPU${one#*:}" ;;
			esac
		done
		;;
	watchdog) part "$p" TestGPUWatchdog ;;
	wrong) part "$p" TestGPUWrong ;;
	mixed) part "$p" TestGPUMixed ;;
	two) part "$p" TestGPUTwo ;;
	wrapped) part "$p" TestGPUWrapped ;;
	replay) part "$p" TestGPUReplay ;;
	onesided) part "$p" 'TestGPUOne(Sided|Mixed|Replay)' ;;
	cover) part "$p" TestGPUCover ;;
	large) part "$p" TestGPULarge ;;
	one_host) one_host ;;
	product) part "$p" TestGPUProduct ;;
	sanitize) sanitize ;;
	*)
		echo "usage: scripts/gpu-test.sh [watchdog|wrong|mixed|two|wrapped|replay|onesided|one_host|cover|large|product|sanitize|all]..." >&2
		exit 2
		;;
	esac
done
exit $bad
