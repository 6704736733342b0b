package cuda

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// The structures that cross the border are as long as C's: mscclsh_cuda.h has no
// hidden padding, so the sums of its fields are the sizes.
func TestStructures(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want uintptr
	}{
		{"comm_options", unsafe.Sizeof(cCommOptions{}), 8 + 2*4 + 8 + 3*8 + 2*4},
		{"step", unsafe.Sizeof(cStep{}), 12 * 4},
		{"dep", unsafe.Sizeof(cDep{}), 2 * 4},
		{"divide", unsafe.Sizeof(cDivide{}), 4 * 4},
		{"program", unsafe.Sizeof(cProgram{}), 8*8 + 3*8 + 2*4},
		{"size", unsafe.Sizeof(cSize{}), 8 + 6*4},
		{"prepared", unsafe.Sizeof(cPrepared{}), 2*8 + 4*4},
		{"wait", unsafe.Sizeof(cWait{}), 3*8 + 8*4},
		{"held", unsafe.Sizeof(cHeld{}), 4 * 4},
		{"part", unsafe.Sizeof(cPart{}), 4 * 4},
		{"result", unsafe.Sizeof(cResult{}), 4*4 + 8 + 2*4},
		{"expectation", unsafe.Sizeof(cExpectation{}), 6*8 + 2*4},
		{"verdict", unsafe.Sizeof(cVerdict{}), 6*8 + 4*4},
		{"device", unsafe.Sizeof(cDevice{}), 128 + 8 + 4*4},
		{"op", unsafe.Sizeof(cOp{}), 8 + 14*4},
		{"operand", unsafe.Sizeof(cOperand{}), 6 * 4},
		{"channel", unsafe.Sizeof(cChannel{}), 4 * 4},
		{"span", unsafe.Sizeof(cSpan{}), 2 * 4},
		{"one_program", unsafe.Sizeof(cOneProgram{}), 13*8 + 4*8 + 4*4},
	} {
		if c.got != c.want {
			t.Errorf("%s has %d bytes, want %d", c.name, c.got, c.want)
		}
	}
}

func TestDeviceOf(t *testing.T) {
	for _, c := range []struct {
		ranks   int
		devices []int32
		want    []int32
	}{
		{8, []int32{0, 1}, []int32{0, 0, 0, 0, 1, 1, 1, 1}},
		{2, []int32{3, 1}, []int32{3, 1}},
		{3, []int32{0, 1}, []int32{0, 0, 1}},
		{2, []int32{5, 6, 7, 8}, []int32{5, 6}},
		{5, []int32{2}, []int32{2, 2, 2, 2, 2}},
	} {
		if got := deviceOf(c.ranks, c.devices); !slices.Equal(got, c.want) {
			t.Errorf("%d ranks on %v: got %v, want %v", c.ranks, c.devices, got, c.want)
		}
	}
}

// program is an empty program of a collective.
func program(c *ir.Collective) *ir.Program {
	p := &ir.Program{Spec: &ir.Spec{Name: "test", Coll: c, Instances: 1},
		Transport: ir.Transport{Slots: 2, SlotBytes: 64}, GPUs: make([]ir.GPU, c.Ranks)}
	for r := range p.GPUs {
		p.GPUs[r].Input, p.GPUs[r].Output = c.InputChunks(ir.Rank(r)), c.OutputChunks(ir.Rank(r))
	}
	return p
}

// tb appends a thread block to a rank.
func tb(p *ir.Program, rank int, steps ...ir.Step) {
	p.GPUs[rank].TBs = append(p.GPUs[rank].TBs, ir.ThreadBlock{Send: ir.None, Recv: ir.None, Steps: steps})
}

func place(b ir.BufferID, i int32) ir.Place { return ir.Place{Buf: b, Index: i} }

func send(to ir.Rank, src ir.Place, n int32) ir.Step {
	return ir.Step{Kind: ir.Send, Src: src, Dst: ir.NoPlace, Count: n, SendPeer: to, RecvPeer: ir.None}
}

func recv(from ir.Rank, dst ir.Place, n int32) ir.Step {
	return ir.Step{Kind: ir.Recv, Src: ir.NoPlace, Dst: dst, Count: n, SendPeer: ir.None, RecvPeer: from}
}

