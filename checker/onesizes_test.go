package checker

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// twoPlaces hands rank 1 two chunks by way of its scratch. That the first place is free
// rank 1 says when it has read it, that the second one is when it begins: launches of one
// size don't meet. The numbers of the places are open.
const twoPlaces = `
gpu 0
channels memory 1
tb 0
put memory i[0] x1 -> 1.s[FIRST] x1
nop
signal memory on 0
wait memory on 0
nop
put memory i[1] x1 -> 1.s[SECOND] x1
nop
signal memory on 0
wait memory on 0
nop
gpu 1
channels memory 0
tb 0
signal memory on 0
wait memory on 0
nop
copy s[FIRST] x1 -> o[0] x1
nop
signal memory on 0
wait memory on 0
nop
copy s[SECOND] x1 -> o[1] x1
`

func places(first, second string) string {
	return strings.NewReplacer("FIRST", first, "SECOND", second).Replace(twoPlaces)
}

// twoShot is an allreduce in two shots by packets, with one scratch: each rank adds up
// one chunk, in s[0], and gets the other, in s[1].
const twoShot = `
gpu 0
tb 0
ppkt memory i[1] x1 -> 1.s[0] x1 packets
respkt memory i[0] x1, s[0] x1 packets -> i[0] x1, 1.s[1] x1 packets
upkt s[1] x1 packets -> i[1] x1
gpu 1
tb 0
ppkt memory i[0] x1 -> 0.s[0] x1 packets
respkt memory i[1] x1, s[0] x1 packets -> i[1] x1, 0.s[1] x1 packets
upkt s[1] x1 packets -> i[0] x1
`

// unread puts packets where nobody reads them, and lets their rank write packets of its
// own beside them, in two halves of scratch.
const unread = `
gpu 0
tb 0
ppkt memory i[0] x1 -> 1.s[1] x1 packets
gpu 1
tb 0
cpkt i[0] x1 -> s[0] x1 packets
upkt s[0] x1 packets -> o[0] x1
`

// twoReaders is twoPlaces with a second thread block at rank 1 that reads the second
// place, and hands it on to the first block by a semaphore.
const twoReaders = `
gpu 0
channels memory 1
tb 0
put memory i[0] x2 -> 1.s[0] x2
nop
signal memory on 0
wait memory on 0
nop
gpu 1
channels memory 0
semaphores 0 0
tb 0
wait memory on 0
nop
sem_release on 0
copy s[0] x1 -> o[0] x1
nop
sem_acquire on 1
nop
signal memory on 0
tb 1
sem_acquire on 0
nop
copy s[1] x1 -> o[1] x1
nop
sem_release on 1
`

// lentToPort gives a port what lies in s[1], and doesn't write there again before it has
// left; but s[0].
const lentToPort = `
gpu 0
channels port 1
channels memory 1
tb 0
copy i[0] x1 -> s[0] x1
nop
flush port on 0
nop
copy s[0] x1 -> s[1] x1
wait memory on 1
nop
put port on 0 s[1] x1 -> 1.o[0] x1
signal port on 0
gpu 1
channels port 0
channels memory 0
tb 0
signal memory on 1
wait port on 0
nop
`

// fetched lets rank 0 get the second output of rank 1, which rank 1 writes again only
// when rank 0 has begun; and the first one at once.
const fetched = `
gpu 0
channels memory 1
tb 0
signal memory on 0
wait memory on 0
nop
get memory 1.o[1] x1 -> o[0] x1
nop
gpu 1
channels memory 0
tb 0
copy i[0] x1 -> o[0] x1
wait memory on 0
nop
copy i[1] x1 -> o[1] x1
nop
signal memory on 0
`

// plainBeside keeps packets in s[0] and plain data in s[3], behind them.
const plainBeside = `
gpu 0
channels memory 1
tb 0
ppkt memory i[0] x1 -> 1.s[0] x1 packets
wait memory on 0
gpu 1
channels memory 0
tb 0
copy i[0] x1 -> s[3] x1
nop
copy s[3] x1 -> o[1] x1
upkt s[0] x1 packets -> o[0] x1
nop
signal memory on 0
`

