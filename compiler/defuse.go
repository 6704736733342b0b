package compiler

import "github.com/mscclsh/mscclsh/ir"

// defUse answers what fusion asks about a list of instructions, slot by slot.
type defUse struct {
	// srcDef is the instruction whose destination is exactly the source of i and
	// whose value is still there, or None: other locations, another count, two
	// writers, or the collective's own input.
	srcDef []int32
	// dstDef is the same for the destination that a reduce reads.
	dstDef []int32
	// uses is the number of instructions that read any part of i's result.
	uses []int32
	// live says that part of i's result is what the collective leaves behind.
	live []bool
	// skips says that srcDef is a local copy whose own source nobody has written
	// since, so i could read that instead.
	skips []bool
}

// locations numbers every location of a program densely.
type locations struct {
	base  [][]int32 // base[buffer][rank]
	total int32
}

func newLocations(s *ir.Spec) locations {
	l := locations{base: make([][]int32, len(s.Buffers))}
	for b := range s.Buffers {
		l.base[b] = make([]int32, len(s.Buffers[b].Chunks))
		for r, c := range s.Buffers[b].Chunks {
			l.base[b][r] = l.total
			l.total += c
		}
	}
	return l
}

func (l *locations) at(r ir.Rank, p ir.Place) int32 { return l.base[p.Buf][r] + p.Index }

// defUses runs over the instructions that are not dropped, in order, keeping
// the last writer of every location. Linear in chunks touched.
func defUses(spec *ir.Spec, ins []ir.Instr, dropped []bool) *defUse {
	n := len(ins)
	d := &defUse{make([]int32, n), make([]int32, n), make([]int32, n), make([]bool, n), make([]bool, n)}
	loc := newLocations(spec)
	writer := make([]int32, loc.total)
	for i := range writer {
		writer[i] = ir.None
	}
	seen := make([]int32, n) // last user counted for a writer
	for i := range seen {
		seen[i] = ir.None
	}
	// read returns the writer of exactly this range, counting the use of every
	// writer met.
	read := func(i int32, p ir.Place) int32 {
		at := loc.at(ins[i].Rank, p)
		def := writer[at]
		for k := at; k < at+ins[i].Count; k++ {
			w := writer[k]
			if w != def {
				def = ir.None
			}
			if w != ir.None && seen[w] != i {
				seen[w] = i
				d.uses[w]++
			}
		}
		if def != ir.None && (ins[def].Dst != p || ins[def].Count != ins[i].Count) {
			def = ir.None
		}
		return def
	}
	for i := int32(0); i < int32(n); i++ {
		d.srcDef[i], d.dstDef[i] = ir.None, ir.None
		if dropped[i] {
			continue
		}
		in := &ins[i]
		if in.Kind.ReadsSrc() {
			d.srcDef[i] = read(i, in.Src)
			if c := d.srcDef[i]; c != ir.None && ins[c].Kind == ir.Copy {
				at := loc.at(in.Rank, ins[c].Src)
				d.skips[i] = true
				for k := at; k < at+in.Count; k++ {
					d.skips[i] = d.skips[i] && writer[k] < c
				}
			}
		}
		if in.Kind.ReadsDst() {
			d.dstDef[i] = read(i, in.Dst)
		}
		if in.Kind.WritesDst() {
			at := loc.at(in.Rank, in.Dst)
			for k := at; k < at+in.Count; k++ {
				writer[k] = i
			}
		}
	}
	d.findLive(spec, &loc, writer)
	return d
}

// findLive marks the writers of what can be seen when the program has ended.
func (d *defUse) findLive(spec *ir.Spec, loc *locations, writer []int32) {
	for _, b := range []ir.BufferID{ir.Input, ir.Output} {
		for r, n := range spec.Buffers[b].Chunks {
			for i := range n {
				w := writer[loc.base[b][r]+i]
				if w != ir.None && !d.live[w] && spec.Coll.Observable(ir.Rank(r), b, i) {
					d.live[w] = true
				}
			}
		}
	}
}
