package checker

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// swapPackets is a program in which two ranks add up each other's input by packets.
const swapPackets = `
gpu 0
tb 0
ppkt memory i[0] x1 -> 1.s[0] x1 packets
repkt i[0] x1, s[0] x1 packets -> i[0] x1
gpu 1
tb 0
ppkt memory i[0] x1 -> 0.s[0] x1 packets
repkt i[0] x1, s[0] x1 packets -> i[0] x1
`

// swapSignals does the same with puts: entry, data, and exit are synchronized.
const swapSignals = `
gpu 0
channels memory 1
tb 0
signal memory on 0
wait memory on 0
nop
put memory i[0] x1 -> 1.s[0] x1
nop
signal memory on 0
wait memory on 0
nop
re i[0] x1, s[0] x1 -> i[0] x1
gpu 1
channels memory 0
tb 0
signal memory on 0
wait memory on 0
nop
put memory i[0] x1 -> 0.s[0] x1
nop
signal memory on 0
wait memory on 0
nop
re i[0] x1, s[0] x1 -> i[0] x1
`

// without drops the n-th line (from 1) that holds the words.
func without(text, words string, n int) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, words) {
			if n--; n == 0 {
				return strings.Join(append(append([]string{}, lines[:i]...), lines[i+1:]...), "\n")
			}
		}
	}
	panic("no such line: " + words)
}

func TestOneSided(t *testing.T) {
	reduce := inPlace(ir.AllReduce, 2, 1)
	for _, c := range []struct {
		name  string
		coll  *ir.Collective
		flags string
		text  string
		want  string // codes
		races [2]int
	}{
		{"packets, one scratch", reduce, "LL", swapPackets, "warning:race-across", [2]int{0, 2}},
		{"packets, two scratches", reduce, "LL double-scratch", swapPackets, "", [2]int{0, 0}},
		{"signals", reduce, "", swapSignals, "", [2]int{0, 0}},
		{"no entry", reduce, "", without(without(without(without(swapSignals, "signal", 1), "wait", 1), "signal", 2), "wait", 2),
			"warning:race-across", [2]int{0, 2}},
		{"no nop before the signal", reduce, "", without(swapSignals, "nop", 2), "race", [2]int{1, 0}},
		{"no nop after the wait", reduce, "", without(swapSignals, "nop", 3), "race", [2]int{1, 0}},
		{"a wait less", reduce, "", without(swapSignals, "wait", 2), "warning:leftover race warning:race-across", [2]int{1, 1}},
		{"a signal less", reduce, "", without(swapSignals, "signal", 2), "deadlock", [2]int{0, 0}},
	} {
		rep := check(t, oneSided(t, c.coll, c.flags, c.text))
		if got := codes(rep); got != c.want || [2]int{rep.Races, rep.RacesAcross} != c.races {
			t.Errorf("%s: got %q, %d races and %d across, want %q and %v\n%v", c.name, got, rep.Races, rep.RacesAcross, c.want, c.races, rep.Messages)
		}
	}
}

// parts is a chunk copied by two thread blocks.
const parts = `
gpu 0
tb 0
copy i[0] x1 -> o[0] x1 part 0 of 2
tb 1
copy i[0] x1 -> o[0] x1 part 1 of 2
`

// pipeline hands a chunk from one thread block to another in units.
const pipeline = `
gpu 0
semaphores 0
tb 0
pipeline unit 64 chunks 1 {
copy i[0] x1 -> s[0] x1
nop
sem_release on 0
}
tb 1
pipeline unit 64 chunks 1 {
sem_acquire on 0
nop
copy s[0] x1 -> o[0] x1
}
`

const switches = `
group i: 0 1
gpu 0
channels memory 1
tb 0
signal memory on 0
wait memory on 0
nop
glres switch group 0.i[0] x1 -> group 0.i[0] x1
nop
signal memory on 0
wait memory on 0
gpu 1
channels memory 0
tb 0
signal memory on 0
wait memory on 0
nop
glres switch group 0.i[1] x1 -> group 0.i[1] x1
nop
signal memory on 0
wait memory on 0
`

const ports = `
gpu 0
channels port 1
tb 0
signal port on 0
wait port on 0
nop
put port on 0 i[0] x1 -> 1.o[0] x1
signal port on 0
flush port on 0
gpu 1
channels port 0
tb 0
signal port on 0
wait port on 0
nop
wait port on 0
`

