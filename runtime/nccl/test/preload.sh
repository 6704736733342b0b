#!/bin/sh
# test/preload.sh CLIENT LIBRARY STUB TABLE: an application that is linked with NCCL, or
# opens it by name, runs with the library put before it, or in its place, in each of the
# ways that docs/nccl.md names; its calls are looked for at the NCCL underneath.
set -eu
client=$1
library=$2
stub=$3
export MSCCLSH_TABLE="$4"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0
folder=$(dirname "$stub")
ln -s "$library" "$tmp/libnccl.so.2"

# try NAME WANT [VARIABLE=VALUE...] [-- ARGUMENT]: runs the client, which must be right, and
# WANT calls of ncclAllReduce must come to NCCL.
try() {
	name=$1
	want=$2
	shift 2
	: >"$tmp/report"
	variables=
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		variables="$variables $1"
		shift
	done
	[ $# -eq 0 ] || shift
	# shellcheck disable=SC2086
	if ! said=$(env STUB_REPORT="$tmp/report" $variables "$client" "$@" 2>"$tmp/told") || [ "$said" != right ]; then
		echo "preload: $name: the client says: $said $(cat "$tmp/told")"
		bad=1
		return
	fi
	calls=$(awk '$1 == "ncclAllReduce" { n += $2 } END { print n + 0 }' "$tmp/report")
	if [ "$calls" != "$want" ] || { [ "$want" = 0 ] && [ -s "$tmp/told" ]; }; then
		echo "preload: $name: NCCL got $calls calls, not $want; it says: $(cat "$tmp/told")"
		bad=1
		return
	fi
	echo "preload: $name: right, $calls calls to NCCL"
}

try "NCCL alone" 2 LD_LIBRARY_PATH="$folder"
try "preloaded, linked with NCCL" 0 LD_LIBRARY_PATH="$folder" LD_PRELOAD="$library"
try "preloaded, switched off" 2 LD_LIBRARY_PATH="$folder" LD_PRELOAD="$library" MSCCLSH_NCCL=0
try "preloaded, NCCL by its path" 0 LD_LIBRARY_PATH="$folder" LD_PRELOAD="$library" MSCCLSH_NCCL_LIB="$stub"
# A program that opens NCCL by its name gets what that name leads to, whatever is preloaded.
try "opened by name" 2 LD_LIBRARY_PATH="$folder" LD_PRELOAD="$library" -- libnccl.so.2
try "opened by name, in NCCL's place" 0 LD_LIBRARY_PATH="$tmp:$folder" -- libnccl.so.2
try "linked, in NCCL's place" 0 LD_LIBRARY_PATH="$tmp:$folder"
try "linked, in NCCL's place, NCCL by its path" 0 LD_LIBRARY_PATH="$tmp" MSCCLSH_NCCL_LIB="$stub"

# Without any NCCL there is one sentence, and an error for each call.
if said=$(env LD_LIBRARY_PATH="$tmp" "$client" 2>&1); then
	echo "preload: without NCCL: it says $said"
	bad=1
elif [ "$(echo "$said" | grep -c 'no NCCL library was found')" != 1 ]; then
	echo "preload: without NCCL: it says: $said"
	bad=1
else
	echo "preload: without NCCL: it says so"
fi
exit $bad