// Launches of one size don't meet in any of these programs. In which sizes they do, in
// units of a chunk, follows from where chunks lie: chunk i of size c at i*c.
func TestOneSidedTwoSizes(t *testing.T) {
	two := demand(t, 2, 2, 2, false, "1 o0 = 0.0", "1 o1 = 0.1")
	any := demand(t, 2, 2, 2, false)
	reduce := inPlace(ir.AllReduce, 2, 2)
	for _, c := range []struct {
		name, flags, text string
		coll              *ir.Collective
		least, most       int
		across            int
		want              func(first, second int64) bool // of the sizes told
	}{
		{"the next is larger: s[0] reaches s[1]", "", places("0", "1"), two, 1, 100, 1, func(a, b int64) bool { return b > a }},
		{"the next is smaller: s[1] reaches s[0]", "", places("1", "0"), two, 1, 100, 1, func(a, b int64) bool { return b < a }},
		{"s[0] reaches s[5] when it is more than five times as large", "", places("0", "5"), two, 1, 6, 1, func(a, b int64) bool { return b > 5*a }},
		{"five times is not enough", "", places("0", "5"), two, 1, 5, 0, nil},
		{"s[5] reaches s[0] when it is less than a fifth", "", places("5", "0"), two, 2, 11, 1, func(a, b int64) bool { return 5*b < a }},
		{"a fifth is not", "", places("5", "0"), two, 2, 10, 0, nil},
		{"s[3] meets s[4] only if it is larger, and not by a third", "", places("3", "4"), two, 3, 4, 1, func(a, b int64) bool { return a == 3 && b == 4 }},
		{"places of one size", "", places("0", "1"), two, 7, 7, 0, nil},
		{"two shots, one scratch", "LL", twoShot, reduce, 1, 100, 2, func(a, b int64) bool { return b > a }},
		{"two shots, one scratch, one size", "LL", twoShot, reduce, 9, 9, 0, nil},
		{"two shots, two halves", "LL double-scratch", twoShot, reduce, 1, 100, 0, nil},
		{"three launches", "LL double-scratch", unread, any, 1, 100, 2, func(a, b int64) bool { return a != b }},
		{"three launches of one size", "LL double-scratch", unread, any, 4, 4, 0, nil},
		{"a semaphore for the reader", "", twoReaders, two, 1, 100, 0, nil},
		{"a port still reads", "", lentToPort, demand(t, 2, 1, 1, false, "1 o0 = 0.0"), 1, 100, 1, func(a, b int64) bool { return b > a }},
		{"a port, and a flush at the end", "", strings.Replace(lentToPort, "signal port on 0\n", "signal port on 0\nflush port on 0\n", 1), demand(t, 2, 1, 1, false, "1 o0 = 0.0"), 1, 100, 0, nil},
		{"an output is fetched", "", fetched, demand(t, 2, 2, 2, false, "0 o0 = 1.1", "1 o1 = 1.1"), 1, 100, 1, func(a, b int64) bool { return b > a }},
		{"plain data under packets", "LL", plainBeside, any, 1, 100, 1, func(a, b int64) bool { return 2*b > 3*a }},
		{"plain data beside packets", "LL", plainBeside, any, 3, 3, 0, nil},
	} {
		p := oneSided(t, c.coll, c.flags, c.text)
		unit := int64(16 * c.coll.NumChunks())
		p.MinBytes, p.MaxBytes = unit*int64(c.least), unit*int64(c.most)
		rep := check(t, p)
		if !rep.OK || rep.Races > 0 || rep.RacesAcross != c.across {
			t.Errorf("%s: %d races and %d across, want 0 and %d\n%v", c.name, rep.Races, rep.RacesAcross, c.across, rep.Messages)
			continue
		}
		for _, m := range rep.Messages {
			if a, b := toldSizes(t, m); m.Code != CodeRaceAcross || !c.want(a/unit, b/unit) || a%unit+b%unit > 0 || max(a, b) > p.MaxBytes || min(a, b) < p.MinBytes {
				t.Errorf("%s: sizes %d and %d of unit %d\n%v", c.name, a, b, unit, m)
			}
		}
	}
}

// Where turns of a pipeline lie, by hand: of two chunks of k units from chunk 3 on, in units of
// 32 bytes. One of three turns of a shape stands for the first, all between, or the last of
// those of a size. Parts are cut before: part 1 of 2 is the second half.
func TestGroundOfTurns(t *testing.T) {
	loop := &ir.Op{Kind: ir.OpPipeline, UnitBytes: 32, UnitChunks: 2, Parts: 1}
	for _, c := range []struct {
		part, parts, turn, turns int32
		k, lo, hi                int64 // units, and bytes
	}{
		{0, 1, 0, 3, 5, 240, 272}, {0, 1, 1, 3, 5, 272, 368}, {0, 1, 2, 3, 5, 368, 400}, // five turns
		{0, 1, 0, 3, 3, 144, 176}, {0, 1, 1, 3, 3, 176, 208}, {0, 1, 2, 3, 3, 208, 240}, // three
		{0, 1, 0, 2, 2, 96, 128}, {0, 1, 1, 2, 2, 128, 160}, {0, 1, 0, 1, 1, 48, 80},
		{1, 2, 0, 3, 5, 320, 352}, {1, 2, 1, 3, 5, 352, 400}, {1, 2, 2, 3, 5, 400, 400}, // 80 bytes in turns of 32, then nothing
	} {
		g := ground{sizes: sizeRange{least: 1, most: 100, unit: 16, chunks: 1}, op: &ir.Op{Kind: ir.OpCopy, Part: c.part, Parts: c.parts}, loop: loop,
			operand: &ir.Operand{Buf: ir.Input, Index: 3, Size: 2}, turn: int64(c.turn), turns: int64(c.turns), lo: 0, hi: 1, many: 1}
		if lo, hi := g.at(c.k); lo != c.lo || hi != c.hi {
			t.Errorf("%+v: from %d to %d", c, lo, hi)
		}
	}
}

