package plan_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/ir/plan"
)

// two.json cannot be written as it is: max and get at another index are not what
// the executor does. Without those it can, in the shape of two.plan.
func writable(t *testing.T) *ir.Program {
	text := strings.Replace(file(t, "two.json"), `"reduce_op": "max"`, `"reduce_op": "sum"`, 1)
	text = strings.Replace(text, `"dst_buff": [{"type": "o", "index": 3, "size": 1}]},
            {"name": "barrier"`, `"dst_buff": [{"type": "o", "index": 1, "size": 1}]},
            {"name": "barrier"`, 1)
	return mustRead(t, text, false).Program
}

func TestWriteGolden(t *testing.T) {
	p := writable(t)
	var b bytes.Buffer
	if err := plan.Write(&b, p); err != nil {
		t.Fatal(err)
	}
	golden(t, "two.plan", b.String())
	if !roundTrip(t, p) {
		t.Error("the plan cannot be written twice")
	}
}

// A broadcast keeps its root, under a key that the executor ignores, and both
// buffers on every rank.
func TestWriteBroadcast(t *testing.T) {
	p := mustRead(t, strings.Replace(with(move("put", "memory", local("i", 0), remote(0))), `"allreduce"`, `"broadcast", "root": 1`, 1), false).Program
	if p.Coll.Kind != ir.Broadcast || p.Coll.Root != 1 {
		t.Fatalf("got %s from %d", p.Coll, p.Coll.Root)
	}
	if !roundTrip(t, p) {
		t.Error("not written")
	}
}

// Mixed channels are listed by kind, and the program means the same.
func TestWriteRenumbersChannels(t *testing.T) {
	p := mustRead(t, with(`{"name": "signal", "channel_type": "port", "channel_ids": [0]}`), false).Program
	o := p.OneSided
	ch := o.GPUs[0].Channels
	ch[0], ch[1] = ch[1], ch[0] // the port first
	o.Refs[0] = 0
	o.PairChannels()
	var b bytes.Buffer
	if err := plan.Write(&b, p); err != nil {
		t.Fatal(err)
	}
	again := mustRead(t, b.String(), false).Program
	if got := again.OpString(0, 0); got != "signal port on 1" {
		t.Errorf("got %s", got)
	}
}

// grow makes a program of nothing but ops on rank 0.
func grow(t *testing.T, ops ...string) *ir.Program {
	return mustRead(t, with(strings.Join(ops, ",\n")), false).Program
}

func repeat(n int, op string) []string {
	var list []string
	for range n {
		list = append(list, op)
	}
	return list
}

