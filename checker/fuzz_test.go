package checker

import (
	"context"
	"math"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
)

// hostile are values that fields of a damaged file may have.
var hostile = []int32{0, 1, 2, 3, 5, -1, -2, 71, 72, 1 << 20, math.MaxInt32, math.MaxInt32 - 1, math.MinInt32}

// FuzzCheck sets fields of a small program to anything: the checker must give a
// verdict, whatever it is, and leave the program as it was.
func FuzzCheck(f *testing.F) {
	f.Add(uint64(1), []byte{})
	f.Add(uint64(2), []byte{0, 10, 1, 10, 2, 5, 3, 10, 4, 6, 5, 3})
	f.Add(uint64(3), []byte{9, 10, 30, 12, 45, 2, 61, 11, 18, 4})
	f.Add(uint64(4), []byte{6, 10, 7, 1, 8, 3, 10, 2, 11, 5, 12, 12})
	f.Add(uint64(1001), []byte{9, 10, 30, 12, 45, 2, 61, 11, 18, 4}) // from 1000 on with protocol Direct
	f.Add(uint64(1004), []byte{})
	f.Fuzz(func(t *testing.T, seed uint64, edits []byte) {
		p := randomProgram(seed % 1000)
		if seed/1000%2 == 1 {
			p.Protocol, p.Transport = ir.Direct, ir.Transport{}
		}
		for i := 0; i+1 < len(edits) && i < 40; i += 2 {
			edit(p, int(edits[i]), hostile[int(edits[i+1])%len(hostile)])
		}
		a, err := Check(context.Background(), p, Options{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := Check(context.Background(), p, Options{})
		if err != nil || a.Messages.Error() != b.Messages.Error() || a.MinSlots != b.MinSlots {
			t.Fatalf("two checks differ: %v\n%v (%v)", a.Messages, b.Messages, err)
		}
		if a.OK == a.Messages.HasErrors() {
			t.Fatal("OK and the messages disagree")
		}
	})
}

func edit(p *ir.Program, at int, v int32) {
	c := p.Coll
	g := &p.GPUs[at/64%len(p.GPUs)]
	tb := &g.TBs[at/16%len(g.TBs)]
	st := &ir.Step{}
	if len(tb.Steps) > 0 {
		st = &tb.Steps[at/8%len(tb.Steps)]
	}
	fields := []*int32{&st.Count, &st.Chan, &st.DepStart, &st.DepEnd, &st.Src.Index, &st.Dst.Index,
		(*int32)(&st.Src.Buf), (*int32)(&st.Dst.Buf), (*int32)(&st.SendPeer), (*int32)(&st.RecvPeer), (*int32)(&st.Pos),
		(*int32)(&tb.Send), (*int32)(&tb.Recv), &tb.Chan, &g.Input, &g.Output, &g.Scratch,
		&p.Transport.Slots, &c.Ranks, &c.ChunkFactor, &c.Split, (*int32)(&c.Root), (*int32)(&c.Peer)}
	switch k := at % (len(fields) + 8); {
	case k < len(fields):
		*fields[k] = v
	case k == len(fields):
		c.Kind = ir.CollectiveKind(v)
	case k == len(fields)+1:
		st.Kind = ir.StepKind(v)
	case k == len(fields)+2:
		p.MaxBytes = int64(v) << 31
	case k == len(fields)+3:
		p.Transport.SlotBytes = int64(v) << 31
	case k == len(fields)+4 && len(p.Deps) > 0:
		p.Deps[at%len(p.Deps)].TB = v
	case k == len(fields)+5 && len(p.Deps) > 0:
		p.Deps[at%len(p.Deps)].Step = v
	case k == len(fields)+6:
		c.Custom.Input[at%len(c.Custom.Input)] = v
	default:
		c.Counts = make([]int32, at%12)
		for i := range c.Counts {
			c.Counts[i] = v
		}
	}
}

// FuzzOneSided does the same with small one-sided programs.
func FuzzOneSided(f *testing.F) {
	for i := range uint8(6) {
		f.Add(i, []byte{})
		f.Add(i, []byte{0, 10, 1, 10, 2, 5, 3, 10, 4, 6, 5, 3})
		f.Add(i, []byte{9, 10, 30, 12, 45, 2, 61, 11, 18, 4, 77, 3, 91, 8})
	}
	f.Fuzz(func(t *testing.T, which uint8, edits []byte) {
		p := fuzzedOneSided(t, which)
		for i := 0; i+1 < len(edits) && i < 20; i += 2 {
			editOneSided(p, int(edits[i]), hostile[int(edits[i+1])%len(hostile)])
		}
		a, err := Check(context.Background(), p, Options{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := Check(context.Background(), p, Options{})
		if err != nil || a.Messages.Error() != b.Messages.Error() {
			t.Fatalf("two checks differ: %v\n%v (%v)", a.Messages, b.Messages, err)
		}
		if a.OK == a.Messages.HasErrors() {
			t.Fatal("OK and the messages disagree")
		}
	})
}

func fuzzedOneSided(t testing.TB, which uint8) *ir.Program {
	one := func() *ir.Collective { return demand(t, 1, 1, 1, false, "0 o0 = 0.0") }
	switch which % 6 {
	case 0:
		return oneSided(t, inPlace(ir.AllReduce, 2, 1), "LL double-scratch", swapPackets)
	case 1:
		return oneSided(t, inPlace(ir.AllReduce, 2, 1), "", swapSignals)
	case 2:
		return oneSided(t, one(), "", parts)
	case 3:
		return oneSided(t, one(), "", pipeline)
	case 4:
		return oneSided(t, inPlace(ir.AllReduce, 2, 2), "", switches)
	}
	return oneSided(t, demand(t, 2, 1, 1, false, "1 o0 = 0.0"), "", ports)
}

func editOneSided(p *ir.Program, at int, v int32) {
	o := p.OneSided
	op := &o.Ops[at/4%len(o.Ops)]
	d := &o.Operands[at/3%len(o.Operands)]
	g := &o.GPUs[at%len(o.GPUs)]
	fields := []*int32{&op.Src.Start, &op.Src.End, &op.Dst.Start, &op.Dst.End, &op.Refs.Start, &op.Refs.End, &op.Part, &op.Parts,
		&op.Body.Start, &op.Body.End, &op.UnitChunks, (*int32)(&op.Pos), (*int32)(&d.Rank), &d.Group, (*int32)(&d.Buf), &d.Index, &d.Size,
		&g.Blocks[0].Start, &g.Blocks[0].End, &o.Alignment, &p.GPUs[at%len(p.GPUs)].Scratch, &p.Coll.Split, &p.Coll.ChunkFactor}
	switch k := at % (len(fields) + 8); {
	case k < len(fields):
		*fields[k] = v
	case k == len(fields):
		op.Kind = ir.OpKind(v)
	case k == len(fields)+1:
		op.UnitBytes = int64(v) << 7
	case k == len(fields)+2:
		d.Packets = !d.Packets
	case k == len(fields)+3 && len(o.Refs) > 0:
		o.Refs[at%len(o.Refs)] = v
	case k == len(fields)+4 && len(g.Channels) > 0:
		g.Channels[0].Pair = v
	case k == len(fields)+5 && len(g.Channels) > 0:
		g.Channels[0].Peer = ir.Rank(v)
	case k == len(fields)+6 && len(g.Semaphores) > 0:
		g.Semaphores[0] = v
	default:
		op.Via = ir.ChannelKind(v % 4 & 3)
	}
}
