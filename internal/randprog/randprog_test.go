package randprog

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/trace"
)

// Generate itself compares the model with trace.Builder location by location, so
// that it succeeds is the property.
func TestModelsAgree(t *testing.T) {
	for seed := range uint64(4000) {
		if _, err := Generate(rand.New(rand.NewPCG(seed, 1)), Options{}); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func TestModelsAgreeRapid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := Func(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") })
		if _, err := Generate(src, Options{MaxOps: 10}); err != nil {
			t.Fatal(err)
		}
	})
}

// The comparison is worth something only if it can fail.
func TestDisagreementIsFound(t *testing.T) {
	c := ir.NewCollective(ir.AllReduce, 2, 1, true)
	b, err := trace.New(ir.Spec{Coll: c, Topo: ir.FullyConnected(2), Instances: 1})
	if err != nil {
		t.Fatal(err)
	}
	m := newModel(c, func() int { return 1 })
	b.Scratch("a")
	if err := m.agrees(b); err != nil {
		t.Fatalf("before any operation: %v", err)
	}
	o := op{reduce: true, src: span{0, ir.Input, 0, 1}, dst: span{1, ir.Output, 0, 1}}
	m.apply(o)
	want := "rank 1 buffer 0 index 0: trace holds [{1 0}], the model [{0 0} {1 0}]"
	if err := m.agrees(b); err == nil || err.Error() != want {
		t.Errorf("one reduce ahead: got %v, want %s", err, want)
	}
	if _, err := replay(b, o, trace.Ref{}); err != nil {
		t.Fatal(err)
	}
	if err := m.agrees(b); err != nil {
		t.Errorf("after the same reduce: %v", err)
	}
	m.apply(op{src: span{0, ir.Input, 0, 1}, dst: span{0, scratch(0), 2, 1}})
	want = "rank 0 buffer 2: trace has 0 chunks, the model 3"
	if err := m.agrees(b); err == nil || err.Error() != want {
		t.Errorf("one copy to scratch ahead: got %v, want %s", err, want)
	}
}