func sub(text, old, new string) string { return strings.Replace(text, old, new, 1) }

func TestOneSidedMachinery(t *testing.T) {
	one := demand(t, 1, 1, 1, false, "0 o0 = 0.0")
	send := demand(t, 2, 1, 1, false, "1 o0 = 0.0")
	for _, c := range []struct {
		name  string
		coll  *ir.Collective
		text  string
		want  string
		races [2]int
	}{
		{"parts", one, parts, "", [2]int{}},
		{"a part twice", one, sub(parts, "part 1 of 2", "part 0 of 2"), "wrong-result race", [2]int{1, 0}},
		{"parts that don't add up", one, sub(parts, "part 1 of 2", "part 1 of 3"), "wrong-result race", [2]int{1, 0}},
		{"pipeline", one, pipeline, "", [2]int{}},
		{"pipeline without a nop", one, sub(pipeline, "nop\nsem_release", "sem_release"), "race", [2]int{1, 0}},
		{"pipeline that acquires once", one, sub(pipeline, "pipeline unit 64 chunks 1 {\nsem_acquire on 0\nnop\n", "sem_acquire on 0\nnop\npipeline unit 64 chunks 1 {\n"),
			"warning:leftover race", [2]int{1, 0}},
		{"units of different sizes", one, sub(pipeline, "unit 64", "unit 32"), "warning:leftover race", [2]int{1, 0}},
		{"switch", inPlace(ir.AllReduce, 2, 2), switches, "", [2]int{}},
		{"switch, relaxed exit", inPlace(ir.AllReduce, 2, 2), sub(switches, "nop\nsignal memory on 0\nwait memory on 0\ngpu 1", "nop\nrlxsignal memory on 0\nwait memory on 0\ngpu 1"),
			"warning:race-across", [2]int{0, 1}},
		{"port", send, ports, "", [2]int{}},
		{"port without flush", send, sub(ports, "flush port on 0\n", ""), "warning:race-across", [2]int{0, 1}},
		{"port, signaled before", send, sub(ports, "put port on 0 i[0] x1 -> 1.o[0] x1\nsignal port on 0", "signal port on 0\nput port on 0 i[0] x1 -> 1.o[0] x1"),
			"race-across", [2]int{0, 1}},
		{"barrier", one, "gpu 0\ntb 0\ncopy i[0] x1 -> s[0] x1\nbarrier on 0 of 2\ntb 1\nbarrier on 0 of 2\ncopy s[0] x1 -> o[0] x1", "", [2]int{}},
		{"no barrier", one, "gpu 0\ntb 0\ncopy i[0] x1 -> s[0] x1\ntb 1\ncopy s[0] x1 -> o[0] x1", "race", [2]int{1, 0}},
		{"the same threads", one, "gpu 0\ntb 0\ncopy i[0] x1 -> s[0] x1\ncopy s[0] x1 -> o[0] x1", "", [2]int{}},
		{"a semaphore for two", one, "gpu 0\nsemaphores 1\ntb 0\nsem_acquire on 0\nnop\ncopy i[0] x1 -> o[0] x1\nnop\nsem_release on 0\ntb 1\nsem_acquire on 0\nnop\nsem_release on 0",
			"warning:undecided", [2]int{}},
		{"a semaphore that starves one", one, "gpu 0\nsemaphores 1\ntb 0\nsem_acquire on 0\nnop\ncopy i[0] x1 -> o[0] x1\ntb 1\nsem_acquire on 0\nsem_release on 0",
			"warning:undecided deadlock", [2]int{}},
		{"clobbered input", one, "gpu 0\ntb 0\ncopy i[0] x1 -> o[0] x1\nnop\nre i[0] x1, o[0] x1 -> i[0] x1", "input-clobbered", [2]int{}},
		{"mixed reductions", inPlace(ir.AllReduce, 1, 2), "gpu 0\ntb 0\nre max i[0] x1 -> s[0] x1\nre min i[1] x1 -> s[1] x1", "bad-step", [2]int{}},
	} {
		rep := check(t, oneSided(t, c.coll, "", c.text))
		if got := codes(rep); got != c.want || [2]int{rep.Races, rep.RacesAcross} != c.races {
			t.Errorf("%s: got %q, %d races and %d across, want %q and %v\n%v", c.name, got, rep.Races, rep.RacesAcross, c.want, c.races, rep.Messages)
		}
	}
}

