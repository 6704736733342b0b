package compiler

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/mscclsh/mscclsh/ir"
)

// This file judges one-sided programs by running several launches of them, one
// operation at a time, blocks picked at random and each rank in a launch of its
// own. Every access is checked against those before it: threads of a block are
// ordered by nop alone, blocks by signals, semaphores and the ends of kernels.

// stamp is an access: a block in a period between two meetings.
type stamp struct{ block, period, op int32 }

type cell struct {
	value   sum
	writer  stamp
	readers []stamp
}

// packetCell is a chunk of packets. Readers are counted in steps of a block.
type packetCell struct {
	launch  int32
	value   sum
	causes  []int32
	readers []stamp
}

// onesidedBlock is a block, or (without operations) the host of a rank.
type onesidedBlock struct {
	id, rank, tb  int32
	ops           []ir.Op
	at            int
	period, steps int32
	seen, began   []int32 // by block: periods that are over, for all it knows; the same when its kernel began
	heard         []int32 // the same, waited for since the threads met
	quiet, hushed []int32 // like seen and heard, of reads alone, as relaxed signals tell
	causes        []int32 // by block: steps that led to where it is
}

type launchJudge struct {
	p       *ir.Program
	rng     *rand.Rand
	mem     map[ir.Loc]*cell
	packets map[[3]int32]*packetCell // rank, half, index
	blocks  []*onesidedBlock
	of      [][]*onesidedBlock // of a rank: its blocks, then its host
	launch  []int32
	signals map[[2]int32][]notice // rank and channel of the waiting end
	sems    map[[2]int32][]notice
	op      int32
}

type notice struct{ seen, quiet, causes []int32 }

func merge(a, b []int32) {
	for i, n := range b {
		a[i] = max(a[i], n)
	}
}

// runLaunches runs p launches times and says what is wrong.
func runLaunches(p *ir.Program, rng *rand.Rand, launches int32) error {
	j := &launchJudge{p: p, rng: rng, mem: map[ir.Loc]*cell{}, packets: map[[3]int32]*packetCell{},
		launch: filled(len(p.GPUs), -1), signals: map[[2]int32][]notice{}, sems: map[[2]int32][]notice{}}
	for r := range p.GPUs {
		var list []*onesidedBlock
		for tb := range p.OneSided.GPUs[r].Blocks {
			list = append(list, &onesidedBlock{tb: int32(tb), ops: p.OneSided.BlockOps(ir.Rank(r), int32(tb))})
		}
		list = append(list, &onesidedBlock{tb: -1})
		for _, b := range list {
			b.id, b.rank = int32(len(j.blocks)), int32(r)
			j.blocks = append(j.blocks, b)
		}
		j.of = append(j.of, list)
		for s, n := range p.OneSided.GPUs[r].Semaphores {
			if n != 0 {
				return fmt.Errorf("semaphore %d of rank %d starts at %d", s, r, n)
			}
		}
	}
	for _, b := range j.blocks {
		for _, v := range []*[]int32{&b.seen, &b.began, &b.heard, &b.quiet, &b.hushed, &b.causes} {
			*v = make([]int32, len(j.blocks))
		}
		b.at = len(b.ops)
	}
	for {
		moved, over := false, true
		favorite := rng.IntN(len(p.GPUs)) // runs ahead as far as it can
		for {
			more, err := j.rank(favorite, launches)
			if err != nil {
				return err
			}
			moved = moved || more
			if !more || rng.IntN(40) == 0 {
				break
			}
		}
		for _, r := range rng.Perm(len(p.GPUs)) {
			more, err := j.rank(r, launches)
			if err != nil {
				return err
			}
			moved = moved || more
			over = over && j.launch[r] == launches
			if rng.IntN(3) == 0 {
				over = false
				break
			}
		}
		if over {
			return j.left()
		}
		if !moved && !slices.ContainsFunc(j.launch, func(n int32) bool { return n < launches }) {
			return j.left()
		}
		if !moved && j.stuck(launches) {
			return j.whoWaits()
		}
	}
}