func TestSameChoicesSameProgram(t *testing.T) {
	for seed := range uint64(50) {
		x, err := Generate(rand.New(rand.NewPCG(seed, 2)), Options{})
		if err != nil {
			t.Fatal(err)
		}
		y, err := Generate(rand.New(rand.NewPCG(seed, 2)), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(x, y) {
			t.Fatalf("seed %d: two programs", seed)
		}
	}
}

// Every kind of thing that programs can have turns up.
func TestVariety(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(4000) {
		d, err := Generate(rand.New(rand.NewPCG(seed, 3)), Options{})
		if err != nil {
			t.Fatal(err)
		}
		note(seen, d)
	}
	want := []string{"20 ops", "copy local", "copy remote", "reduce local", "reduce remote", "counted", "hole",
		"asymmetric reduce", "src input", "src output", "src scratch", "dst input", "dst output", "dst scratch",
		"several scratch", "out of place", "in place", "auto", "manual", "auto channel", "shared block", "parallel", "parallel 4",
		"instances 1", "instances 2", "instances 3", "interleaved", "blocked", "Simple", "LL", "LL128", "fused", "unfused",
		"nop", "some links missing", "empty inputs", "nothing demanded somewhere", "ranks 1", "ranks 5"}
	for _, k := range kinds {
		want = append(want, k.String())
	}
	for _, w := range append(want, "custom") {
		if seen[w] == 0 {
			t.Errorf("never seen in 4000 programs: %s", w)
		}
	}
}

func note(seen map[string]int, d *ir.ChunkDAG) {
	yes := func(cond bool, format string, args ...any) {
		if cond {
			seen[fmt.Sprintf(format, args...)]++
		}
	}
	c := d.Coll
	yes(len(d.Ops) >= 20, "20 ops")
	yes(len(d.Buffers) > 3, "several scratch")
	yes(c.InPlace, "in place")
	yes(!c.InPlace, "out of place")
	yes(true, "%s", d.Policy)
	yes(true, "%s", d.Protocol)
	yes(true, "%s", c.Kind)
	yes(true, "instances %d", d.Instances)
	yes(true, "ranks %d", c.Ranks)
	yes(d.Interleaved, "interleaved")
	yes(!d.Interleaved, "blocked")
	yes(d.Fusion, "fused")
	yes(!d.Fusion, "unfused")
	yes(d.DependenceNop, "nop")
	yes(d.Topo.Bandwidth != nil && slices.Contains(d.Topo.Bandwidth[1:], 0), "some links missing")
	yes(c.Custom != nil && c.Custom.Holds != nil, "empty inputs")
	if c.Custom != nil {
		for _, outs := range c.Custom.Expect {
			yes(slices.ContainsFunc(outs, func(w []ir.Contribution) bool { return w == nil }), "nothing demanded somewhere")
		}
	}
	length := map[ir.Loc]int32{}
	blocks := map[[2]int32]map[ir.Rank]bool{}
	for _, op := range d.Ops {
		where := "local"
		if op.Remote() {
			where = "remote"
		}
		yes(true, "%s %s", op.Kind, where)
		yes(op.Count > 1, "counted")
		yes(op.Kind == ir.ChunkReduce && op.Src.Index != op.Dst.Index, "asymmetric reduce")
		yes(true, "src %s", bufferKind(op.Src.Buf))
		yes(true, "dst %s", bufferKind(op.Dst.Buf))
		yes(d.Policy == ir.Auto && op.Chan >= 0, "auto channel")
		yes(op.Parallel > 1, "parallel")
		yes(op.Parallel >= 4, "parallel 4")
		if op.Dst.Buf >= ir.FirstScratch {
			at := ir.Loc{Rank: op.Dst.Rank, Buf: op.Dst.Buf}
			yes(op.Dst.Index > length[at], "hole")
			length[at] = max(length[at], op.Dst.Index+op.Count)
		}
		if op.SendTB >= 0 && op.Remote() {
			noteBlock(blocks, op.Src.Rank, op.SendTB, op.Dst.Rank)
			noteBlock(blocks, op.Dst.Rank, op.RecvTB, op.Src.Rank)
		}
	}
	for _, peers := range blocks {
		yes(len(peers) > 1, "shared block")
	}
}

func noteBlock(blocks map[[2]int32]map[ir.Rank]bool, r ir.Rank, tb int32, peer ir.Rank) {
	at := [2]int32{int32(r), tb}
	if blocks[at] == nil {
		blocks[at] = map[ir.Rank]bool{}
	}
	blocks[at][peer] = true
}

func bufferKind(b ir.BufferID) string {
	return [...]string{"input", "output", "scratch"}[min(b, ir.FirstScratch)]
}

// What every program promises to whoever compiles it.
func TestPromises(t *testing.T) {
	for seed := range uint64(4000) {
		d, err := Generate(rand.New(rand.NewPCG(seed, 4)), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if what := broken(d); what != "" {
			t.Fatalf("seed %d: %s", seed, what)
		}
	}
}

// broken says which promise d breaks: inputs of out-of-place programs stay,
// links exist, custom programs are interleaved, and under manual assignment a
// block has one peer each way and one channel, and a connection end one block.
func broken(d *ir.ChunkDAG) string {
	type end struct {
		rank, peer ir.Rank
		ch         int32
		send       bool
	}
	type tb struct {
		rank ir.Rank
		id   int32
	}
	owner := map[end]int32{}
	sends, recvs, channel := map[tb]ir.Rank{}, map[tb]ir.Rank{}, map[tb]int32{}
	claim := func(peers map[tb]ir.Rank, rank, peer ir.Rank, id, ch int32, send bool) bool {
		at, e := tb{rank, id}, end{rank, peer, ch, send}
		p, okPeer := peers[at]
		c, okChan := channel[at]
		o, okEnd := owner[e]
		peers[at], channel[at], owner[e] = peer, ch, id
		return id >= 0 && (!okPeer || p == peer) && (!okChan || c == ch) && (!okEnd || o == id)
	}
	if d.Coll.Kind == ir.Custom && !d.Interleaved {
		return "a custom collective is blocked"
	}
	for i, op := range d.Ops {
		switch {
		case !d.Coll.InPlace && op.Dst.Buf == ir.Input:
			return fmt.Sprintf("operation %d writes an input", i)
		case !d.Topo.Linked(op.Src.Rank, op.Dst.Rank):
			return fmt.Sprintf("operation %d uses a link that isn't there", i)
		case d.Policy == ir.Manual && op.SendTB < 0:
			return fmt.Sprintf("operation %d has no thread block", i)
		case d.Policy == ir.Manual && op.Remote():
			ch := max(op.Chan, 0)
			if !claim(sends, op.Src.Rank, op.Dst.Rank, op.SendTB, ch, true) ||
				!claim(recvs, op.Dst.Rank, op.Src.Rank, op.RecvTB, ch, false) {
				return fmt.Sprintf("operation %d breaks the rules of thread blocks", i)
			}
		}
	}
	return ""
}

// A program computes its collective: every demanded output holds what is
// expected. A custom collective demands every output that holds anything. The
// values come from a walk over the canonical operations.
func TestProgramsComputeTheirCollective(t *testing.T) {
	for seed := range uint64(4000) {
		d, err := Generate(rand.New(rand.NewPCG(seed, 5)), Options{Family: Free + Family(seed%2)})
		if err != nil {
			t.Fatal(err)
		}
		m := newModel(d.Coll, func() int { return len(d.Buffers) - int(ir.FirstScratch) })
		for _, o := range d.Ops {
			m.apply(op{reduce: o.Kind == ir.ChunkReduce,
				src: span{o.Src.Rank, o.Src.Buf, o.Src.Index, o.Count},
				dst: span{o.Dst.Rank, o.Dst.Buf, o.Dst.Index, o.Count}})
		}
		for r := range ir.Rank(d.Coll.Ranks) {
			for i := range d.Coll.OutputChunks(r) {
				want, demanded := d.Coll.Expect(nil, r, i)
				got := m.held[m.cell(r, ir.Output, i)]
				declared := d.Coll.Custom != nil && i < d.Coll.Custom.Output[r]
				if (demanded || declared) && !slices.Equal(got, want) {
					t.Fatalf("seed %d: %s rank %d output[%d]: got %v, want %v", seed, d.Coll, r, i, got, want)
				}
			}
		}
	}
}

func TestOptionsBound(t *testing.T) {
	o := Options{MaxRanks: 2, MaxChunks: 3, MaxOps: 4, MaxInstances: 1, MaxTerms: 2, Family: Free}
	for seed := range uint64(500) {
		d, err := Generate(rand.New(rand.NewPCG(seed, 6)), o)
		if err != nil {
			t.Fatal(err)
		}
		if d.Coll.Ranks > 2 || d.Coll.NumChunks() > 3 || len(d.Ops) > 4 || d.Instances > 1 || d.Coll.Kind != ir.Custom {
			t.Fatalf("seed %d: out of bounds: %d ranks, %d chunks, %d operations", seed, d.Coll.Ranks, d.Coll.NumChunks(), len(d.Ops))
		}
		for _, outs := range d.Coll.Custom.Expect {
			for _, w := range outs {
				if len(w) > 2 {
					t.Fatalf("seed %d: %d terms", seed, len(w))
				}
			}
		}
	}
	for _, bad := range []struct {
		o    Options
		want string
	}{
		{Options{MaxOps: -1}, "random program: MaxOps: got -1, want 1 or more"},
		{Options{Family: 7}, "random program: unknown family 7"},
	} {
		if _, err := Generate(rand.New(rand.NewPCG(1, 1)), bad.o); err == nil || err.Error() != bad.want {
			t.Errorf("got %v, want %s", err, bad.want)
		}
	}
}