// toldSizes are the two sizes of a message.
func toldSizes(t *testing.T, m *diag.Message) (first, second int64) {
	t.Helper()
	_, text, _ := strings.Cut(m.Text, "a launch of ")
	head, text, _ := strings.Cut(text, " bytes")
	_, tail, _ := strings.Cut(text, "one of ")
	if n, _ := fmt.Sscan(head, &first); n != 1 {
		t.Fatalf("no sizes: %v", m)
	}
	if n, _ := fmt.Sscan(tail, &second); n != 1 {
		t.Fatalf("no second size: %v", m)
	}
	return first, second
}

// The searches by brute force say the same of the same programs, where they have the
// means: orders of operations don't show what plain data does to packets.
func TestOneSidedTwoSizesByBruteForce(t *testing.T) {
	two := demand(t, 2, 2, 2, false, "1 o0 = 0.0", "1 o1 = 0.1")
	for _, c := range []struct {
		flags, text string
		least, most int
		want        bool
	}{
		{"", places("0", "1"), 1, 2, true}, {"", places("1", "0"), 1, 2, true}, {"", places("0", "1"), 2, 2, false},
		{"", places("0", "5"), 1, 6, true}, {"", places("0", "5"), 1, 5, false}, {"", places("5", "0"), 2, 10, false},
		{"LL", twoShot, 1, 2, true}, {"LL", twoShot, 2, 2, false}, {"LL double-scratch", twoShot, 1, 3, false},
		{"LL double-scratch", unread, 1, 2, true}, {"", twoReaders, 1, 3, false}, {"", lentToPort, 1, 2, true},
		{"", fetched, 1, 2, true},
	} {
		p := oneSided(t, two, c.flags, c.text)
		launches := 2
		if p.OneSided.DoubleScratch {
			launches = 3
		}
		if strings.Contains(c.text, "respkt") || strings.Contains(c.text, "semaphores 0 0") {
			// brute force has no such packets, and signals of one giver only
		} else if within, across := newOneNaive(p).races(launches, c.least, c.most); within || across != c.want {
			t.Errorf("sizes %d to %d: races within %v, across %v, want %v\n%s", c.least, c.most, within, across, c.want, c.text)
		}
		if !strings.Contains(c.text, "respkt") {
			if raced, decided := newOneExplorer(p, launches).races(c.least, c.most); decided && raced != c.want {
				t.Errorf("sizes %d to %d: all orders: a race %v, want %v\n%s", c.least, c.most, raced, c.want, c.text)
			}
		}
	}
}

// Without the semaphore the second thread block may still read when rank 0 goes on. With
// launches of one size that is a race already.
func TestOneSidedReadersNeedSemaphores(t *testing.T) {
	two := demand(t, 2, 2, 2, false, "1 o0 = 0.0", "1 o1 = 0.1")
	text := strings.Replace(strings.Replace(twoReaders, "sem_acquire on 1\nnop\n", "", 1), "\nsem_release on 1", "", 1)
	rep := check(t, oneSided(t, two, "", text))
	if rep.RacesAcross != 1 || strings.Contains(rep.Messages[0].Text, "when a launch") {
		t.Errorf("got %v, want one race of launches of one size", rep.Messages)
	}
}