func TestOneSidedSizes(t *testing.T) {
	for _, c := range []struct {
		text     string
		min, max int64
		units    []int32
	}{
		{"gpu 0\ntb 0\nnop", 0, 0, []int32{1}},
		{parts, 0, 0, []int32{2, 3, 1}},
		{sub(sub(parts, "0 of 2", "0 of 3"), "1 of 2", "2 of 3"), 0, 0, []int32{3, 4, 1, 2}},
		{sub(parts, "1 of 2", "2 of 3"), 0, 0, []int32{6, 7, 8, 9, 10, 11, 1, 2}}, // two kinds of cuts: every remainder
		{pipeline, 0, 0, []int32{2, 3, 6}},                                        // one, two and three turns
		{pipeline, 0, 64, []int32{2}},                                             // no size has two
		{pipeline, 0, 128, []int32{2, 3}},                                         // none has three
		{pipeline, 1 << 20, 1 << 21, []int32{6}},                                  // all have many
	} {
		p := oneSided(t, demand(t, 1, 1, 1, false), "", c.text)
		p.MinBytes, p.MaxBytes = c.min, c.max
		var got []int32
		for _, s := range shapes(p, Options{}) {
			got = append(got, s.units)
		}
		if !slices.Equal(got, c.units) {
			t.Errorf("%s\nsizes %d to %d: %v units a chunk, want %v", c.text, c.min, c.max, got, c.units)
		}
	}
}

func TestOneSidedDeadlockSaysWhoWaits(t *testing.T) {
	cycle := "gpu 0\nchannels memory 1\ntb 0\nwait memory on 0\nsignal memory on 0\ngpu 1\nchannels memory 0\ntb 0\nwait memory on 0\nsignal memory on 0"
	nobody := "gpu 0\nsemaphores 0\ntb 0\nsem_acquire on 0\ntb 1\nbarrier on 3 of 2"
	for _, c := range []struct {
		ranks       int32
		flags, text string
		want        string
	}{
		{2, "", cycle, `p:4:1: deadlock of 2 thread blocks: a cycle of 2 thread blocks, each waiting for the next
    p:4:1: rank 0 tb 0 op 0 (wait) waits for signal 1 on rank 1 channel 0 to rank 0, which gives 1 in all (by rank 1 tb 0)
    p:9:1: rank 1 tb 0 op 0 (wait) waits for signal 1 on rank 0 channel 0 to rank 1, which gives 1 in all (by rank 0 tb 0)`},
		{1, "", nobody, `p:4:1: deadlock of 2 thread blocks: it waits for what nobody does
    p:4:1: rank 0 tb 0 op 0 (sem_acquire) waits for rank 0 semaphore 0, which starts with 0 and is released 0 times in all`},
		{1, "LL", "gpu 0\ntb 0\nupkt s[0] x1 packets -> o[0] x1\ntb 1\nupkt s[1] x1 packets -> o[0] x1\ncpkt i[0] x1 -> s[0] x1 packets",
			`p:3:1: deadlock of 2 thread blocks: 2 thread blocks, each waiting for the next, and the last for what nobody does
    p:3:1: rank 0 tb 0 op 0 (upkt) waits for a packet at rank 0 scratch[0]
    p:5:1: rank 0 tb 1 op 0 (upkt) waits for a packet at rank 0 scratch[1]`},
	} {
		rep := check(t, oneSided(t, demand(t, c.ranks, 1, 1, false), c.flags, c.text))
		if got := rep.Messages.Error(); got != c.want {
			t.Errorf("got\n%s\nwant\n%s", got, c.want)
		}
	}
}

// TestPacketsGoUnitByUnit: rank 0 passes two chunks on, of which it gets the second
// only when rank 1 has got the first: a cycle operation by operation, none unit by
// unit.
func TestPacketsGoUnitByUnit(t *testing.T) {
	rep := check(t, oneSided(t, demand(t, 2, 1, 1, false, "0 o0 = 0.0"), "LL", `
gpu 0
tb 0
cpkt i[0] x1 -> s[0] x1 packets
rppkt memory s[0] x2 packets -> 1.s[0] x2 packets
tb 1
upkt s[1] x1 packets -> o[0] x1
gpu 1
tb 0
rppkt memory s[0] x1 packets -> 0.s[1] x1 packets
`))
	if rep.Has(CodeDeadlock) || rep.Has(CodeWrongResult) {
		t.Error(rep.Messages)
	}
}

