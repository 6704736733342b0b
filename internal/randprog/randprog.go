package randprog

import (
	"fmt"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/trace"
)

// Source makes the choices: IntN returns a number in [0, n). *rand.Rand of
// math/rand/v2 is one, and Func makes one of a property test's generator.
type Source interface {
	IntN(n int) int
}

// Func is a Source made of a function, as in
//
//	randprog.Func(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") })
type Func func(n int) int

// IntN calls f.
func (f Func) IntN(n int) int { return f(n) }

// Family selects programs.
type Family uint8

// The families; Mixed takes a known one in four.
const (
	Mixed Family = iota
	Free         // a custom collective and arbitrary operations
	Known        // one of msccl's collectives, implemented at random
)

// Options bound the programs. The zero value of each field means its default.
type Options struct {
	MaxRanks     int // default 5
	MaxChunks    int // most input or output chunks of a rank of a free program; default 6
	MaxOps       int // operations of a free program; known ones take what they need; default 24
	MaxInstances int // default 3
	MaxTerms     int // most contributions summed at one location of a free program; default 12
	Family       Family
	Direct       bool // protocol Direct is among those to choose from
}

func (o *Options) fill() error {
	for _, f := range []struct {
		name  string
		value *int
		usual int
	}{
		{"MaxRanks", &o.MaxRanks, 5}, {"MaxChunks", &o.MaxChunks, 6}, {"MaxOps", &o.MaxOps, 24},
		{"MaxInstances", &o.MaxInstances, 3}, {"MaxTerms", &o.MaxTerms, 12},
	} {
		switch {
		case *f.value < 0:
			return fmt.Errorf("random program: %s: got %d, want 1 or more", f.name, *f.value)
		case *f.value == 0:
			*f.value = f.usual
		}
	}
	if o.Family > Known {
		return fmt.Errorf("random program: unknown family %d", o.Family)
	}
	return nil
}

// Generate makes one program. An error means wrong options or that this package
// and trace.Builder disagree about what is valid or what is computed.
func Generate(t Source, o Options) (*ir.ChunkDAG, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	g := &generator{Source: t, o: o}
	if o.Family == Known || o.Family == Mixed && g.one(4) {
		g.known()
	} else {
		g.free()
	}
	return g.build()
}

// generator collects a program as plain operations, applied to the model as they
// are added, before any of it reaches a trace.Builder.
type generator struct {
	Source
	o     Options
	spec  ir.Spec
	model *model
	names []string // scratch buffers: names[i] is buffer ir.FirstScratch+i
	ops   []op

	factors []int32 // open parallelize fragments
	pending []int32 // fragments to open (n > 0) or close (0) before the next operation
	last    *span   // the result of the latest operation

	reserved map[span]int32 // scratch promised to known's operations, by rank and buffer alone
}

// span is a counted range as a program names it.
type span struct {
	rank         ir.Rank
	buf          ir.BufferID
	index, count int32
}

// style is how the reference to an operation's source is made.
type style uint8

const (
	plain   style = iota // chunk()
	chained              // the result of the operation before
	grouped              // two neighbors joined
	halved               // the first half of twice the range
)

type op struct {
	reduce   bool
	src, dst span
	style    style
	short    bool // a copy that leaves the destination's buffer and index, or scratch index, to the defaults
	hints    trace.Hints
	brackets []int32
}

// one is true for one choice in n, and false for the smallest.
func (g *generator) one(n int) bool { return g.IntN(n) == n-1 }

// between is a number from lo to hi.
func (g *generator) between(lo, hi int) int { return lo + g.IntN(hi-lo+1) }

// header chooses what is independent of the operations.
func (g *generator) header(name string) {
	g.spec.Name = name
	protocols := int(ir.LL128) + 1
	if g.o.Direct {
		protocols = int(ir.Direct) + 1
	}
	g.spec.Protocol = ir.Protocol(g.IntN(protocols))
	g.spec.Instances = int32(g.between(1, g.o.MaxInstances))
	g.spec.Fusion = !g.one(4)
	g.spec.DependenceNop = g.one(8)
	g.spec.CheckXML = true
	if g.one(4) {
		g.spec.Policy = ir.Manual
	}
	// Blocked replication needs segments that may be renumbered together.
	g.spec.Interleaved = g.spec.Coll.Segment() == 0 || !g.one(3)
}

