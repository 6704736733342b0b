#!/bin/sh
# Makes plans with MSCCL++'s own compiler, to be compared with this project's:
#
#   scripts/mscclpp-plans.sh CHECKOUT OUT [PYTHON]
#   MSCCLSH_MSCCLPP=CHECKOUT MSCCLSH_MSCCLPP_PLANS=OUT go test -run BesideMSCCLPP ./internal/endtoend
#
# CHECKOUT is one of microsoft/mscclpp; its compiler is Python alone and needs no
# GPU, but sortedcontainers (pip install sortedcontainers). The calls come from the
# test itself. OUT gets a file for each that works and index.tsv.
set -eu
if [ $# -lt 2 ]; then
	echo "usage: scripts/mscclpp-plans.sh CHECKOUT OUT [PYTHON]" >&2
	exit 2
fi
checkout=$(cd "$1" && pwd)
mkdir -p "$2"
out=$(cd "$2" && pwd)
python=${3:-python3}
cd "$(dirname "$0")/.."

# The package without its extension module, which the compiler doesn't use.
lib=$(mktemp -d)
trap 'rm -rf "$lib"' EXIT
mkdir "$lib/mscclpp"
: >"$lib/mscclpp/__init__.py"
ln -s "$checkout/python/mscclpp/language" "$checkout/python/mscclpp/default_algos" "$lib/mscclpp/"

MSCCLSH_MSCCLPP=$checkout MSCCLSH_MSCCLPP_JOBS=$out/jobs scripts/go test -count=1 -run '^TestJobsOfMSCCLPP$' ./internal/endtoend >/dev/null
: >"$out/index.tsv"
n=0
while read -r script args; do
	n=$((n + 1))
	# shellcheck disable=SC2086 # the arguments are words
	if PYTHONPATH=$lib${PYTHONPATH:+:$PYTHONPATH} PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1 "$python" "$checkout/$script" $args >"$out/$n.json" 2>"$out/$n.err"; then
		printf '%s\t%s\t%s\n' "$n.json" "$script" "$args" >>"$out/index.tsv"
		rm "$out/$n.err"
	else
		echo "$script $args: $(tail -n 1 "$out/$n.err")" >&2
		rm "$out/$n.json" "$out/$n.err"
	fi
done <"$out/jobs"
echo "$(wc -l <"$out/index.tsv") plans of $n calls in $out" >&2