// A packet tells of what was read for it, not of what the other packets of its operation
// are made of: rank 1 may overwrite what rank 0 has still to be sent.
func TestPacketsTellOfTheirLane(t *testing.T) {
	const text = "gpu 0\ntb 0\nupkt s[0] x1 packets -> o[0] x1\n" +
		"gpu 1\ntb 0\nupkt s[0] x1 packets -> o[0] x1\nnop\nput memory o[0] x1 -> 2.s[4] x1\n" +
		"gpu 2\ntb 0\ncopy i[0] x1 -> s[4] x1\nnop\nppkt memory "
	for _, c := range []struct {
		sources string
		races   int
	}{
		{"s[4] x1 -> 1.s[0] x1 packets\nnop\nppkt memory i[0] x1 -> 0.s[0] x1 packets", 0},
		// The put meets the read, and the copy that it would come after with the read.
		{"i[0] x1, s[4] x1 -> 1.s[0] x1 packets, 0.s[0] x1 packets", 2},
		{"s[4] x1, i[0] x1 -> 1.s[0] x1 packets, 0.s[0] x1 packets", 0},
	} {
		rep := check(t, oneSided(t, demand(t, 3, 1, 1, false, "0 o0 = 2.0"), "LL double-scratch", text+c.sources+"\n"))
		if rep.Races != c.races {
			t.Errorf("%s: got %d races, want %d\n%v", c.sources, rep.Races, c.races, rep.Messages)
		}
	}
}

