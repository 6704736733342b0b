package cpu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime"
)

// oneProgram reads a one-sided program of a collective: what comes after the header
// of its text form, without the numbers of operations.
func oneProgram(t testing.TB, collective, protocol, text string) *ir.Program {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "program \"t\"\ncollective %s\ntopology none\nprotocol %s\npolicy auto instances 1\nwindow min 0 max 0\none-sided threads 64 align 16\n",
		collective, protocol)
	depth, numbers := 0, [2]int{}
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		switch word, _, _ := strings.Cut(line, " "); word {
		case "gpu", "channels", "semaphores", "group":
		case "tb":
			numbers = [2]int{}
		case "}":
			depth--
		default:
			line = fmt.Sprintf("  %d %s", numbers[depth], line)
			numbers[depth]++
			if strings.HasSuffix(line, "{") {
				depth++
				numbers[depth] = 0
			}
		}
		b.WriteString(line + "\n")
	}
	p, err := ir.ParseProgram(strings.NewReader(b.String()), "p")
	if err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	return p
}

// allPairsPackets is an allreduce: every rank sends its half of the others' chunk,
// reduces its own, and sends the result.
const allPairsPackets = `
gpu 0 input=2 output=2 scratch=4
tb 0
ppkt memory i[1] x1 -> 1.s[0] x1 packets part 0 of 2
respkt memory i[0] x1, s[0] x1 packets -> i[0] x1, 1.s[1] x1 packets part 0 of 2
upkt s[1] x1 packets -> i[1] x1
tb 1
ppkt memory i[1] x1 -> 1.s[0] x1 packets part 1 of 2
respkt memory i[0] x1, s[0] x1 packets -> i[0] x1, 1.s[1] x1 packets part 1 of 2
gpu 1 input=2 output=2 scratch=4
tb 0
ppkt memory i[0] x1 -> 0.s[0] x1 packets
respkt memory i[1] x1, s[0] x1 packets -> i[1] x1, 0.s[1] x1 packets
upkt s[1] x1 packets -> i[0] x1
`

// staged is an allgather out of place of two ranks that reads remotely and hands
// on to a second thread block, in units of 48 bytes.
const staged = `
gpu 0 input=1 output=2 scratch=1
channels memory 1
semaphores 0
tb 0
signal memory on 0
wait memory on 0
nop
copy i[0] x1 -> o[0] x1
pipeline unit 48 chunks 1 {
get memory 1.i[0] x1 -> s[0] x1
nop
sem_release on 0
}
nop
signal memory on 0
wait memory on 0
tb 1
pipeline unit 48 chunks 1 {
sem_acquire on 0
nop
copy s[0] x1 -> o[1] x1
}
barrier on 0 of 2
tb 2
barrier on 0 of 2
gpu 1 input=1 output=2 scratch=1
channels memory 0
semaphores 0
tb 0
signal memory on 0
wait memory on 0
nop
copy i[0] x1 -> o[1] x1
nop
get memory 0.i[0] x1 -> o[0] x1
nop
signal memory on 0
wait memory on 0
`

const switched = `
group i: 0 1 2
gpu 0 input=3 output=3 scratch=0
channels memory 1 2
tb 0
signal memory on 0 1
wait memory on 0 1
nop
glres switch group 0.i[0] x1 -> group 0.i[0] x1
nop
signal memory on 0 1
wait memory on 0 1
gpu 1 input=3 output=3 scratch=0
channels memory 0 2
tb 0
signal memory on 0 1
wait memory on 0 1
nop
glres switch group 0.i[1] x1 -> group 0.i[1] x1
nop
signal memory on 0 1
wait memory on 0 1
gpu 2 input=3 output=3 scratch=0
channels memory 0 1
tb 0
signal memory on 0 1
wait memory on 0 1
nop
glres switch group 0.i[2] x1 -> group 0.i[2] x1
nop
signal memory on 0 1
wait memory on 0 1
`

func oneSidedPrograms(t testing.TB) map[string]*ir.Program {
	return map[string]*ir.Program{
		"packets":  oneProgram(t, "allreduce ranks 2 factor 2 split 1 in-place", "LL", allPairsPackets),
		"staged":   oneProgram(t, "allgather ranks 2 factor 1 split 1", "Simple", staged),
		"switched": oneProgram(t, "allreduce ranks 3 factor 3 split 1 in-place", "Simple", switched),
	}
}

func TestOneSided(t *testing.T) {
	for name, p := range oneSidedPrograms(t) {
		unit := int64(p.Coll.NumChunks()) * 16
		for _, size := range []int64{unit, 3 * unit, 7 * unit, 4096 * unit} {
			for _, d := range []runtime.DType{runtime.FP32, runtime.BF16, runtime.FP8E4M3, runtime.Int64} {
				for op := range runtime.Avg + 1 {
					o := Options{Bytes: size, DType: d, Op: op, Iterations: 3, Exact: true}
					if !d.Float() {
						o.Exact = false
					}
					rep, err := Run(context.Background(), p, o)
					if err != nil || !rep.Verified || rep.Compared == 0 || rep.Moved == 0 {
						t.Fatalf("%s, %d bytes of %v, %v: %v %+v", name, size, d, op, err, rep)
					}
				}
			}
		}
	}
}