// What packets are written over in the same launch, or at the same size, has to be no
// packets of that launch either: their flag is the one that is awaited.
func TestOneSidedStalePackets(t *testing.T) {
	any := demand(t, 2, 2, 2, false, "1 o0 = 0.0")
	const twice = `
gpu 0
channels memory 1
tb 0
ppkt memory i[0] x1 -> 1.s[0] x1 packets
wait memory on 0
nop
ppkt memory i[1] x1 -> 1.s[0] x1 packets
gpu 1
channels memory 0
semaphores 0
tb 0
upkt s[0] x1 packets -> o[0] x1
nop
signal memory on 0
tb 1
nop
SYNC
upkt s[0] x1 packets -> o[1] x1
`
	for _, c := range []struct {
		name, text string
		races      bool
	}{
		{"the same place twice", strings.Replace(twice, "SYNC", "nop", 1), true},
		{"told by a signal", strings.Replace(strings.Replace(twice, "SYNC", "wait memory on 0\nnop", 1), "-> 1.s[0] x1 packets\ngpu 1", "-> 1.s[0] x1 packets\nnop\nsignal memory on 0\ngpu 1", 1), false},
		{"plain data first", "gpu 0\ntb 0\nppkt memory i[0] x1 -> 1.s[0] x1 packets\ngpu 1\ntb 0\nupkt s[0] x1 packets -> o[0] x1\nnop\ncopy i[0] x1 -> s[1] x1\n", true},
	} {
		p := oneSided(t, any, "LL double-scratch", c.text)
		p.MinBytes, p.MaxBytes = 64, 64
		rep := check(t, p)
		if found := rep.Races+rep.RacesAcross > 0; found != c.races {
			t.Errorf("%s: races %v, want %v\n%v", c.name, found, c.races, rep.Messages)
		}
	}
}

// Single edits of the programs above, which are right for one size or for all: what the
// checker says of each is what brute force says of a few sizes.
func TestOneSidedTwoSizesMutants(t *testing.T) {
	two := demand(t, 2, 2, 2, false, "1 o0 = 0.0", "1 o1 = 0.1")
	seen := map[string]int{}
	for _, c := range []struct{ flags, text string }{
		{"", places("0", "1")}, {"", places("2", "0")}, {"double-scratch", places("1", "0")}, {"", lentToPort}, {"", fetched},
		{"LL", plainBeside}, {"LL double-scratch", unread}, {"LL double-scratch", plainBeside},
	} {
		to := []string{"s[0]", "s[1]", "s[4]"}
		if c.flags != "" { // brute force doesn't know what plain data does to packets of its own launch
			to = to[2:]
		}
		for _, text := range edits(c.text, to) {
			p := oneSided(t, two, c.flags, text)
			p.MinBytes, p.MaxBytes = 32, 96
			rep := check(t, p)
			n := newOneNaive(p)
			if stuck := n.stuck(); stuck || rep.Has(CodeUndecided) || rep.Has(CodeLeftover) {
				if stuck != rep.Has(CodeDeadlock) {
					t.Errorf("stuck: %v\n%s\n%v", stuck, text, rep.Messages)
				}
				seen["left out"]++
				continue
			}
			launches := 2
			if p.OneSided.DoubleScratch {
				launches = 3
			}
			within, across := n.races(launches, 1, 3)
			if within {
				_, across = n.races(launches, 1, 1)
			}
			if within != (rep.Races > 0) || across != (rep.RacesAcross > 0) {
				t.Errorf("races within %v, across %v; the checker says %d and %d\n%s\n%v", within, across, rep.Races, rep.RacesAcross, text, rep.Messages)
			}
			seen[fmt.Sprint(within, across)]++
		}
	}
	t.Log(seen)
	if seen["false false"] < 20 || seen["false true"] < 100 || seen["true false"]+seen["true true"] < 20 {
		t.Errorf("too few of a kind: %v", seen)
	}
}

// edits are a program without one of its operations, with two neighbors swapped, with a
// signal or wait relaxed, or with another place.
func edits(text string, places []string) []string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	operation := func(i int) bool {
		word, _, _ := strings.Cut(lines[i], " ")
		return word != "gpu" && word != "channels" && word != "tb" && word != "semaphores"
	}
	with := func(i int, repl ...string) string {
		end := i + 1
		if len(repl) == 2 {
			end = i + 2
		}
		return strings.Join(append(append(append([]string{}, lines[:i]...), repl...), lines[end:]...), "\n")
	}
	var out []string
	for i, line := range lines {
		if !operation(i) {
			continue
		}
		out = append(out, with(i))
		if i+1 < len(lines) && operation(i+1) {
			out = append(out, with(i, lines[i+1], line))
		}
		if strings.HasPrefix(line, "signal memory") || strings.HasPrefix(line, "wait memory") {
			out = append(out, with(i, "rlx"+line))
		}
		for _, to := range places {
			for _, from := range []string{"s[0]", "s[1]", "s[2]", "s[3]"} {
				if strings.Contains(line, from) && from != to && !strings.Contains(line, "packets") {
					out = append(out, with(i, strings.Replace(line, from, to, 1)))
				}
			}
		}
	}
	return out
}
