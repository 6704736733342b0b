package checker

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
)

// onePairs is an allreduce in which every rank reduces one chunk and hands it out:
// by packets, or by puts between meetings of all ranks.
func onePairs(t testing.TB, n int, packets bool) *ir.Program {
	var b strings.Builder
	for r := range n {
		fmt.Fprintf(&b, "gpu %d input=%d output=%d scratch=%d\n", r, n, n, 2*n)
		if !packets {
			b.WriteString("channels memory")
			for q := range n {
				if q != r {
					fmt.Fprintf(&b, " %d", q)
				}
			}
			b.WriteString("\n")
		}
		var to, from, all []string
		for q := range n {
			if q != r {
				to = append(to, fmt.Sprintf("%d.s[%d] x1", q, r))
				from = append(from, fmt.Sprintf("s[%d] x1", q))
				all = append(all, fmt.Sprintf("%d.i[%d] x1", q, r))
			}
		}
		b.WriteString("tb 0\n")
		line := 0
		op := func(format string, args ...any) {
			fmt.Fprintf(&b, "  %d %s\n", line, fmt.Sprintf(format, args...))
			line++
		}
		var own []string
		for q := range n {
			if q != r {
				own = append(own, fmt.Sprintf("i[%d] x1", q))
			}
		}
		if packets {
			mark := func(list []string) string { return strings.Join(list, " packets, ") + " packets" }
			op("ppkt memory %s -> %s", strings.Join(own, ", "), mark(to))
			var out []string
			for q := range n {
				if q != r {
					out = append(out, fmt.Sprintf("%d.s[%d] x1", q, n+r))
				}
			}
			op("respkt memory i[%d] x1, %s -> i[%d] x1, %s", r, mark(from), r, mark(out))
			for q := range n {
				if q != r {
					op("upkt s[%d] x1 packets -> i[%d] x1", n+q, q)
				}
			}
			continue
		}
		meet := func() {
			var refs []string
			for i := range n - 1 {
				refs = append(refs, fmt.Sprint(i))
			}
			op("nop")
			op("signal memory on %s", strings.Join(refs, " "))
			op("wait memory on %s", strings.Join(refs, " "))
			op("nop")
		}
		meet()
		op("put memory %s -> %s", strings.Join(own, ", "), strings.Join(to, ", "))
		meet()
		op("res memory i[%d] x1, %s -> i[%d] x1, %s", r, strings.Join(from, ", "), r, strings.Join(all, ", "))
		meet()
	}
	protocol := "Simple"
	if packets {
		protocol = "LL"
	}
	head := fmt.Sprintf("program \"p\"\ncollective allreduce ranks %d factor %d split 1 in-place\ntopology none\nprotocol %s\n"+
		"policy auto instances 1\nwindow min 0 max 0\none-sided threads 64 align 16%s\n", n, n, protocol,
		map[bool]string{true: " double-scratch"}[packets])
	p, err := ir.ParseProgram(strings.NewReader(head+b.String()), "p")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestAllPairs: right, without races, at sizes that matter.
func TestOneSidedAllPairs(t *testing.T) {
	for _, n := range []int{2, 5, 16} {
		for _, packets := range []bool{false, true} {
			if rep := check(t, onePairs(t, n, packets)); codes(rep) != "" || rep.OrderDiffers {
				t.Errorf("%d ranks, packets %v: %v", n, packets, rep.Messages)
			}
		}
	}
}

// BenchmarkOneSided doubles the ranks: operands, the measure of what is to be done,
// grow fourfold.
func BenchmarkOneSided(b *testing.B) {
	for _, n := range []int{16, 32, 64} {
		for _, packets := range []bool{false, true} {
			b.Run(fmt.Sprintf("ranks=%d/packets=%v", n, packets), func(b *testing.B) {
				p := onePairs(b, n, packets)
				for b.Loop() {
					check(b, p)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(p.OneSided.Operands)), "ns/operand")
			})
		}
	}
}
