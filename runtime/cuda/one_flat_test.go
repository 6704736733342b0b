package cuda

import (
	"slices"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
)

// twoStages is an allgather in two thread blocks: the second hands on what the first got,
// in units of 32 bytes.
const twoStages = `program "stages"
collective allgather ranks 2 factor 1 split 1
topology none
protocol Simple
policy auto instances 1
window min 0 max 0
one-sided threads 64 align 16
gpu 0 input=1 output=2 scratch=1
channels memory 1
semaphores 0
tb 0
  0 signal memory on 0
  1 wait memory on 0
  2 pipeline unit 32 chunks 1 {
    0 get memory 1.i[0] x1 -> s[0] x1
    1 nop
    2 sem_release on 0
  }
  3 signal memory on 0
tb 1
  0 pipeline unit 32 chunks 1 {
    0 sem_acquire on 0
    1 nop
    2 copy s[0] x1 -> o[1] x1
  }
  1 copy i[0] x1 -> o[0] x1 part 0 of 2
  2 copy i[0] x1 -> o[0] x1 part 1 of 2
gpu 1 input=1 output=2 scratch=0
channels memory 0
tb 0
  0 signal memory on 0
  1 wait memory on 0
  2 put memory i[0] x1 -> 0.o[1] x1 part 1 of 3
  3 nop
  4 wait memory on 0
`

func parsed(t *testing.T, text string) *ir.Program {
	t.Helper()
	p, err := ir.ParseProgram(strings.NewReader(text), "p")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestFlattenOne(t *testing.T) {
	f, err := flattenOne(parsed(t, twoStages))
	if err != nil {
		t.Fatal(err)
	}
	// Operations stand block by block, a block's own before the bodies of its pipelines:
	// 4 + 3, 3 + 3 and 5.
	if want := []cSpan{{0, 4}, {7, 10}, {13, 18}}; !slices.Equal(f.one.blocks, want) {
		t.Errorf("blocks %v, want %v", f.one.blocks, want)
	}
	if want := []int32{2, 1}; !slices.Equal(f.tbs, want) {
		t.Errorf("thread blocks %v, want %v", f.tbs, want)
	}
	if op := f.one.ops[2]; op.kind != int32(ir.OpPipeline) || op.unitBytes != 32 || op.unitChunks != 1 || op.bodyStart != 4 || op.bodyEnd != 7 {
		t.Errorf("the pipeline is %+v", op)
	}
	if c := f.one.channels; len(c) != 2 || c[0] != (cChannel{kind: 1, peer: 1}) || c[1] != (cChannel{kind: 1, peer: 0}) {
		t.Errorf("channels %+v", c)
	}
	// 80 bytes a chunk: all of it is read in three turns, and of three parts in units of
	// 16 bytes the second has 2 of 5.
	if got := f.moved(80); got != 80+32 {
		t.Errorf("%d bytes move, want 112", got)
	}
	for _, c := range []struct {
		rank, tb, index int32
		want            string
	}{{0, 0, 3, "3"}, {0, 0, 5, "2.1"}, {0, 1, 12, "0.2"}, {1, 0, 17, "4"}} {
		if at := f.opAt(c.rank, c.tb, c.index); at == nil || at.number != c.want {
			t.Errorf("operation %d of rank %d: %+v, want %s", c.index, c.rank, at, c.want)
		}
	}
	if at := f.opAt(1, 0, 3); at != nil {
		t.Errorf("operation 3 is not one of rank 1: %+v", at)
	}
	// Rank 0 signals twice and rank 1 waits twice; rank 1 signals once.
	want := [][2]stepOf{{{0, 0, 0, 0}, {1, 0, 14, 0}}, {{0, 0, 3, 0}, {1, 0, 17, 0}}, {{1, 0, 13, 0}, {0, 0, 1, 0}}}
	if got := f.signals(); !slices.Equal(got, want) {
		t.Errorf("signals %v, want %v", got, want)
	}
}

func TestCutBytes(t *testing.T) {
	for _, c := range []struct{ n, unit, k, p, want int64 }{
		{80, 16, 0, 3, 32}, {80, 16, 1, 3, 32}, {80, 16, 2, 3, 16}, {16, 16, 1, 2, 0}, {0, 16, 0, 1, 0},
	} {
		if got := cutBytes(c.n, c.unit, c.k, c.p); got != c.want {
			t.Errorf("part %d of %d of %d bytes: %d, want %d", c.k, c.p, c.n, got, c.want)
		}
	}
}
