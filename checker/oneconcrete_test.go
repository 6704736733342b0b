package checker

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
)

// concrete is a program at one size, with nothing left to depend on it: a chunk is one
// unit of the alignment, of which a chunk of p has so many; pipelines are written out turn
// by turn, and parts are ranges.
func concrete(p *ir.Program, units int32) *ir.Program {
	spec, out, o := *p.Spec, *p, *p.OneSided
	spec.Coll = p.Coll.Refine(units)
	out.Spec, out.OneSided = &spec, &o
	o.GPUs = append([]ir.OneSidedGPU(nil), o.GPUs...)
	o.Ops, o.Operands = nil, nil
	for r := range o.GPUs {
		var blocks []ir.Span
		for _, span := range p.OneSided.GPUs[r].Blocks {
			at := int32(len(o.Ops))
			for i := span.Start; i < span.End; i++ {
				op := &p.OneSided.Ops[i]
				if op.Kind != ir.OpPipeline {
					appendConcrete(&o, p.OneSided, op, units, 0, 1<<20)
					continue
				}
				each := int32(op.UnitBytes) / o.Alignment
				for from := int32(0); from < op.UnitChunks*units; from += each {
					for j := op.Body.Start; j < op.Body.End; j++ {
						appendConcrete(&o, p.OneSided, &p.OneSided.Ops[j], units, from, each)
					}
				}
			}
			blocks = append(blocks, ir.Span{Start: at, End: int32(len(o.Ops))})
		}
		o.GPUs[r].Blocks = blocks
	}
	return &out
}

// appendConcrete appends units from to from+each-1 of what an operation does.
func appendConcrete(o, old *ir.OneSided, op *ir.Op, units, from, each int32) {
	c := *op
	cut := func(list []ir.Operand) ir.Span {
		at := int32(len(o.Operands))
		for _, d := range list {
			whole := int(d.Size * units)
			first, end := 0, 0 // of this part: it gets one unit more as long as there is a rest
			for k := range op.Parts {
				n := whole / int(op.Parts)
				if int(k) < whole%int(op.Parts) {
					n++
				}
				if k == op.Part {
					end = first + n
					break
				}
				first += n
			}
			first = min(first+int(from), end)
			end = min(end, first+int(each))
			d.Index, d.Size = d.Index*units+int32(first), int32(end-first)
			o.Operands = append(o.Operands, d)
		}
		return ir.Span{Start: at, End: int32(len(o.Operands))}
	}
	if len(old.Destinations(op)) > 0 {
		c.Src, c.Dst = cut(old.Sources(op)), cut(old.Destinations(op))
		c.Part, c.Parts = 0, 1
	}
	o.Ops = append(o.Ops, c)
}

// cutMeetings is randomMeetings with phases in pipelines, and operations in parts.
func cutMeetings(rng *rand.Rand) (flags, text string) {
	flags, text = randomMeetings(rng)
	var b strings.Builder
	parts := 1 + rng.IntN(3)
	for _, line := range strings.Split(text, "\n") {
		if word, _, _ := strings.Cut(line, " "); strings.Contains(line, "->") && !strings.Contains(line, "port") && rng.IntN(3) == 0 && word != "" {
			for k := range parts {
				fmt.Fprintf(&b, "%s part %d of %d\n", line, k, parts)
			}
			continue
		}
		b.WriteString(line + "\n")
	}
	return flags, b.String()
}