func nop(post bool, p *ir.Program, deps ...ir.Dep) ir.Step {
	st := ir.Step{Kind: ir.Nop, Src: ir.NoPlace, Dst: ir.NoPlace, SendPeer: ir.None, RecvPeer: ir.None, Post: post,
		DepStart: int32(len(p.Deps))}
	p.Deps = append(p.Deps, deps...)
	st.DepEnd = int32(len(p.Deps))
	return st
}

func TestFlatten(t *testing.T) {
	// In place, rank r's output of a reduce_scatter of 3 ranks with 2 chunks each is
	// its input from chunk 2r on.
	p := program(ir.NewCollective(ir.ReduceScatter, 3, 2, true))
	p.GPUs[1].Scratch = 7
	tb(p, 0, send(1, place(ir.Input, 2), 2))
	tb(p, 1, nop(false, p), recv(0, place(ir.FirstScratch, 5), 2))
	p.GPUs[1].TBs[0].Steps[1].Post = true
	tb(p, 1, nop(false, p, ir.Dep{TB: 0, Step: 0}))
	f, err := flatten(p)
	if err != nil {
		t.Fatal(err)
	}
	if want := []int32{1, 2, 0}; !slices.Equal(f.tbs, want) {
		t.Errorf("thread blocks: got %v, want %v", f.tbs, want)
	}
	if want := []int32{1, 2, 1}; !slices.Equal(f.perTB, want) {
		t.Errorf("steps: got %v, want %v", f.perTB, want)
	}
	if want := []int32{6, 2, 0, 6, 2, 7, 6, 2, 0}; !slices.Equal(f.chunks, want) {
		t.Errorf("chunks: got %v, want %v", f.chunks, want)
	}
	if want := []int32{0, 0, 2, 0, 0, 2, 0, 0, 2}; !slices.Equal(f.baseBuf, want) {
		t.Errorf("buffers: got %v, want %v", f.baseBuf, want)
	}
	if want := []int32{0, 0, 0, 0, 2, 0, 0, 4, 0}; !slices.Equal(f.baseChunk, want) {
		t.Errorf("first chunks: got %v, want %v", f.baseChunk, want)
	}
	// The step named doesn't post, the next of its thread block does.
	if want := []cDep{{0, 1}}; !slices.Equal(f.deps, want) {
		t.Errorf("dependencies: got %v, want %v", f.deps, want)
	}
	want := cStep{kind: int32(ir.Recv), post: 1, dstBuf: 2, dstChunk: 5, count: 2, sendPeer: -1, recvPeer: 0}
	if f.steps[2] != want {
		t.Errorf("the receive: got %+v, want %+v", f.steps[2], want)
	}
	// All three ranks contribute to both chunks of every output.
	if want := []cDivide{{0, 0, 2, 3}, {1, 0, 2, 3}, {2, 0, 2, 3}}; !slices.Equal(f.divides, want) {
		t.Errorf("divisions: got %v, want %v", f.divides, want)
	}
	// One send of 2 chunks: in messages of one chunk 2 a tile.
	if messages, chunks := f.traffic(1, 5); messages != 10 || chunks != 2 {
		t.Errorf("traffic: got %d messages, %d chunks, want 10 and 2", messages, chunks)
	}
}

// Copies are divided by nothing, sums of different numbers apart.
func TestDivisions(t *testing.T) {
	c := func(ranks ...ir.Rank) (out []ir.Contribution) {
		for _, r := range ranks {
			out = append(out, ir.Contribution{Rank: r})
		}
		return out
	}
	coll := ir.NewCollective(ir.Custom, 3, 1, false)
	coll.Custom = &ir.CustomSpec{Input: []int32{1, 1, 1}, Output: []int32{5, 0, 0},
		Expect: [][][]ir.Contribution{{c(0, 1), c(1, 2), c(0, 1, 2), c(0), nil}, nil, nil}}
	f, err := flatten(program(coll))
	if err != nil {
		t.Fatal(err)
	}
	if want := []cDivide{{0, 0, 2, 2}, {0, 2, 1, 3}}; !slices.Equal(f.divides, want) {
		t.Errorf("got %v, want %v", f.divides, want)
	}
}

