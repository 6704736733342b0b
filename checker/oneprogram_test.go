package checker

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// oneSided reads a one-sided program in the text form of ir without what can be
// filled in: the header, sizes (8 chunks of scratch), and the numbers of operations.
// flags are words of the header: LL, double-scratch. Positions are lines of file "p".
func oneSided(t testing.TB, c *ir.Collective, flags, text string) *ir.Program {
	t.Helper()
	head := &ir.Program{
		Spec:     &ir.Spec{Name: "t", Coll: c, Positions: []diag.Pos{{}}, Instances: 1, Protocol: ir.Simple},
		GPUs:     make([]ir.GPU, c.Ranks),
		OneSided: &ir.OneSided{Alignment: 16, ThreadsPerBlock: 1024, GPUs: make([]ir.OneSidedGPU, c.Ranks)},
	}
	for _, w := range strings.Fields(flags) {
		switch w {
		case "LL":
			head.Protocol, head.OneSided.Packets = ir.LL, true
		case "double-scratch":
			head.OneSided.DoubleScratch = true
		default:
			t.Fatalf("flag %q", w)
		}
	}
	var b bytes.Buffer
	if err := head.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	full := b.String()[:strings.Index(b.String(), "gpu 0 ")]
	full += expand(c, text)
	p, err := ir.ParseProgram(strings.NewReader(full), "p")
	if err != nil {
		t.Fatalf("%v\n%s", err, full)
	}
	return p
}

// expand adds sizes, numbers and positions.
func expand(c *ir.Collective, text string) string {
	var b strings.Builder
	numbers := []int{0}
	for n, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		word, rest, _ := strings.Cut(line, " ")
		switch {
		case line == "":
		case word == "gpu":
			r := ir.Rank(rest[0] - '0')
			fmt.Fprintf(&b, "gpu %d input=%d output=%d scratch=8\n", r, c.InputChunks(r), c.OutputChunks(r))
		case word == "tb":
			numbers = []int{0}
			fmt.Fprintf(&b, "%s\n", line)
		case word == "channels" || word == "semaphores" || word == "group":
			fmt.Fprintf(&b, "%s\n", line)
		case word == "}":
			numbers = numbers[:len(numbers)-1]
			fmt.Fprintf(&b, "%s}\n", strings.Repeat("  ", len(numbers)))
		default:
			depth := len(numbers)
			fmt.Fprintf(&b, "%s%d ", strings.Repeat("  ", depth), numbers[depth-1])
			numbers[depth-1]++
			if strings.HasSuffix(line, "{") {
				fmt.Fprintf(&b, "%s\n", line)
				numbers = append(numbers, 0)
				continue
			}
			fmt.Fprintf(&b, "%s ; p:%d:1\n", line, n+1)
		}
	}
	return b.String()
}