func TestRefuse(t *testing.T) {
	signal := `{"name": "signal", "channel_type": "memory", "channel_ids": [0]}`
	nine := strings.Replace(signal, "[0]", "[0, 0, 0, 0, 0, 0, 0, 0, 0]", 1)
	many := func(n int) string { return strings.Join(repeat(n, local("i", 0)), ",") }
	pipeline := func(n int) string {
		return `{"name": "pipeline", "iter_context": {"unit_size": 1, "num_chunks": 1}, "ops": [` + strings.Join(repeat(n, `{"name": "nop"}`), ",") + `]}`
	}
	change := func(op string, do func(p *ir.Program)) *ir.Program {
		p := grow(t, op)
		do(p)
		return p
	}
	channels := func(n int) *ir.Program { // one thread block that signals on n channels
		return change(signal, func(p *ir.Program) {
			o := p.OneSided
			o.GPUs[0].Channels = nil
			o.Ops = o.Ops[:0]
			for i := range int32(n) {
				o.GPUs[0].Channels = append(o.GPUs[0].Channels, ir.SignalChannel{Kind: ir.ChannelMemory, Peer: 1, Pair: ir.None})
				o.Refs = append(o.Refs, i)
				end := int32(len(o.Refs))
				o.Ops = append(o.Ops, ir.Op{Kind: ir.OpSignal, Via: ir.ChannelMemory, Refs: ir.Span{Start: end - 1, End: end}, Parts: 1})
			}
			o.GPUs[0].Blocks[0] = ir.Span{End: int32(n)}
		})
	}
	custom := func(name string, want []ir.Contribution) *ir.Program {
		return change(signal, func(p *ir.Program) {
			c := ir.NewCollective(ir.Custom, 2, 1, false)
			c.Name = name
			c.Custom = &ir.CustomSpec{Input: []int32{1, 1}, Output: []int32{1, 1}, Expect: [][][]ir.Contribution{{nil}, {want}}}
			p.Coll = c
		})
	}
	// Scratch of 3 chunks: a third of 64 MiB is 22369621.3 bytes, of 32 MiB 11184810.7, each
	// rounded up to a multiple of 16.
	reused := func(double bool, most int64) *ir.Program {
		return change(signal, func(p *ir.Program) {
			p.OneSided.ReuseResources, p.OneSided.DoubleScratch, p.MaxBytes = true, double, most
			p.GPUs[0].Scratch, p.Buffers[ir.FirstScratch].Chunks[0] = 3, 3
		})
	}
	chunks := int64(grow(t, signal).Coll.NumChunks())
	for _, c := range []struct {
		name, code, want string // want "" is accepted
		p                *ir.Program
	}{
		{"64 operations", "", "", grow(t, repeat(64, signal)...)},
		{"65 operations", "plan-limit", "got 65 operations, MSCCL++'s executor has room for 64", grow(t, repeat(65, signal)...)},
		{"a pipeline of 63", "", "", grow(t, pipeline(63))},
		{"a pipeline of 64", "plan-limit", "got 65 operations", grow(t, pipeline(64))},
		{"16 channels", "", "", channels(16)},
		{"17 channels", "plan-limit", "got 17 memory channels, MSCCL++'s executor has room for 16", channels(17)},
		{"9 ids", "plan-limit", "got 9 channels of signal, MSCCL++'s executor has room for 8", grow(t, nine)},
		{"10 sources", "", "", grow(t, move("re", "none", many(10), local("i", 0)))},
		{"11 sources", "plan-limit", "got 11 sources of re, MSCCL++'s executor has room for 10", grow(t, move("re", "none", many(11), local("i", 0)))},
		{"barrier 15", "", "", grow(t, `{"name": "barrier", "barrier_id": 15, "num_threadblocks": 1}`)},
		{"barrier 16", "plan-limit", "got 17 barriers, MSCCL++'s executor has room for 16", grow(t, `{"name": "barrier", "barrier_id": 16, "num_threadblocks": 1}`)},
		{"17 semaphores", "plan-limit", "got 17 semaphores of sem_acquire", grow(t, `{"name": "sem_acquire", "semaphore_ids": [`+strings.Join(repeat(17, "0"), ",")+`]}`)},
		{"threads", "plan-limit", "got 1025 threads", change(signal, func(p *ir.Program) { p.OneSided.ThreadsPerBlock = 1025 })},
		{"unit", "plan-limit", "a unit of 4294967296 bytes", change(pipeline(1), func(p *ir.Program) { p.OneSided.Ops[0].UnitBytes = 1 << 32 })},
		{"min", "plan-refused", "re: MSCCL++'s executor sums", change(move("re", "none", many(2), local("i", 0)), func(p *ir.Program) { p.OneSided.Ops[0].Reduce = ir.ReduceMin })},
		{"flush", "plan-refused", "flush: it does nothing", grow(t, `{"name": "flush", "channel_type": "port", "channel_ids": [0]}`)},
		{"get", "plan-refused", "get: MSCCL++'s executor swaps", grow(t, move("get", "memory", remote(0), local("o", 1)))},
		{"get at the same index", "", "", grow(t, move("get", "memory", remote(1), local("o", 1)))},
		{"put", "plan-refused", "put: MSCCL++'s executor takes all sources", grow(t, move("put", "memory", local("i", 0)+","+local("o", 0), remote(0)+","+remote(1)))},
		{"put via port", "", "", grow(t, strings.Replace(move("put", "port", local("i", 0)+","+local("o", 0), remote(0)+","+remote(1)), "[0]", "[0, 0]", 1))},
		{"own", "plan-refused", "put: the remote buffer is the rank's own", change(move("put", "memory", local("i", 0), remote(0)), func(p *ir.Program) { p.OneSided.Operands[1].Rank = 0 })},
		{"two-sided", "plan-refused", "the program is two-sided", &ir.Program{}},
		{"alltonext", "plan-refused", "alltonext: MSCCL++ has no such collective", change(signal, func(p *ir.Program) { p.Coll = ir.NewCollective(ir.AllToNext, 2, 4, false) })},
		{"test", "", "", custom("test", nil)},
		{"demands", "plan-refused", "a plan can't say what", custom("test", []ir.Contribution{{Rank: 0, Index: 0}})},
		{"a name", "plan-refused", "the name is not its own", custom("allreduce", nil)},
		{"no output", "plan-refused", "rank 0 has 1 input and 0 output chunks", change(signal, func(p *ir.Program) {
			*p = *custom("test", nil)
			p.Coll.Custom.Output[0], p.Coll.Custom.Expect[0] = 0, nil
		})},
		{"scratch that is reused, of any size", "plan-refused", fmt.Sprintf("has scratch for messages of up to %d bytes", chunks*22369632), reused(false, 0)},
		{"scratch that is reused, just enough", "", "", reused(false, chunks*22369632)},
		{"scratch that is reused, too little", "plan-refused", fmt.Sprintf("up to %d bytes", chunks*22369632), reused(false, chunks*22369632+1)},
		{"scratch that is reused, in two halves", "plan-refused", fmt.Sprintf("up to %d bytes", chunks*11184816), reused(true, chunks*22369632)},
		{"a name that is no text", "plan-refused", "is not UTF-8", change(signal, func(p *ir.Program) { p.Name = "\xff" })},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			err := plan.Write(&b, c.p)
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				mustRead(t, b.String(), false)
				return
			}
			var l diag.List
			if !errors.As(err, &l) || len(l) == 0 || l[0].Code != c.code || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s: %s", err, c.code, c.want)
			}
			if b.Len() > 0 {
				t.Errorf("%d bytes were written", b.Len())
			}
		})
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// What the format can say and the executor does otherwise is a warning for those who
// want MSCCL++'s own plan; what can't be said, or overflows a table, is refused as ever.
func TestWriteAsWritten(t *testing.T) {
	two := local("i", 0) + "," + local("i", 0)
	largest := grow(t, move("re", "none", two, local("i", 0)))
	largest.OneSided.Ops[0].Reduce = ir.ReduceMax
	for _, c := range []struct {
		want string // the warning, "" for none
		p    *ir.Program
	}{
		{"", grow(t, move("re", "none", two, local("i", 0)))},
		{"rank 0 thread block 0: re: MSCCL++'s executor sums, whatever the plan says", largest},
		{"rank 0 thread block 0: flush: it does nothing in MSCCL++'s executor; pwsf does", grow(t, `{"name": "flush", "channel_type": "port", "channel_ids": [0]}`)},
		{"rank 0 thread block 0: get: MSCCL++'s executor swaps the indices of source and destination", grow(t, move("get", "memory", remote(0), local("o", 1)))},
	} {
		var b bytes.Buffer
		notes, err := plan.WriteAsWritten(&b, c.p)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, m := range notes {
			got += m.Text
			if m.Severity != diag.Warning || m.Code != "plan-quirk" {
				t.Errorf("%s: severity %v, code %s", m.Text, m.Severity, m.Code)
			}
		}
		if got != c.want {
			t.Errorf("got warnings %q, want %q", got, c.want)
		}
		if back := mustRead(t, b.String(), false).Program; back.OpString(0, 0) != c.p.OpString(0, 0) {
			t.Errorf("it reads back as %s, want %s", back.OpString(0, 0), c.p.OpString(0, 0))
		}
	}
	var b bytes.Buffer
	nine := `{"name": "signal", "channel_type": "memory", "channel_ids": [0, 0, 0, 0, 0, 0, 0, 0, 0]}`
	if _, err := plan.WriteAsWritten(&b, grow(t, nine)); err == nil || diag.Messages(err)[0].Code != "plan-limit" || b.Len() > 0 {
		t.Errorf("nine channels: got %v and %d bytes, want a refusal", err, b.Len())
	}
}

func TestWriteReportsTheWriter(t *testing.T) {
	if err := plan.Write(brokenPipe{}, writable(t)); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %v, want %v", err, io.ErrClosedPipe)
	}
}

// Names of any kind survive.
func TestNames(t *testing.T) {
	for _, name := range []string{"", `a "b" \c`, "größe\n", "<&>", "\u2028"} {
		p := mustRead(t, strings.Replace(with(""), `"m"`, strconv.QuoteToASCII(name), 1), false).Program
		if diff := cmp.Diff(name, p.Name); diff != "" {
			t.Error(diff)
		}
		roundTrip(t, p)
	}
}