// stuck tries every rank once more.
func (j *launchJudge) stuck(launches int32) bool {
	for r := range j.of {
		if more, err := j.rank(r, launches); more || err != nil {
			return false
		}
	}
	return true
}

func (j *launchJudge) whoWaits() error {
	for _, b := range j.blocks {
		if b.at < len(b.ops) {
			return fmt.Errorf("rank %d block %d waits at operation %d (%s)", b.rank, b.tb, b.at, b.ops[b.at].Kind)
		}
	}
	return fmt.Errorf("nothing moves")
}

// left reports signals that nobody waited for: the next launch would take them.
func (j *launchJudge) left() error {
	for k, q := range j.signals {
		if len(q) > 0 {
			return fmt.Errorf("rank %d channel %d: %d signals are left", k[0], k[1], len(q))
		}
	}
	for k, q := range j.sems {
		if len(q) > 0 {
			return fmt.Errorf("rank %d semaphore %d: %d are left", k[0], k[1], len(q))
		}
	}
	return nil
}

// rank runs one operation of a rank, or begins or ends its launch.
func (j *launchJudge) rank(r int, launches int32) (bool, error) {
	blocks := j.of[r][:len(j.of[r])-1]
	host := j.of[r][len(blocks)]
	over := true
	for _, k := range j.rng.Perm(len(blocks)) {
		b := blocks[k]
		if b.at == len(b.ops) {
			continue
		}
		over = false
		done, err := j.step(b)
		if err != nil {
			return false, fmt.Errorf("launch %d: rank %d block %d operation %d (%s): %w", j.launch[r], r, b.tb, b.at, b.ops[b.at].Kind, err)
		}
		if done {
			b.at++
			return true, nil
		}
	}
	if !over || j.launch[r] == launches {
		return false, nil
	}
	return true, j.boundary(host, blocks, launches)
}

// boundary ends a kernel, looks at its outputs, and begins the next.
func (j *launchJudge) boundary(host *onesidedBlock, blocks []*onesidedBlock, launches int32) error {
	for _, b := range blocks {
		b.period++
		merge(host.seen, b.seen)
		merge(host.seen, b.heard)
		merge(host.quiet, b.quiet)
		merge(host.quiet, b.hushed)
		merge(host.causes, b.causes)
		host.seen[b.id] = b.period
	}
	host.period++
	j.op++
	if j.launch[host.rank] >= 0 {
		if err := j.inspect(host); err != nil {
			return fmt.Errorf("launch %d: %w", j.launch[host.rank], err)
		}
	}
	j.launch[host.rank]++
	if j.launch[host.rank] == launches {
		return nil
	}
	r := ir.Rank(host.rank)
	host.period++
	j.op++
	for i := range j.p.GPUs[r].Input {
		var v sum
		if j.p.Coll.Holds(r, i) {
			v = sum{{Rank: r, Index: i + j.launch[r]<<16}: 1}
		}
		if err := j.write(host, j.locs(ir.Operand{Rank: r, Buf: ir.Input, Index: i, Size: 1}), []sum{v}); err != nil {
			return fmt.Errorf("filling the input: %w", err)
		}
	}
	host.period++
	for _, b := range blocks {
		b.at = 0
		copy(b.seen, host.seen)
		b.seen[host.id] = host.period
		copy(b.began, b.seen)
		copy(b.causes, host.causes)
		clear(b.heard)
		copy(b.quiet, host.quiet)
		clear(b.hushed)
	}
	return nil
}

// inspect compares the outputs of a rank, and inputs that should be untouched.
func (j *launchJudge) inspect(host *onesidedBlock) error {
	r, c := ir.Rank(host.rank), j.p.Coll
	look := func(buf ir.BufferID, i int32, want sum) error {
		got, err := j.read(host, j.locs(ir.Operand{Rank: r, Buf: buf, Index: i, Size: 1}))
		if err == nil && got[0].String() != want.String() {
			err = fmt.Errorf("got %v, want %v", got[0], want)
		}
		if err != nil {
			return fmt.Errorf("%s[%d] of rank %d: %w", j.p.BufferName(buf), i, r, err)
		}
		return nil
	}
	for i := range j.p.GPUs[r].Output {
		terms, demanded := c.Expect(nil, r, i)
		if !demanded {
			continue
		}
		want := sum{}
		for _, t := range terms {
			t.Index += j.launch[r] << 16
			want[t]++
		}
		if err := look(ir.Output, i, want); err != nil {
			return err
		}
	}
	for i := range j.p.GPUs[r].Input {
		if !c.InPlace && c.Holds(r, i) {
			if err := look(ir.Input, i, sum{{Rank: r, Index: i + j.launch[r]<<16}: 1}); err != nil {
				return err
			}
		}
	}
	return nil
}

