package compiler_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/internal/randprog"
	"github.com/mscclsh/mscclsh/ir"
)

// opNames lists the operations of a block.
func opNames(q *ir.Program, rank ir.Rank, tb int32) string {
	var names []string
	for _, op := range q.OneSided.BlockOps(rank, tb) {
		names = append(names, op.Kind.String())
	}
	return strings.Join(names, " ")
}

// TestPlans holds plans to what one would write by hand, at rank 0 of 4.
func TestPlans(t *testing.T) {
	for _, c := range []struct {
		name, protocol, inPlace string
		keep                    bool
		blocks                  []string
		scratch                 int32 // chunks
	}{
		// Packets to every owner, all sums at once and out again, three times unpacked.
		{"allreduce_allpairs", "LL", "true", false, []string{"ppkt respkt nop upkt upkt upkt"}, 6},
		// The same with signals: parts land in scratch, sums where they belong.
		{"allreduce_allpairs", "Simple", "true", false, []string{
			"put nop signal wait nop res nop signal wait"}, 3},
		// Kept apart, blocks hand the sum on: with each peer a put, and what it sent is
		// added after the block before has added its own. The last one sends to its peer
		// and lets the others send.
		{"allreduce_allpairs", "Simple", "true", true, []string{
			"put nop signal wait nop re nop sem_release sem_acquire wait nop put nop signal",
			"put nop signal sem_acquire wait nop re nop sem_release sem_acquire nop put nop signal wait",
			"put nop signal sem_acquire wait nop res nop signal sem_release wait"}, 3},
		// Around the ring to add up, then to hand out: sums land in scratch, results
		// where they belong. By the end of a launch all have heard of all: the next one's
		// first put may come at once.
		{"allreduce_ring", "Simple", "true", false, []string{"put nop signal" +
			strings.Repeat(" wait nop res nop signal", 3) + strings.Repeat(" wait nop put nop signal", 2) + " wait"}, 3},
		// Sums that are passed on stay in outputs to be overwritten; no plain scratch.
		{"allreduce_ring", "LL", "false", false, []string{"ppkt respkt respkt respkt rppkt upkt rppkt nop upkt upkt"}, 6},
		// The root hears nothing of the others in a launch, so it asks two of them; its
		// scratch is as large as theirs.
		{"broadcast_tree", "LL", "true", false, []string{"ppkt rlxwait"}, 1},
		// All parts are put where they belong.
		{"allgather_direct", "Simple", "true", false, []string{"rlxsignal rlxwait nop put nop signal wait"}, 0},
		{"alltoall_direct", "Simple", "false", false, []string{"rlxsignal rlxwait nop put copy nop signal wait"}, 0},
	} {
		t.Run(c.name+","+c.protocol, func(t *testing.T) {
			p := program(t, c.name, 4, map[string]string{"protocol": c.protocol, "inplace": c.inPlace})
			q, _, err := compiler.OneSided(context.Background(), p, compiler.OneSidedOptions{KeepBlocks: c.keep})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for tb := range q.OneSided.GPUs[0].Blocks {
				got = append(got, opNames(q, 0, int32(tb)))
			}
			if !slices.Equal(got, c.blocks) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.blocks, "\n"))
			}
			if got := q.GPUs[0].Scratch; got != c.scratch {
				t.Errorf("got %d chunks of scratch, want %d", got, c.scratch)
			}
		})
	}
}

// TestEveryOperationIsNeeded: whatever operation is left out of a plan, it goes
// wrong in some schedule: nothing is there in vain, and the judge sees everything.
func TestEveryOperationIsNeeded(t *testing.T) {
	for _, c := range []struct{ name, protocol string }{
		{"allreduce_allpairs", "Simple"}, {"allreduce_allpairs", "LL"}, {"allreduce_ring", "Simple"},
		{"allreduce_ring", "LL"}, {"broadcast_tree", "LL"}, {"broadcast_tree", "Simple"}, {"reduce_scatter_ring", "Simple"},
	} {
		for _, keep := range []bool{false, true} {
			t.Run(c.name+","+c.protocol, func(t *testing.T) {
				p := program(t, c.name, 4, map[string]string{"protocol": c.protocol})
				q, _, err := compiler.OneSided(context.Background(), p, compiler.OneSidedOptions{KeepBlocks: keep})
				if err != nil {
					t.Fatal(err)
				}
				for i := range q.OneSided.Ops {
					if !caught(without(q, int32(i))) {
						t.Errorf("nothing goes wrong without %s", q.OpString(0, int32(i)))
					}
				}
			})
		}
	}
}

// without is q without operation i.
func without(q *ir.Program, i int32) *ir.Program {
	p, o := *q, *q.OneSided
	o.Ops = slices.Delete(slices.Clone(o.Ops), int(i), int(i)+1)
	o.GPUs = slices.Clone(o.GPUs)
	for g := range o.GPUs {
		o.GPUs[g].Blocks = slices.Clone(o.GPUs[g].Blocks)
		for b := range o.GPUs[g].Blocks {
			s := &o.GPUs[g].Blocks[b]
			if s.Start > i {
				s.Start--
			}
			if s.End > i {
				s.End--
			}
		}
	}
	p.OneSided = &o
	return &p
}