func TestOneSidedReport(t *testing.T) {
	p := oneSidedPrograms(t)["packets"]
	rep, err := Run(context.Background(), p, Options{Bytes: 64, Events: true, KeepOutputs: true, Inputs: [][]byte{ints(1, 16), ints(100, 16)}, DType: runtime.Int32})
	if err != nil {
		t.Fatal(err)
	}
	// Each rank sends one chunk of 32 bytes to be reduced, and one that is.
	if rep.Moved != 4*32 || rep.Messages != 0 || rep.Workers != 3 || len(rep.Events) != 8 || rep.Tiles != 1 {
		t.Errorf("%+v", rep)
	}
	for r, got := range rep.Outputs {
		if string(got) != string(ints(101, 16)) {
			t.Errorf("rank %d: %v", r, got)
		}
	}
}

// ints are n int32 of value v, little endian.
func ints(v byte, n int) []byte {
	b := make([]byte, 4*n)
	for i := range n {
		b[4*i] = v
	}
	return b
}

func TestOneSidedRefusals(t *testing.T) {
	programs := oneSidedPrograms(t)
	for _, c := range []struct {
		name, program string
		o             Options
		spoil         func(p *ir.Program)
		code          string
	}{
		{"size", "packets", Options{Bytes: 48}, nil, "size"},
		{"size of elements", "switched", Options{Bytes: 52}, nil, "size"},
		{"window", "packets", Options{Bytes: 64}, func(p *ir.Program) { p.MinBytes = 128 }, "size-window"},
		{"alignment", "packets", Options{Bytes: 64}, func(p *ir.Program) { p.OneSided.Alignment = 2 }, "program"},
		{"alignment and type", "switched", Options{Bytes: 48, DType: runtime.Int64}, func(p *ir.Program) { p.OneSided.Alignment = 4 }, "dtype"},
		{"units and type", "staged", Options{Bytes: 64, DType: runtime.Int64}, func(p *ir.Program) {
			for i := range p.OneSided.Ops {
				p.OneSided.Ops[i].UnitBytes = 44
			}
		}, "dtype"},
		{"fixed reduction", "switched", Options{Bytes: 48, Op: runtime.Min}, func(p *ir.Program) {
			for i := range p.OneSided.Ops {
				p.OneSided.Ops[i].Reduce = ir.ReduceSum
			}
		}, "op"},
		{"bounds", "packets", Options{Bytes: 64}, func(p *ir.Program) { p.OneSided.Operands[1].Index = 4 }, "bounds"},
		{"group", "switched", Options{Bytes: 48}, func(p *ir.Program) { p.OneSided.Operands[1].Group = 4 }, "program"},
		{"rank", "packets", Options{Bytes: 64}, func(p *ir.Program) { p.OneSided.Operands[1].Rank = 4 }, "program"},
		{"kind", "packets", Options{Bytes: 64}, func(p *ir.Program) { p.OneSided.Ops[1].Kind = 99 }, "program"},
		{"channel", "switched", Options{Bytes: 48}, func(p *ir.Program) { p.OneSided.Refs[1] = 4 }, "program"},
		{"unpaired", "switched", Options{Bytes: 48}, func(p *ir.Program) { p.OneSided.GPUs[0].Channels[0].Pair = ir.None }, "program"},
	} {
		p := programs[c.program]
		if c.spoil != nil {
			p = oneSidedPrograms(t)[c.program]
			c.spoil(p)
		}
		_, err := Run(context.Background(), p, c.o)
		var m *diag.Message
		if !errors.As(err, &m) || m.Code != c.code {
			t.Errorf("%s: got %v, want code %s", c.name, err, c.code)
		}
	}
}

// TestOneSidedFixedReduction: where a program fixes its reduction it is used.
func TestOneSidedFixedReduction(t *testing.T) {
	p := oneSidedPrograms(t)["packets"]
	for i := range p.OneSided.Ops {
		p.OneSided.Ops[i].Reduce = ir.ReduceMax
	}
	rep, err := Run(context.Background(), p, Options{Bytes: 1 << 10, Op: runtime.Max})
	if err != nil || !rep.Verified {
		t.Errorf("%v %+v", err, rep)
	}
}