// locs are the chunks of a plain operand.
func (j *launchJudge) locs(o ir.Operand) []ir.Loc {
	var l []ir.Loc
	for i := range o.Size {
		b, k := j.p.Coll.Canon(o.Rank, o.Buf, o.Index+i)
		if b == ir.FirstScratch && j.p.OneSided.DoubleScratch {
			k += j.launch[o.Rank] % 2 << 16
		}
		l = append(l, ir.Loc{Rank: o.Rank, Buf: b, Index: k})
	}
	return l
}

// silent reports whether a read is over for all that b knows.
func (j *launchJudge) silent(s stamp, b *onesidedBlock) bool {
	return j.before(s, b) || s.block != b.id && b.quiet[s.block] > s.period
}

// before reports whether a write is over, and seen, for all that b knows.
func (j *launchJudge) before(s stamp, b *onesidedBlock) bool {
	return s.op == j.op || s.op == 0 || s.block == b.id && s.period < b.period || s.block != b.id && b.seen[s.block] > s.period
}

func (j *launchJudge) cell(l ir.Loc) *cell {
	c := j.mem[l]
	if c == nil {
		c = &cell{}
		j.mem[l] = c
	}
	return c
}

func (j *launchJudge) read(b *onesidedBlock, locs []ir.Loc) ([]sum, error) {
	var values []sum
	for _, l := range locs {
		c := j.cell(l)
		if !j.before(c.writer, b) {
			return nil, fmt.Errorf("reading %v races with a write by rank %d block %d", l, j.blocks[c.writer.block].rank, j.blocks[c.writer.block].tb)
		}
		c.readers = append(c.readers, stamp{b.id, b.period, j.op})
		values = append(values, c.value)
	}
	return values, nil
}

func (j *launchJudge) write(b *onesidedBlock, locs []ir.Loc, values []sum) error {
	for i, l := range locs {
		c := j.cell(l)
		for _, s := range c.readers {
			if !j.silent(s, b) {
				return fmt.Errorf("writing %v races with a read by rank %d block %d", l, j.blocks[s.block].rank, j.blocks[s.block].tb)
			}
		}
		if s := c.writer; !j.before(s, b) {
			return fmt.Errorf("writing %v races with a write by rank %d block %d", l, j.blocks[s.block].rank, j.blocks[s.block].tb)
		}
		*c = cell{value: values[i], writer: stamp{b.id, b.period, j.op}}
	}
	return nil
}

// packet is chunk i of an operand of packets.
func (j *launchJudge) packet(o ir.Operand, i, launch int32) *packetCell {
	k := [3]int32{int32(o.Rank), 0, o.Index + i}
	if j.p.OneSided.DoubleScratch {
		k[1] = launch % 2
	}
	c := j.packets[k]
	if c == nil {
		c = &packetCell{launch: -1}
		j.packets[k] = c
	}
	return c
}

func (j *launchJudge) here(b *onesidedBlock, list []ir.Operand) bool {
	for _, o := range list {
		for i := int32(0); o.Packets && i < o.Size; i++ {
			if j.packet(o, i, j.launch[b.rank]).launch != j.launch[b.rank] {
				return false
			}
		}
	}
	return true
}

// load reads an operand, plain or packets.
func (j *launchJudge) load(b *onesidedBlock, o ir.Operand) ([]sum, error) {
	if !o.Packets {
		return j.read(b, j.locs(o))
	}
	var values []sum
	for i := range o.Size {
		c := j.packet(o, i, j.launch[b.rank])
		c.readers = append(c.readers, stamp{block: b.id, period: b.steps})
		merge(b.causes, c.causes)
		values = append(values, c.value)
	}
	return values, nil
}

