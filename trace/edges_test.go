package trace_test

import (
	"math/rand/v2"
	"testing"

	"github.com/mscclsh/mscclsh/internal/randprog"
	"github.com/mscclsh/mscclsh/ir"
)

// The order that Edges keeps is the one that conflicts demand: closing both over
// all paths gives the same relation, and every single edge is a conflict of the
// kind it says.
func TestEdgesKeepExactlyTheConflicts(t *testing.T) {
	for seed := range uint64(2000) {
		d, err := randprog.Generate(rand.New(rand.NewPCG(seed, 11)), randprog.Options{})
		if err != nil {
			t.Fatal(err)
		}
		n := len(d.Ops)
		kept, needed := newOrder(n), newOrder(n)
		edges := d.Edges()
		for v := range int32(n) {
			for k, p := range edges.Of(v) {
				if p >= v {
					t.Fatalf("seed %d: operation %d waits for %d, which is not earlier", seed, v, p)
				}
				if got := edges.KindsOf(v)[k]; !conflicts(d, p, v)[got] {
					t.Fatalf("seed %d: operations %d and %d: no %s conflict", seed, p, v, got)
				}
				kept.put(p, v)
			}
			for p := range v {
				if len(conflicts(d, p, v)) > 0 {
					needed.put(p, v)
				}
			}
		}
		for v := range int32(n) {
			for p := range v {
				if kept.before(p, v) != needed.before(p, v) {
					t.Fatalf("seed %d: operation %d before %d: kept %t, needed %t", seed, p, v, kept.before(p, v), needed.before(p, v))
				}
			}
		}
	}
}

// conflicts are the reasons why y must follow x, found by comparing locations.
func conflicts(d *ir.ChunkDAG, x, y int32) map[ir.DepKind]bool {
	found := map[ir.DepKind]bool{}
	a, b := &d.Ops[x], &d.Ops[y]
	each(a.Dst, a.Count, func(w ir.Loc) {
		if inside(w, b.Src, b.Count) || b.Kind == ir.ChunkReduce && inside(w, b.Dst, b.Count) {
			found[ir.DepTrue] = true
		}
		if inside(w, b.Dst, b.Count) {
			found[ir.DepOutput] = true
		}
		if a.Kind == ir.ChunkReduce && inside(w, b.Dst, b.Count) {
			found[ir.DepAnti] = true
		}
	})
	each(a.Src, a.Count, func(r ir.Loc) {
		if inside(r, b.Dst, b.Count) {
			found[ir.DepAnti] = true
		}
	})
	return found
}

func each(l ir.Loc, count int32, do func(ir.Loc)) {
	for range count {
		do(l)
		l.Index++
	}
}

func inside(l, start ir.Loc, count int32) bool {
	return l.Rank == start.Rank && l.Buf == start.Buf && l.Index >= start.Index && l.Index < start.Index+count
}

// order is a relation on operations, closed as it grows: pairs must be added in
// ascending order of the later operation.
type order struct{ rows [][]bool }

func newOrder(n int) order {
	o := order{make([][]bool, n)}
	for i := range o.rows {
		o.rows[i] = make([]bool, n)
	}
	return o
}

func (o order) put(x, y int32) {
	o.rows[y][x] = true
	for k, is := range o.rows[x] {
		o.rows[y][k] = o.rows[y][k] || is
	}
}

func (o order) before(x, y int32) bool { return o.rows[y][x] }