func caught(q *ir.Program) bool {
	for seed := range uint64(60) {
		if compiler.RunLaunches(q, rand.New(rand.NewPCG(seed, 3)), 4) != nil {
			return true
		}
	}
	return false
}

// TestExecutorLimits: blocks that hold too much are cut or joined from fewer
// thread blocks, and what can't be made to fit is refused by the limit's name.
func TestExecutorLimits(t *testing.T) {
	for _, c := range []struct {
		name, protocol string
		ranks          int
		blocks         int
	}{
		// 3 operations, 5 for each of 13 hops, and a wait are 69: two blocks.
		{"allreduce_ring", "Simple", 8, 2},
		// 15 peers of which each writes to one channel and one buffer.
		{"alltoall_direct", "Simple", 16, 1},
		// 31 of them: 16 channels are the limit, so 15 and 15 and 1 thread blocks join.
		{"alltoall_direct", "Simple", 32, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := program(t, c.name, c.ranks, map[string]string{"protocol": c.protocol})
			q, err := export(p, compiler.OneSidedOptions{}, 1)
			if err != nil {
				t.Fatal(err)
			}
			if got := len(q.OneSided.GPUs[0].Blocks); got != c.blocks {
				t.Errorf("got %d blocks, want %d", got, c.blocks)
			}
		})
	}
}

