package cuda_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime/cuda"
)

// TestOneSidedEvents: every operation of a launch notes its time, in a pipeline once a
// turn, in the order of its thread block.
func TestOneSidedEvents(t *testing.T) {
	lib := library(t)
	p := oneProgram(t, "allreduce ranks 2 factor 2 split 1", "Simple", "", twoRanks(`
copy i[0] x1 -> o[0] x1
pipeline unit 48 chunks 1 {
copy i[1] x1 -> o[1] x1
nop
}
signal memory on 0`, `
wait memory on 0
copy i[0] x2 -> o[0] x2`))
	x := open(t, lib, p, cuda.CommOptions{Devices: []int32{0, 1}, Watchdog: patience})
	r, err := x.Run(context.Background(), cuda.Options{Bytes: 2 * 112, NoVerify: true, Events: true})
	if err != nil {
		t.Fatal(err)
	}
	// 112 bytes are three turns of 48.
	want := []string{"0 copy 0", "0 copy 0", "0 copy 1", "0 copy 2", "0 nop 0", "0 nop 1", "0 nop 2", "0 signal 0", "1 copy 0", "1 wait 0"}
	left := map[string]int{}
	for _, w := range want {
		left[w]++
	}
	var signal, wait ir.Event
	for i, e := range r.Events {
		op := &p.OneSided.Ops[e.Step]
		left[fmt.Sprintf("%d %v %d", e.Rank, op.Kind, e.Tile)]--
		if e.End < e.Begin {
			t.Errorf("event %d ends before it begins: %+v", i, e)
		}
		switch op.Kind {
		case ir.OpSignal:
			signal = e
		case ir.OpWait:
			wait = e
		}
	}
	for name, n := range left {
		if n != 0 {
			t.Errorf("%s: %d too few", name, n)
		}
	}
	if wait.End < signal.Begin {
		t.Errorf("the wait ended at %d, the signal began at %d", wait.End, signal.Begin)
	}
}

// FuzzOneSided sets fields of small programs to anything: they are refused with a
// message, or loaded and bound, and never is it a panic or worse.
func FuzzOneSided(f *testing.F) {
	lib := library(f)
	f.Add(uint8(0), []byte{})
	for i := range uint8(len(handOps)) {
		f.Add(i, []byte{i, 10, 1, 10, 2 * i, 5, 3, 10, 4, 6, 5, 3})
		f.Add(i, []byte{9, 10, 30 + i, 12, 45, 2, 61, 11, 18, 4, 77, 3, 91, 8})
	}
	values := []int32{0, 1, 2, 3, 5, -1, -2, 71, 1 << 20, 1<<31 - 1, -1 << 31}
	f.Fuzz(func(t *testing.T, which uint8, edits []byte) {
		p, err := readOne("allreduce ranks 2 factor 2 split 1", "LL", "", handOps[int(which)%len(handOps)].text)
		if err != nil {
			t.Fatal(err)
		}
		o := p.OneSided
		for i := 0; i+1 < len(edits) && i < 20; i += 2 {
			at, v := int(edits[i]), values[int(edits[i+1])%len(values)]
			op, d, g := &o.Ops[at%len(o.Ops)], &o.Operands[at%len(o.Operands)], &o.GPUs[at%len(o.GPUs)]
			fields := []*int32{&op.Src.Start, &op.Dst.End, &op.Refs.Start, &op.Refs.End, &op.Part, &op.Parts, &op.Body.Start, &op.Body.End,
				&op.UnitChunks, (*int32)(&d.Rank), &d.Group, (*int32)(&d.Buf), &d.Index, &d.Size, &g.Blocks[0].Start,
				&g.Blocks[0].End, &o.Alignment, &g.Semaphores[0], &g.Channels[0].Pair, (*int32)(&g.Channels[1].Peer)}
			if k := at / 8 % (len(fields) + 2); k < len(fields) {
				*fields[k] = v
			} else if k == len(fields) {
				op.Kind = ir.OpKind(v)
			} else {
				d.Packets = !d.Packets
			}
		}
		if cuda.Validate(p) != nil {
			return
		}
		err = on(lib, p, cuda.CommOptions{}, func(x *cuda.Program) error {
			_, err := x.Bind(cuda.Options{Bytes: 2 * 48})
			return err
		})
		if err != nil {
			t.Log(err)
		}
	})
}