func (j *launchJudge) store(b *onesidedBlock, o ir.Operand, values []sum) error {
	if !o.Packets {
		return j.write(b, j.locs(o), values)
	}
	for i := range o.Size {
		c := j.packet(o, i, j.launch[b.rank])
		if c.launch >= 0 && len(c.readers) == 0 {
			return fmt.Errorf("packets at %d of rank %d from launch %d are overwritten unread", o.Index+i, o.Rank, c.launch)
		}
		for _, s := range c.readers {
			if b.causes[s.block] < s.period {
				return fmt.Errorf("packets at %d of rank %d from launch %d may still be read", o.Index+i, o.Rank, c.launch)
			}
		}
		*c = packetCell{launch: j.launch[b.rank], value: values[i], causes: slices.Clone(b.causes)}
	}
	return nil
}

// step runs the operation that b is at, unless it has to wait.
func (j *launchJudge) step(b *onesidedBlock) (bool, error) {
	o, op := j.p.OneSided, &b.ops[b.at]
	refs := o.RefsOf(op)
	j.op++
	b.steps++
	b.causes[b.id] = b.steps
	switch op.Kind {
	case ir.OpSync:
		merge(b.seen, b.heard)
		clear(b.heard)
		merge(b.quiet, b.hushed)
		clear(b.hushed)
		b.period++
	case ir.OpSignal, ir.OpRelaxedSignal:
		for _, c := range refs {
			ch := o.GPUs[b.rank].Channels[c]
			key := [2]int32{int32(ch.Peer), ch.Pair}
			j.signals[key] = append(j.signals[key], j.notice(b, op.Kind == ir.OpSignal))
		}
	case ir.OpSemaphoreRelease:
		for _, s := range refs {
			key := [2]int32{b.rank, s}
			j.sems[key] = append(j.sems[key], j.notice(b, true))
		}
	case ir.OpWait, ir.OpRelaxedWait:
		return take(b, refs, j.signals), nil
	case ir.OpSemaphoreAcquire:
		return take(b, refs, j.sems), nil
	default:
		return j.move(b, op)
	}
	return true, nil
}

// notice is what a signal tells: what came before the last meeting, or, of a
// relaxed one, what was over when the kernel began.
func (j *launchJudge) notice(b *onesidedBlock, release bool) notice {
	n := notice{make([]int32, len(j.blocks)), slices.Clone(b.began), slices.Clone(b.causes)}
	for _, list := range j.of { // what callers wrote is there when their kernels begin
		host := list[len(list)-1].id
		n.seen[host] = b.began[host]
	}
	if release {
		copy(n.seen, b.seen)
		n.seen[b.id] = b.period
		merge(n.quiet, b.quiet)
	}
	return n
}

func take(b *onesidedBlock, refs []int32, from map[[2]int32][]notice) bool {
	for _, c := range refs {
		if len(from[[2]int32{b.rank, c}]) == 0 {
			return false
		}
	}
	for _, c := range refs {
		key := [2]int32{b.rank, c}
		merge(b.heard, from[key][0].seen)
		merge(b.hushed, from[key][0].quiet)
		merge(b.causes, from[key][0].causes)
		from[key] = from[key][1:]
	}
	return true
}

// move runs an operation that moves data.
func (j *launchJudge) move(b *onesidedBlock, op *ir.Op) (bool, error) {
	src, dst := j.p.OneSided.Sources(op), j.p.OneSided.Destinations(op)
	if !j.here(b, src) {
		return false, nil
	}
	var values [][]sum
	for _, o := range src {
		v, err := j.load(b, o)
		if err != nil {
			return false, err
		}
		values = append(values, v)
	}
	if op.Kind.Reduces() {
		for _, v := range values[1:] {
			for i := range v {
				values[0][i] = plus(values[0][i], v[i])
			}
		}
	}
	for i, o := range dst {
		v := values[0]
		if op.Kind.Pairs() {
			v = values[i]
		}
		if err := j.store(b, o, v); err != nil {
			return false, err
		}
	}
	return true, nil
}