func TestOneSidedStructure(t *testing.T) {
	good := func() *ir.Program { return oneSided(t, inPlace(ir.AllReduce, 2, 1), "", swapSignals) }
	for _, c := range []struct {
		name  string
		spoil func(p *ir.Program)
		want  string
	}{
		{"bounds", func(p *ir.Program) { p.OneSided.Operands[0].Index = 5 }, "bounds"},
		{"rank", func(p *ir.Program) { p.OneSided.Operands[1].Rank = 9 }, "bounds"},
		{"buffer", func(p *ir.Program) { p.OneSided.Operands[1].Buf = 7 }, "bounds"},
		{"group", func(p *ir.Program) { p.OneSided.Operands[1].Group = 0 }, "bounds"},
		{"empty group", func(p *ir.Program) {
			p.OneSided.Groups = []ir.SwitchGroup{{}}
			p.OneSided.Operands[1].Group = 0
		}, "bounds"},
		{"source in a group", func(p *ir.Program) {
			p.OneSided.Groups = []ir.SwitchGroup{{Buf: ir.Input, Ranks: []ir.Rank{0, 1}}}
			p.OneSided.Operands[0].Group = 0
		}, "bad-step"},
		{"an operation of nobody", func(p *ir.Program) { p.OneSided.GPUs[0].Blocks[0].End-- }, "bad-program"},
		{"size", func(p *ir.Program) { p.OneSided.Operands[1].Size = 2 }, "bad-step"},
		{"packets", func(p *ir.Program) { p.OneSided.Operands[1].Packets = true }, "bad-step"},
		{"kind", func(p *ir.Program) { p.OneSided.Ops[0].Kind = 200 }, "bad-step"},
		{"part", func(p *ir.Program) { p.OneSided.Ops[0].Parts = 0 }, "bad-step"},
		{"span", func(p *ir.Program) { p.OneSided.Ops[0].Refs.End = 1 << 20 }, "bad-step"},
		{"block", func(p *ir.Program) { p.OneSided.GPUs[0].Blocks[0].End = 1 << 20 }, "bad-program"},
		{"channel", func(p *ir.Program) { p.OneSided.Refs[0] = 4 }, "bad-step"},
		{"unpaired", func(p *ir.Program) {
			p.OneSided.GPUs[0].Channels[0].Pair, p.OneSided.GPUs[1].Channels[0].Pair = ir.None, ir.None
		}, "bad-step"},
		{"paired with another", func(p *ir.Program) { p.OneSided.GPUs[0].Channels[0].Peer = 0 }, "bad-program"},
		{"alignment", func(p *ir.Program) { p.OneSided.Alignment = 0 }, "bad-program"},
		{"sizes", func(p *ir.Program) { p.GPUs[0].Input = 2 }, "bad-program"},
		{"ranks", func(p *ir.Program) { p.OneSided.GPUs = p.OneSided.GPUs[:1] }, "bad-program"},
		{"window", func(p *ir.Program) { p.MinBytes, p.MaxBytes = 2, 1 }, "bad-program"},
		{"scratch", func(p *ir.Program) { p.GPUs[0].Scratch = 1 << 30 }, "bad-program"},
	} {
		p := good()
		c.spoil(p)
		if got := codes(check(t, p)); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// An operation that has races with the callers of several ranks, or with one caller on
// several chunks, is an error if one of these races is: a warning doesn't hide it.
func TestOneSidedLostWriteIsNoWarning(t *testing.T) {
	const entry = "gpu 0\nchannels %[1]s 1\ntb 0\nwait %[1]s on 0\nnop\n"
	const peer = "gpu 1\nchannels %[1]s 0\ntb 0\nsignal %[1]s on 0\n"
	// The last two inputs of rank 1 are its output in place; nobody reads the first one.
	scatter := inPlace(ir.ReduceScatter, 2, 1)
	for _, c := range []struct {
		name  string
		coll  *ir.Collective
		text  string
		races int
		want  string
	}{
		{"a port put reads its own rank's input and writes the peer's output", demand(t, 2, 1, 1, false, "1 o0 = 0.0"),
			"put port on 0 i[0] x1 -> 1.o[0] x1\n", 2, "rank 1 output[0]: rank 0 tb 0 op 2 (put) may still write it"},
		{"a put writes what nobody reads, then the output", demand(t, 2, 2, 2, false, "1 o1 = 0.1"),
			"put memory i[0] x2 -> 1.o[0] x2\n", 1, "rank 1 output[1]: rank 0 tb 0 op 2 (put) may still write it"},
		{"a put in place writes what the caller only writes, then what it reads", scatter,
			"put memory i[0] x2 -> 1.i[0] x2\n", 1, "rank 1 input[1]: rank 0 tb 0 op 2 (put) may still write it"},
	} {
		kind := "memory"
		if strings.Contains(c.text, "port") {
			kind = "port"
		}
		rep := check(t, oneSided(t, c.coll, "", fmt.Sprintf(entry, kind)+c.text+fmt.Sprintf(peer, kind)))
		lost := 0
		for _, m := range rep.Messages {
			if m.Code == CodeRaceAcross && m.Severity == diag.Error {
				lost++
				if !strings.HasPrefix(m.Text, c.want) || !strings.Contains(m.Text, "the caller of rank 1 reads") {
					t.Errorf("%s: got %q, want %q", c.name, m.Text, c.want)
				}
			}
		}
		if lost != 1 || rep.RacesAcross != c.races {
			t.Errorf("%s: got %d errors and %d races across, want 1 and %d\n%v", c.name, lost, rep.RacesAcross, c.races, rep.Messages)
		}
	}
}

// Packets of chunk i lie where plain data of chunks 2i and 2i + 1 does. A program in
// which they meet is told so, with each by its own number.
func TestOneSidedPacketsMeetPlainData(t *testing.T) {
	send := demand(t, 2, 1, 1, false, "1 o0 = 0.0")
	const packet = "gpu 0\ntb 0\nppkt memory i[0] x1 -> 1.s[1] x1 packets\ngpu 1\n"
	for _, c := range []struct{ name, text, want string }{
		{"in no order", packet + "tb 0\nupkt s[1] x1 packets -> o[0] x1\ntb 1\ncopy i[0] x1 -> s[3] x1\n",
			"rank 1 tb 1 op 0 (copy) writes plain data, rank 1 scratch[3]"},
		{"in order, so that the packet is lost", packet + "channels memory 0\ntb 0\nwait memory on 0\ncopy i[0] x1 -> s[2] x1\nnop\nupkt s[1] x1 packets -> o[0] x1\n",
			"rank 1 tb 0 op 1 (copy) writes plain data there"},
	} {
		text := c.text
		if strings.Contains(text, "wait") {
			text = strings.Replace(strings.Replace(text, "gpu 0\n", "gpu 0\nchannels memory 1\n", 1), "packets\ngpu 1", "packets\nnop\nsignal memory on 0\ngpu 1", 1)
		}
		rep := check(t, oneSided(t, send, "LL double-scratch", text+"\n"))
		found := false
		for _, m := range rep.Messages {
			for _, n := range m.Notes {
				found = found || n.Text == c.want && m.Suggestion == packetsRoom && m.Severity == diag.Error
			}
		}
		if !found {
			t.Errorf("%s: want a note %q and advice\n%v", c.name, c.want, rep.Messages)
		}
	}
	plain := check(t, oneSided(t, demand(t, 1, 1, 1, false, "0 o0 = 0.0"), "LL double-scratch",
		"gpu 0\ntb 0\ncopy i[0] x1 -> s[3] x1\ntb 1\ncopy s[3] x1 -> o[0] x1\ncpkt i[0] x1 -> s[5] x1 packets\n"))
	if got := plain.Messages[0].Text; !strings.HasPrefix(got, "rank 0 scratch[3]: ") {
		t.Errorf("got %q, want plain data by its own number", got)
	}
}

// What lies where a packet is, is half data and half flags: whoever reads it as plain data
// gets neither, in either half, whoever he is and however he waited.
func TestOneSidedPacketsAreNoPlainData(t *testing.T) {
	own := demand(t, 1, 1, 1, false, "0 o0 = 0.0")
	other := demand(t, 2, 1, 1, false, "1 o0 = 0.0")
	const sent = "gpu 0\nchannels memory 1\ntb 0\nppkt memory i[0] x1 -> 1.s[0] x1 packets\nnop\nsignal memory on 0\ngpu 1\nchannels memory 0\ntb 0\nwait memory on 0\nnop\n"
	const packed = "gpu 0\ntb 0\ncpkt i[0] x1 -> s[0] x1 packets\nnop\n"
	for _, c := range []struct {
		name  string
		coll  *ir.Collective
		text  string
		right bool
	}{
		{"unpacked", own, packed + "upkt s[0] x1 packets -> o[0] x1", true},
		{"copied", own, packed + "copy s[0] x1 -> o[0] x1", false},
		{"the other half", own, packed + "copy s[1] x1 -> o[0] x1", false},
		{"copied on", own, packed + "copy s[0] x1 -> s[6] x1\nnop\ncopy s[6] x1 -> o[0] x1", false},
		{"plain data over it", own, packed + "upkt s[0] x1 packets -> s[6] x1\nnop\ncopy s[6] x1 -> s[0] x1\nnop\ncopy s[0] x1 -> o[0] x1", true},
		{"plain data over the other half alone", own, packed + "upkt s[0] x1 packets -> s[6] x1\nnop\ncopy s[6] x1 -> s[1] x1\nnop\ncopy s[0] x1 -> o[0] x1", false},
		{"sent and unpacked", other, sent + "upkt s[0] x1 packets -> o[0] x1", true},
		{"sent and copied", other, sent + "copy s[0] x1 -> o[0] x1", false},
		{"put", other, "gpu 0\nchannels memory 1\ntb 0\ncpkt i[0] x1 -> s[0] x1 packets\nnop\nput memory s[0] x1 -> 1.o[0] x1\nnop\nsignal memory on 0\ngpu 1\nchannels memory 0\ntb 0\nwait memory on 0", false},
		{"fetched", other, "gpu 0\nchannels memory 1\ntb 0\ncpkt i[0] x1 -> s[0] x1 packets\nnop\nsignal memory on 0\ngpu 1\nchannels memory 0\ntb 0\nwait memory on 0\nnop\nget memory 0.s[0] x1 -> o[0] x1", false},
	} {
		rep := check(t, oneSided(t, c.coll, "LL double-scratch", c.text+"\n"))
		if rep.OK != c.right {
			t.Errorf("%s: got %v, want %v\n%v", c.name, rep.OK, c.right, rep.Messages)
		}
	}
}

// A thread block that has no operations is nobody who has to know anything: a script may
// give its blocks any numbers.
func TestOneSidedIdleThreadBlocksCostNothing(t *testing.T) {
	one := demand(t, 1, 1, 1, false, "0 o0 = 0.0")
	var text strings.Builder
	for b := range 60_000 {
		fmt.Fprintf(&text, "tb %d\n", b)
	}
	if rep := check(t, oneSided(t, one, "", "gpu 0\n"+text.String()+"copy i[0] x1 -> o[0] x1\n")); len(rep.Messages) != 0 {
		t.Errorf("idle blocks: got %v", rep.Messages)
	}
	text.Reset()
	for b := range maxOneBlocks + 1 {
		fmt.Fprintf(&text, "tb %d\nnop\n", b)
	}
	rep := check(t, oneSided(t, one, "", "gpu 0\n"+text.String()+"copy i[0] x1 -> o[0] x1\n"))
	if got := codes(rep); got != CodeTooLarge {
		t.Errorf("busy blocks: got %q, want %q", got, CodeTooLarge)
	}
}
