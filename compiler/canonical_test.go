package compiler

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
)

// sumsOf runs a program as written and gives what every location holds as a
// sum with brackets; a+b and b+a are the same bits and are written alike.
func sumsOf(d *ir.ChunkDAG) map[ir.Loc]string {
	m := map[ir.Loc]string{}
	for r := range ir.Rank(d.Coll.Ranks) {
		for i := range d.Coll.InputChunks(r) {
			b, at := d.Coll.Canon(r, ir.Input, i)
			m[ir.Loc{Rank: r, Buf: b, Index: at}] = string(rune('a'+int(r))) + itoa(int(i))
		}
	}
	for _, op := range d.Ops {
		for k := range op.Count {
			src, dst := op.Src, op.Dst
			src.Index, dst.Index = src.Index+k, dst.Index+k
			if op.Kind == ir.ChunkCopy {
				m[dst] = m[src]
				continue
			}
			a, b := m[dst], m[src]
			if strings.Compare(strings.Trim(a, "("), strings.Trim(b, "(")) > 0 {
				a, b = b, a
			}
			m[dst] = "(" + a + "+" + b + ")"
		}
	}
	return m
}

// oneStep is an allreduce in which every rank sends its chunks to all others,
// which add them to their own in the order in which they name them.
func oneStep(t *testing.T, n int32, inPlace bool) *script {
	s := newScript(t, ir.NewCollective(ir.AllReduce, n, 2, inPlace), ir.LL, "a")
	for r := range ir.Rank(n) {
		for q := range ir.Rank(n) {
			if q != r {
				s.copy(in(r, 0), tmp(0, q, 2*int32(r)), 2)
			}
		}
	}
	for r := range ir.Rank(n) {
		if !inPlace {
			s.copy(in(r, 0), out(r, 0), 2)
		}
		for q := range ir.Rank(n) {
			if q != r {
				s.reduce(out(r, 0), tmp(0, r, 2*int32(q)), 2)
			}
		}
	}
	return s
}

// All ranks add a, b, c, d in that order, which is the only one there is by hand.
func TestCanonicalOrder(t *testing.T) {
	for _, inPlace := range []bool{true, false} {
		s := oneStep(t, 4, inPlace)
		before, after := sumsOf(s.d), map[ir.Loc]string(nil)
		r := s.compile(Options{CanonicalOrder: true, Observe: func(st Stage) {
			if st.Pass == "canonical" {
				after = sumsOf(st.Chunks)
			}
		}})
		for rank := range ir.Rank(4) {
			b, i := s.d.Coll.Canon(rank, ir.Output, 1)
			at := ir.Loc{Rank: rank, Buf: b, Index: i}
			if want := "(((a1+b1)+c1)+d1)"; after[at] != want {
				t.Errorf("in place %t, rank %d: got %s, want %s", inPlace, rank, after[at], want)
			}
			if rank == 3 && before[at] == after[at] {
				t.Errorf("the case has no rank that adds otherwise: rank 3 adds %s as written", before[at])
			}
		}
		if err := verify(s.d, r.Program, newRand(), 30); err != nil {
			t.Error(err)
		}
	}
}

// A term that is overwritten before the chain ends can't be added later: the
// chain stays as it is, and so does the result.
func TestCanonicalOrderLeavesWhatMustStay(t *testing.T) {
	s := custom(t, 4, 2)
	s.reduce(in(3, 0), in(2, 0), 1)
	s.copy(in(0, 1), in(2, 0), 1)
	s.reduce(in(3, 0), in(1, 0), 1)
	s.reduce(in(3, 0), in(0, 0), 1)
	s.compile(Options{CanonicalOrder: true, Observe: func(st Stage) {
		if st.Pass == "canonical" {
			if got, want := sumsOf(st.Chunks)[ir.Loc{Rank: 3, Buf: ir.Input}], sumsOf(s.d)[ir.Loc{Rank: 3, Buf: ir.Input}]; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	}})
}

// Random one-step sums, each rank naming its terms in an order of its own, come
// out in the order of the ranks.
func TestCanonicalOrderOfAnyOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for range 50 {
		n := int32(2 + rng.IntN(6))
		s := newScript(t, ir.NewCollective(ir.AllReduce, n, 1, true), ir.LL, "a")
		for r := range ir.Rank(n) {
			for q := range ir.Rank(n) {
				s.copy(in(r, 0), tmp(0, q, int32(r)), 1)
			}
		}
		for r := range ir.Rank(n) {
			for _, q := range rng.Perm(int(n)) {
				if ir.Rank(q) != r {
					s.reduce(in(r, 0), tmp(0, r, int32(q)), 1)
				}
			}
		}
		want := "a0"
		for q := int32(1); q < n; q++ {
			want = "(" + want + "+" + string(rune('a'+q)) + "0)"
		}
		r := s.compile(Options{CanonicalOrder: true, Observe: func(st Stage) {
			if st.Pass != "canonical" {
				return
			}
			for rank := range ir.Rank(n) {
				if got := sumsOf(st.Chunks)[ir.Loc{Rank: rank, Buf: ir.Input}]; got != want {
					t.Errorf("rank %d of %d: got %s, want %s", rank, n, got, want)
				}
			}
		}})
		if err := verify(s.d, r.Program, newRand(), 5); err != nil {
			t.Error(err)
		}
	}
}

// A chain with sums among its terms stays as written: rank 0 adds (b+c) to a, and
// so it does afterwards.
func TestCanonicalOrderLeavesSumsOfSums(t *testing.T) {
	s := newScript(t, ir.NewCollective(ir.AllReduce, 4, 1, true), ir.LL, "a")
	for q := range ir.Rank(3) {
		s.copy(in(q+1, 0), tmp(0, 0, int32(q)), 1)
	}
	s.reduce(tmp(0, 0, 1), tmp(0, 0, 0), 1)
	s.reduce(in(0, 0), tmp(0, 0, 2), 1)
	s.reduce(in(0, 0), tmp(0, 0, 1), 1)
	s.compile(Options{CanonicalOrder: true, Observe: func(st Stage) {
		if st.Pass == "canonical" {
			if got, want := sumsOf(st.Chunks)[ir.Loc{Buf: ir.Input}], "((a0+d0)+(b0+c0))"; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	}})
}