// randomLoop hands data from rank to rank in pipelines of a few turns, with handshakes at
// random places: before the pipelines, in them, behind them.
func randomLoop(rng *rand.Rand) (flags, text string) {
	var blocks [2][]string
	meet := func(chance int) {
		for r := range 2 {
			if rng.IntN(chance) > 0 {
				blocks[r] = append(blocks[r], "nop", "signal memory on 0")
				blocks[1-r] = append(blocks[1-r], "wait memory on 0", "nop")
			}
		}
	}
	unit := 16 * (1 + rng.IntN(3))
	if rng.IntN(3) > 0 { // a chunk that is free when the launch begins, as its reader says when it has read it
		r, at := rng.IntN(2), rng.IntN(3)
		blocks[r] = append(blocks[r], fmt.Sprintf("put memory i[0] x1 -> %d.s[%d] x1", 1-r, at), "nop", "signal memory on 1", "wait memory on 1", "nop")
		blocks[1-r] = append(blocks[1-r], "wait memory on 1", "nop", fmt.Sprintf("copy s[%d] x1 -> o[0] x1", at), "nop", "signal memory on 1")
	}
	meet(3)
	for range 1 + rng.IntN(2) {
		for r := range blocks {
			blocks[r] = append(blocks[r], fmt.Sprintf("pipeline unit %d chunks 1 {", unit))
		}
		for range 1 + rng.IntN(2) {
			r, at := rng.IntN(2), rng.IntN(3)
			blocks[r] = append(blocks[r], fmt.Sprintf("put memory i[%d] x1 -> %d.s[%d] x1", rng.IntN(2), 1-r, at), "nop", "signal memory on 1")
			blocks[1-r] = append(blocks[1-r], "wait memory on 1", "nop", fmt.Sprintf("copy s[%d] x1 -> o[%d] x1", at, rng.IntN(2)), "nop")
			if rng.IntN(2) == 0 {
				blocks[1-r] = append(blocks[1-r], "signal memory on 1")
				blocks[r] = append(blocks[r], "wait memory on 1", "nop")
			}
		}
		for r := range blocks {
			blocks[r] = append(blocks[r], "}")
		}
		meet(2)
	}
	var b strings.Builder
	for r := range blocks {
		fmt.Fprintf(&b, "gpu %d\nchannels memory %d\nchannels memory %d\ntb 0\nnop\n%s\nnop\n", r, 1-r, 1-r, strings.Join(blocks[r], "\n"))
	}
	if rng.IntN(4) == 0 {
		flags = "double-scratch"
	}
	return flags, b.String()
}

// TestOneSidedShapesAgreeWithSizes: a few shapes say what all sizes do, one by one and two
// by two, with pipelines written out and parts cut at each.
func TestOneSidedShapesAgreeWithSizes(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(*programsOneSided / 4) {
		rng := rand.New(rand.NewPCG(seed, 13))
		coll := demand(t, 2, 2, 2, rng.IntN(2) == 0)
		draw, kind := cutMeetings, "parts"
		if seed%2 == 1 {
			draw, kind = randomLoop, "pipelines"
		}
		flags, text := draw(rng)
		p := oneSided(t, coll, flags, text)
		least, most := randomSizes(rng)
		p.MinBytes, p.MaxBytes = int64(32*least), int64(32*most)
		rep := check(t, p)
		if rep.Has(CodeDeadlock) {
			seen["deadlock"]++
			continue
		}
		within, across := concreteRaces(p, int32(least), int32(most), false)
		if !within {
			same := across
			if _, across = concreteRaces(p, int32(least), int32(most), true); across && !same {
				seen[kind+" two sizes alone"]++
			}
		}
		if within != (rep.Races > 0) || across != (rep.RacesAcross > 0) {
			t.Fatalf("seed %d, sizes %d to %d: races within %v, across %v; the checker says %d and %d\n%s\n%s\n%v", seed, least, most, within, across, rep.Races, rep.RacesAcross,
				flags, text, rep.Messages)
		}
		seen[fmt.Sprint(kind, " ", within, across)]++
	}
	t.Log(seen)
	for _, class := range []string{"parts two sizes alone", "pipelines two sizes alone", "parts false false", "pipelines false false", "parts false true", "pipelines false true"} {
		if seen[class] < *programsOneSided/500 {
			t.Errorf("only %d programs of class %q", seen[class], class)
		}
	}
}

// concreteRaces judges launches of one size each, or of any two.
func concreteRaces(p *ir.Program, least, most int32, two bool) (within, across bool) {
	var all []*oneNaive
	for c := least; c <= most; c++ {
		all = append(all, newOneNaive(concrete(p, c)))
	}
	launches := 2
	if p.OneSided.DoubleScratch {
		launches = 3
	}
	for _, a := range all {
		for _, b := range all {
			if a != b && !two {
				continue
			}
			for _, mid := range all {
				list := []*oneNaive{a, b}
				if launches == 3 {
					list = []*oneNaive{a, mid, b}
				} else if mid != a {
					continue
				}
				if !two && mid != a {
					continue
				}
				g := newOneGraph(list)
				strong, weak := closure(len(g.events), g.strong), closure(len(g.events), g.strong, g.weak)
				w, x := g.judge([]int{1, 1, 1, 1}, strong, weak)
				within, across = within || w, across || x
			}
		}
	}
	return within, across
}