func TestOneSidedDeadlock(t *testing.T) {
	checkGoroutines(t)
	for _, c := range []struct{ protocol, text, want string }{
		{"Simple", "gpu 0 input=1 output=1 scratch=1\nchannels memory 1\nsemaphores 0\ntb 0\nwait memory on 0\ntb 1\nsem_acquire on 0\ntb 2\nbarrier on 0 of 2\ngpu 1 input=1 output=1 scratch=1\nchannels memory 0\ntb 0\nnop",
			`run: deadlock: every thread block that is not done waits, 3 of 4
    rank 0 thread block 0 op 0 (wait) waits for signal 1 of rank 1 on its channel 0 (it has given 0)
    rank 0 thread block 1 op 0 (sem_acquire) waits for semaphore 0, which is 0
    rank 0 thread block 2 op 0 (barrier) waits for 1 more at its barrier for 2`},
		{"LL", "gpu 0 input=1 output=1 scratch=1\ntb 0\nupkt s[0] x1 packets -> o[0] x1\ngpu 1 input=1 output=1 scratch=1",
			`run: deadlock: every thread block that is not done waits, 1 of 1
    rank 0 thread block 0 op 0 (upkt) waits for a packet in its scratch`},
	} {
		p := oneProgram(t, "allreduce ranks 2 factor 1 split 1 in-place", c.protocol, c.text)
		_, err := Run(context.Background(), p, Options{Bytes: 64, Exact: true})
		var m *diag.Message
		if !errors.As(err, &m) || m.Code != "deadlock" || err.Error() != c.want {
			t.Errorf("got %v\nwant %s", err, c.want)
		}
	}
}

// TestPacketsGoBitByBit: rank 0 passes two chunks on, of which it gets the second
// only when rank 1 has got the first.
func TestPacketsGoBitByBit(t *testing.T) {
	p := oneProgram(t, "sendrecv ranks 2 factor 1 split 1 root 1 peer 0", "LL", `
gpu 0 input=0 output=1 scratch=2
tb 0
rppkt memory s[0] x2 packets -> 1.s[0] x2 packets
tb 1
upkt s[1] x1 packets -> o[0] x1
gpu 1 input=1 output=0 scratch=2
tb 0
ppkt memory i[0] x1 -> 0.s[0] x1 packets
rppkt memory s[0] x1 packets -> 0.s[1] x1 packets
`)
	rep, err := Run(context.Background(), p, Options{Bytes: 1 << 10, Exact: true})
	if err != nil || !rep.Verified {
		t.Errorf("%v %+v", err, rep)
	}
}

// TestOneSidedChaos: whatever the order, the same bits.
func TestOneSidedChaos(t *testing.T) {
	for name, p := range oneSidedPrograms(t) {
		var first [][]byte
		for seed := range uint64(100) {
			rep, err := Run(context.Background(), p, Options{Bytes: int64(p.Coll.NumChunks()) * 112, DType: runtime.FP16, KeepOutputs: true,
				Iterations: 2, Chaos: &Chaos{Seed: seed}})
			if err != nil || !rep.Verified {
				t.Fatalf("%s, seed %d: %v %+v", name, seed, err, rep)
			}
			if first == nil {
				first = rep.Outputs
			}
			for r := range first {
				if !bytes.Equal(first[r], rep.Outputs[r]) {
					t.Fatalf("%s, seed %d: rank %d differs from seed 0", name, seed, r)
				}
			}
		}
	}
}

// FuzzOneSided sets fields of small programs to anything: a run ends, with a report
// or with a message, and never in a panic.
func FuzzOneSided(f *testing.F) {
	names := []string{"packets", "staged", "switched"}
	for i := range uint8(3) {
		f.Add(i, []byte{})
		f.Add(i, []byte{0, 10, 1, 10, 2, 5, 3, 10, 4, 6, 5, 3})
		f.Add(i, []byte{9, 10, 30, 12, 45, 2, 61, 11, 18, 4, 77, 3, 91, 8})
	}
	values := []int32{0, 1, 2, 3, 5, -1, -2, 71, 1 << 20, 1<<31 - 1, -1 << 31}
	f.Fuzz(func(t *testing.T, which uint8, edits []byte) {
		p := oneSidedPrograms(t)[names[which%3]]
		o := p.OneSided
		for i := 0; i+1 < len(edits) && i < 20; i += 2 {
			at, v := int(edits[i]), values[int(edits[i+1])%len(values)]
			op, d, g := &o.Ops[at%len(o.Ops)], &o.Operands[at%len(o.Operands)], &o.GPUs[at%len(o.GPUs)]
			fields := []*int32{&op.Src.Start, &op.Dst.End, &op.Refs.Start, &op.Refs.End, &op.Part, &op.Parts, &op.Body.Start, &op.Body.End,
				&op.UnitChunks, (*int32)(&op.Pos), (*int32)(&d.Rank), &d.Group, (*int32)(&d.Buf), &d.Index, &d.Size, &g.Blocks[0].Start,
				&g.Blocks[0].End, &o.Alignment, &p.GPUs[0].Scratch}
			if k := at / 8 % (len(fields) + 4); k < len(fields) {
				*fields[k] = v
			} else if k == len(fields) {
				op.Kind = ir.OpKind(v)
			} else if k == len(fields)+1 {
				d.Packets = !d.Packets
			} else if len(g.Channels) > 0 {
				g.Channels[0].Pair, g.Channels[0].Peer = v, ir.Rank(edits[i])
			}
		}
		rep, err := Run(context.Background(), p, Options{Bytes: int64(p.Coll.NumChunks()) * 48, Exact: true})
		if rep == nil && err == nil {
			t.Fatal("neither report nor error")
		}
	})
}