// TestPlanWindow: chunks are at least 16 bytes. Offsets have 32 bits; packets
// share 128 MiB, twice and in two halves.
func TestPlanWindow(t *testing.T) {
	for _, c := range []struct {
		protocol  string
		low, high int64
	}{
		{"Simple", 4 * 16, (1<<32 - 1) / 4 / 16 * 16 * 4},
		{"LL", 4 * 16, (1 << 27) / (4 * 6) / 16 * 16 * 4},
	} {
		p := program(t, "allreduce_allpairs", 4, map[string]string{"protocol": c.protocol})
		q, _, err := compiler.OneSided(context.Background(), p, compiler.OneSidedOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if q.MinBytes != c.low || q.MaxBytes != c.high {
			t.Errorf("%s: got sizes from %d to %d, want %d to %d", c.protocol, q.MinBytes, q.MaxBytes, c.low, c.high)
		}
	}
	p := program(t, "allreduce_allpairs", 4, nil)
	p.MinBytes = 65 // up to the next multiple
	if q, _, err := compiler.OneSided(context.Background(), p, compiler.OneSidedOptions{}); err != nil || q.MinBytes != 128 {
		t.Errorf("got sizes from %d (%v), want from 128", q.MinBytes, err)
	}
	p.MinBytes, p.MaxBytes = 0, 63
	_, _, err := compiler.OneSided(context.Background(), p, compiler.OneSidedOptions{})
	if want := `a plan can't hold "allreduce_allpairs": no multiple of 64 bytes is a size from 0 to 63`; err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}

// TestNotAPlan: what is no sound two-sided program is refused with its place.
func TestNotAPlan(t *testing.T) {
	two := func() *ir.Program { return program(t, "sendrecv", 2, nil) }
	for _, c := range []struct {
		name, want string
		p          func() *ir.Program
	}{
		{"one-sided", "is one-sided already", func() *ir.Program {
			q, _, err := compiler.OneSided(context.Background(), two(), compiler.OneSidedOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return q
		}},
		{"no receive", "the connection from rank 0 to rank 1 on channel 0 has 1 sends and 0 receives", func() *ir.Program {
			p := two()
			p.GPUs[1].TBs = nil
			return p
		}},
		{"counts", "message 0 from rank 0 to rank 1 on channel 0 is sent with 1 chunks and received with 2", func() *ir.Program {
			p := program(t, "broadcast_tree", 2, nil)
			p.GPUs[1].Input, p.GPUs[1].Output, p.GPUs[1].TBs[0].Steps[0].Count = 2, 2, 2
			return p
		}},
		{"bounds", "rank 0 thread block 0 step 0 (s) touches chunks that the rank doesn't have", func() *ir.Program {
			p := two()
			p.GPUs[0].TBs[0].Steps[0].Src.Index = 1
			return p
		}},
		// 1<<27 chunks are allowed in all. One rank has an input here, the other an output; in
		// a plan each has both.
		{"scratch of a rank", "program: 2147483649 chunks in all buffers, want at most 134217728", func() *ir.Program {
			p := two()
			p.GPUs[1].Scratch = 1<<31 - 1
			return p
		}},
		{"scratch of all", "program: 134217729 chunks in all buffers, want at most 134217728", func() *ir.Program {
			p := two()
			p.GPUs[0].Scratch, p.GPUs[1].Scratch = 1<<26, 1<<26-1
			return p
		}},
		{"scratch of all, padded", "134217730 chunks in all buffers, want at most 134217728", func() *ir.Program {
			p := two()
			p.GPUs[0].Scratch, p.GPUs[1].Scratch = 1<<26, 1<<26-2
			return p
		}},
		{"direct", `program "sendrecv": protocol Direct is for target native: messages of target plain go through slots`, func() *ir.Program {
			p := two()
			p.Protocol, p.Transport = ir.Direct, ir.Transport{}
			return p
		}},
		{"cycle", "rank 0 thread block 0 can't get past step 0 (s)", func() *ir.Program {
			p := two()
			p.Deps = []ir.Dep{{TB: 0, Step: 0}}
			p.GPUs[0].TBs[0].Steps[0].DepEnd = 1
			return p
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := compiler.OneSided(context.Background(), c.p(), compiler.OneSidedOptions{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v, want one with %q", err, c.want)
			}
		})
	}
}

// A sum of packets that is only passed on is kept where nobody misses anything, but
// not a few chunks beside its own operand: i[1], which is overwritten afterwards, is
// free, and i[0] is not.
func TestSumKeptBesideItsOperand(t *testing.T) {
	const text = `program "beside"
collective custom name "beside" ranks 3 factor 1 split 1 in-place
input 4*3
output 4*3
expect 1 0: 1.0
expect 1 1: 2.2
expect 1 2: 2.3
expect 2 0: 0.0 1.0
expect 2 1: 0.1 1.1
topology none
protocol LL
policy auto instances 1
transport slots 8 bytes 32768
window min 0 max 0
gpu 0 input=4 output=4 scratch=0
tb 0 send=1 recv=-1 ch=0
  0 s i[0] x2 to 1
gpu 1 input=4 output=4 scratch=0
tb 0 send=2 recv=0 ch=0
  0 rrs i[0] x2 from 0 to 2 post
tb 1 send=-1 recv=2 ch=0
  0 r -> i[1] x2 from 2 wait 0:0
gpu 2 input=4 output=4 scratch=0
tb 0 send=-1 recv=1 ch=0
  0 r -> i[0] x2 from 1
tb 1 send=1 recv=-1 ch=0
  0 s i[2] x2 to 1
`
	exportText(t, text)
}

// exportText makes plans of a program that is right.
func exportText(t *testing.T, text string) {
	t.Helper()
	p, err := ir.ParseProgram(strings.NewReader(text), "text")
	if err != nil {
		t.Fatal(err)
	}
	for _, keep := range []bool{false, true} {
		if _, err := export(p, compiler.OneSidedOptions{KeepBlocks: keep}, 1); err != nil {
			t.Errorf("keep blocks %v: %v", keep, err)
		}
	}
}

// Rank 1 reads packets of rank 0 and sends others to rank 2, by threads that needn't
// be the same: rank 2 doesn't learn from them that rank 0 has begun, to whose scratch
// it writes.
func TestPacketsTellTheirThreadsAlone(t *testing.T) {
	const text = `program "threads"
collective custom name "threads" ranks 4 factor 1 split 1
input 2*4
output 2*4
expect 0 0: 2.0
expect 1 0: 0.0
expect 2 0: 3.0
expect 3 0: 2.0
topology none
protocol LL
policy auto instances 1
transport slots 8 bytes 32768
window min 0 max 0
gpu 0 input=2 output=2 scratch=0
tb 0 send=1 recv=-1 ch=0
  0 s i[0] x1 to 1
tb 1 send=-1 recv=2 ch=0
  0 r -> o[0] x1 from 2
gpu 1 input=2 output=2 scratch=0
tb 0 send=-1 recv=0 ch=0
  0 r -> o[0] x1 from 0
tb 1 send=2 recv=3 ch=0
  0 rcs -> o[1] x1 from 3 to 2
gpu 2 input=2 output=2 scratch=0
tb 0 send=3 recv=-1 ch=0
  0 s i[0] x1 to 3
tb 1 send=-1 recv=1 ch=0
  0 r -> o[0] x1 from 1
tb 2 send=0 recv=-1 ch=0
  0 s i[0] x1 to 0
gpu 3 input=2 output=2 scratch=0
tb 0 send=1 recv=2 ch=0
  0 r -> o[0] x1 from 2
  1 s i[0] x1 to 1
`
	exportText(t, text)
}

// Random programs become plans that do the same, launch after launch, whatever
// they were compiled for. Refused are sizes smaller than a chunk's alignment.
func TestRandomProgramsExport(t *testing.T) {
	for seed := range uint64(programs(1000)) {
		rng := rand.New(rand.NewPCG(seed, 2))
		d, err := randprog.Generate(rng, randprog.Options{})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		o := options(rng, d.Protocol)
		r, err := compiler.Compile(context.Background(), d, o)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		_, err = export(r.Program, compiler.OneSidedOptions{KeepBlocks: rng.IntN(2) == 0}, seed)
		var m *diag.Message
		small := o.MaxBytes > 0 && o.MaxBytes < 32*int64(r.Program.Coll.NumChunks()) // or narrowed for slots
		if small && errors.As(err, &m) && m.Code == "plan-limit" {
			continue
		}
		if err != nil {
			t.Fatalf("seed %d, %s, %s, options %+v: %v", seed, d.Coll, d.Protocol, o, err)
		}
	}
}