// add appends an operation and applies it to the model.
func (g *generator) add(o op) {
	o.brackets, g.pending = g.pending, nil
	o.hints = trace.NoHints
	g.ops = append(g.ops, o)
	g.model.apply(o)
	dst := o.dst
	g.last = &dst
}

// bracket now and then opens or closes a parallelize fragment. The factors are
// small so that the chunks stay few.
func (g *generator) bracket() {
	if len(g.factors) > 0 && g.one(3) {
		g.factors = g.factors[:len(g.factors)-1]
		g.pending = append(g.pending, 0)
		return
	}
	if len(g.factors) < 2 && g.one(10) {
		n := int32(g.between(2, 3))
		g.factors = append(g.factors, n)
		g.pending = append(g.pending, n)
	}
}

// scratch is the id of a scratch buffer by number.
func scratch(i int) ir.BufferID { return ir.FirstScratch + ir.BufferID(i) }

// build replays the operations through a trace.Builder and compares the results.
func (g *generator) build() (*ir.ChunkDAG, error) {
	g.assign()
	b, err := trace.New(g.spec)
	if err != nil {
		return nil, fmt.Errorf("random program: %w", err)
	}
	for _, name := range g.names {
		b.Scratch(name)
	}
	var last trace.Ref
	for i, o := range g.ops {
		if last, err = replay(b, o, last); err != nil {
			return nil, fmt.Errorf("random program: operation %d %+v: %w", i, o, err)
		}
	}
	if err := replayBrackets(b, g.pending); err != nil {
		return nil, fmt.Errorf("random program: %w", err)
	}
	for range g.factors {
		b.EndParallelize()
	}
	if err := g.model.agrees(b); err != nil {
		return nil, fmt.Errorf("random program: %w", err)
	}
	d, err := b.Finish()
	if err != nil {
		return nil, fmt.Errorf("random program: %w", err)
	}
	return d, nil
}

func replay(b *trace.Builder, o op, last trace.Ref) (trace.Ref, error) {
	if err := replayBrackets(b, o.brackets); err != nil {
		return last, err
	}
	src, err := source(b, o, last)
	if err != nil {
		return last, err
	}
	if o.reduce {
		dst, err := b.Chunk(o.dst.rank, o.dst.buf, o.dst.index, o.dst.count, 0)
		if err != nil {
			return last, err
		}
		return b.Reduce(dst, src, o.hints, 0)
	}
	buf, index := o.dst.buf, o.dst.index
	if o.short {
		index = ir.None
		if o.dst.buf == o.src.buf && o.dst.index == o.src.index {
			buf = ir.None
		}
	}
	return b.Copy(src, o.dst.rank, buf, index, o.hints, 0)
}

func replayBrackets(b *trace.Builder, brackets []int32) error {
	for _, n := range brackets {
		if n == 0 {
			b.EndParallelize()
		} else if err := b.Parallelize(n, 0); err != nil {
			return err
		}
	}
	return nil
}

func source(b *trace.Builder, o op, last trace.Ref) (trace.Ref, error) {
	s := o.src
	switch o.style {
	case chained:
		return last, nil
	case grouped:
		x, err := b.Chunk(s.rank, s.buf, s.index, 1, 0)
		if err != nil {
			return x, err
		}
		y, err := b.Chunk(s.rank, s.buf, s.index+1, s.count-1, 0)
		if err != nil {
			return y, err
		}
		return b.Group(y, x, 0)
	case halved:
		x, err := b.Chunk(s.rank, s.buf, s.index, 2*s.count, 0)
		if err != nil {
			return x, err
		}
		parts, err := b.Split(x, 2, 0)
		if err != nil {
			return x, err
		}
		return parts[0], nil
	}
	return b.Chunk(s.rank, s.buf, s.index, s.count, 0)
}