func TestRefusals(t *testing.T) {
	fresh := func() *ir.Program { return program(ir.NewCollective(ir.AllReduce, 2, 2, true)) }
	for _, c := range []struct {
		code, says string
		spoil      func(p *ir.Program)
	}{
		{"program", "the channels of 0 GPUs, want 2", func(p *ir.Program) { p.OneSided = &ir.OneSided{} }},
		{"program", "the program has 1 GPUs, its collective 2 ranks", func(p *ir.Program) { p.GPUs = p.GPUs[:1] }},
		{"program", "rank 1 has -1 chunks of scratch", func(p *ir.Program) { p.GPUs[1].Scratch = -1 }},
		{"slots", "0 slots", func(p *ir.Program) { p.Transport.Slots = 0 }},
		{"program", "a count of 0 chunks", func(p *ir.Program) { tb(p, 0, send(1, place(0, 0), 0)) }},
		{"program", "not a known kind", func(p *ir.Program) { tb(p, 0, ir.Step{Kind: 9, Count: 1}) }},
		{"bounds", "source is input[1:3], which has 2 chunks", func(p *ir.Program) { tb(p, 0, send(1, place(0, 1), 2)) }},
		{"bounds", "source is input[-1:0]", func(p *ir.Program) { tb(p, 0, send(1, place(0, -1), 1)) }},
		{"bounds", "destination is no buffer", func(p *ir.Program) { tb(p, 0, recv(1, place(3, 0), 1)) }},
		{"bounds", "which has 2 chunks", func(p *ir.Program) { tb(p, 0, send(1, place(0, math.MaxInt32), 1)) }},
		{"program", "no connection goes from rank 0 to rank 0", func(p *ir.Program) { tb(p, 0, send(0, place(0, 0), 1)) }},
		{"program", "no connection goes from rank 2 to rank 0", func(p *ir.Program) { tb(p, 0, recv(2, place(0, 0), 1)) }},
		{"connection-owner", "thread block 0 already sends", func(p *ir.Program) {
			tb(p, 0, send(1, place(0, 0), 1))
			tb(p, 0, send(1, place(0, 0), 1))
		}},
		{"bad-dependency", "which does not exist", func(p *ir.Program) { tb(p, 0, nop(true, p, ir.Dep{TB: 0, Step: 1})) }},
		{"bad-dependency", "which is never posted", func(p *ir.Program) {
			tb(p, 0, nop(false, p))
			tb(p, 0, nop(false, p, ir.Dep{TB: 0, Step: 0}))
		}},
		{"bad-dependency", "dependencies 0:1 of 0", func(p *ir.Program) {
			st := nop(false, p)
			st.DepEnd = 1
			tb(p, 0, st)
		}},
	} {
		p := fresh()
		c.spoil(p)
		err := Validate(p)
		var m *diag.Message
		if !errors.As(err, &m) || m.Code != c.code || !strings.Contains(m.Text, c.says) {
			t.Errorf("got %v, want code %s and %q", err, c.code, c.says)
		}
	}
	if err := Validate(fresh()); err != nil {
		t.Errorf("a program that does nothing: %v", err)
	}
	if err := Validate(nil); err == nil {
		t.Error("no program is taken for one")
	}
}

// Tables that are stored hold two-sided programs only.
func TestFlattenRefusesOneSided(t *testing.T) {
	p := program(ir.NewCollective(ir.AllReduce, 2, 2, true))
	p.Transport = ir.Transport{}
	p.OneSided = &ir.OneSided{Alignment: 16, ThreadsPerBlock: 64, GPUs: make([]ir.OneSidedGPU, 2)}
	if err := Validate(p); err != nil {
		t.Fatalf("a program that does nothing: %v", err)
	}
	var m *diag.Message
	if _, err := Flatten(p); !errors.As(err, &m) || m.Code != "one-sided" {
		t.Errorf("got %v, want code one-sided", err)
	}
}

// A library that isn't there is one sentence that says where it was looked for.
func TestNoLibrary(t *testing.T) {
	_, err := Open([]string{"/nowhere/a.so", "/nowhere/b.so"})
	var m *diag.Message
	if !errors.As(err, &m) || m.Code != "machine" || !strings.Contains(m.Text, "/nowhere/a.so, /nowhere/b.so") {
		t.Errorf("got %v", err)
	}
	// One that is another library lacks our functions.
	if _, err = Open([]string{"libc.so.6"}); err == nil || !strings.Contains(err.Error(), "mscclsh_abi") {
		t.Errorf("got %v", err)
	}
	if _, err = OpenNCCL([]string{"/nowhere/libnccl.so.2"}); !errors.As(err, &m) || m.Code != "machine" {
		t.Errorf("got %v", err)
	}
}
