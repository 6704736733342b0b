# shellcheck shell=sh
# scripts/gpu-tables.sh: what scripts for machines with GPUs have in common (bench-gpu.sh,
# gpu-test.sh, benchmarks/composition.sh, benchmarks/one_host.sh); they read it with a dot.
# $bin is mscclsh and $devices the GPUs, as --devices takes them.

# gpus LIST: how many GPUs 0,1 or 0-3 names.
gpus() {
	echo "$1" | tr ',' '\n' | awk -F- '/[0-9]/ { n += NF > 1 ? $2 - $1 + 1 : 1 } END { print n + 0 }'
}

# bytes SIZE: 64KiB in bytes.
bytes() {
	case $1 in
	*KiB) echo $((${1%KiB} * 1024)) ;;
	*MiB) echo $((${1%MiB} * 1048576)) ;;
	*GiB) echo $((${1%GiB} * 1073741824)) ;;
	*) echo "$1" ;;
	esac
}

# can RANKS: whether programs run here at all, asked before anything is written.
can() {
	timeout 60 "$bin" --backend cuda --devices "$devices" --size 1KiB --quiet @algorithms/allreduce_one_step.star --ranks "$1" >/dev/null || exit 3
}

# machine: what the figures are of.
machine() {
	"$bin" version
	nvidia-smi --query-gpu=index,name,driver_version,clocks.sm,clocks.max.sm --format=csv 2>/dev/null || true
	nvidia-smi topo -m 2>/dev/null || true
}

# best CSV: the fastest program of each size beside NCCL. A line of the CSV is a program and
# what bench prints of it; a figure of wrong outputs is none.
best() {
	awk -F, '
	NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
	$at["median_us"] != "" && $at["skipped"] == "" && $at["wrong"] == 0 {
		b = $at["bytes"]
		us = $at["median_us"]
		if (!(b in t)) order[++n] = b
		if (!(b in t) || us + 0 < t[b] + 0) { t[b] = us; who[b] = $1 }
		if (NF >= 15 && $15 > 0) plain[b] = $15
		if (NF >= 17 && $17 > 0) win[b] = $17
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
			if (a || w) { m = a; if (w && (!a || w < a)) m = w; sm += log(m); nm++; if (!worst || m < worst) { worst = m; where = b } }
			# The powers of four from 1 KiB on.
			for (four = 1024; four < b; four *= 4) {}
			if (a && four == b) { s4 += log(a); n4++ }
			printf "%12d %10.2f %10.2f %7.3f %10.2f %7.3f  %s\n", b, t[b], plain[b], a, win[b], w, who[b]
		}
		if (na) printf "geometric mean of NCCL over ours: %.3f (powers of four: %.3f), of the better of its modes: %.3f, least of those %.3f at %d\n", exp(sa / na), n4 ? exp(s4 / n4) : 0, exp(sm / nm), worst, where
	}' "$1"
}

# named PROGRAM TABLE CSV: adds what bench printed of a program to a table of several.
named() {
	sed -e "s|^bytes,|program,bytes,|; t" -e "s|^|$1,|" "$3" >"$3.named"
	if [ -s "$2" ]; then sed 1d "$3.named" >>"$2"; else cp "$3.named" "$2"; fi
	rm -f "$3.named"
}
