package checker

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// program reads a program in a shorthand of these tests, one thread block a line:
//
//	0 >1 <2 #3: s i0 x2 !; rrc s1 o0 @1.2; nop @0.0
//
// is a thread block of rank 0 that sends to rank 1 and receives from rank 2 on
// channel 3. Its steps have a kind, the places that the kind uses (source before
// destination; one place of rrc and rrcs is both), a count x2, "!" to post, and
// @tb.step for each step waited for. s9 lines give each rank that much scratch.
// Positions are line and step number of file "p".
func program(t testing.TB, c *ir.Collective, text string) *ir.Program {
	t.Helper()
	p := &ir.Program{
		Spec:      &ir.Spec{Name: t.Name(), Coll: c, Positions: []diag.Pos{{}}},
		Transport: ir.Transport{Slots: 2, SlotBytes: 64},
		GPUs:      make([]ir.GPU, c.Ranks),
	}
	for r := range p.GPUs {
		p.GPUs[r].Input = c.InputChunks(ir.Rank(r))
		p.GPUs[r].Output = c.OutputChunks(ir.Rank(r))
		p.GPUs[r].Scratch = 8
	}
	for n, line := range strings.Split(strings.TrimSpace(text), "\n") {
		head, steps, ok := strings.Cut(line, ":")
		if !ok {
			t.Fatalf("line %q: no colon", line)
		}
		rank, tb := -1, ir.ThreadBlock{Send: ir.None, Recv: ir.None}
		for _, w := range strings.Fields(head) {
			switch w[0] {
			case '>':
				tb.Send = ir.Rank(number(t, w[1:]))
			case '<':
				tb.Recv = ir.Rank(number(t, w[1:]))
			case '#':
				tb.Chan = int32(number(t, w[1:]))
			default:
				rank = number(t, w)
			}
		}
		for i, s := range strings.Split(steps, ";") {
			if strings.TrimSpace(s) == "" {
				continue
			}
			st := parseStep(t, p, &tb, s)
			st.Pos = ir.PosID(len(p.Positions))
			p.Positions = append(p.Positions, diag.Pos{File: "p", Line: int32(n + 1), Col: int32(i + 1)})
			tb.Steps = append(tb.Steps, st)
		}
		p.GPUs[rank].TBs = append(p.GPUs[rank].TBs, tb)
	}
	return p
}

func parseStep(t testing.TB, p *ir.Program, tb *ir.ThreadBlock, text string) ir.Step {
	words := strings.Fields(text)
	kind, err := ir.ParseStepKind(words[0])
	if err != nil {
		t.Fatal(err)
	}
	st := newStep(kind, tb)
	st.DepStart, st.DepEnd = int32(len(p.Deps)), int32(len(p.Deps))
	var places []ir.Place
	for _, w := range words[1:] {
		switch w[0] {
		case '!':
			st.Post = true
		case 'x':
			st.Count = int32(number(t, w[1:]))
		case '@':
			a, b, _ := strings.Cut(w[1:], ".")
			p.Deps = append(p.Deps, ir.Dep{TB: int32(number(t, a)), Step: int32(number(t, b))})
			st.DepEnd++
		default:
			places = append(places, ir.Place{Buf: ir.BufferID(strings.IndexByte("ios", w[0])), Index: int32(number(t, w[1:]))})
		}
	}
	if n := len(places); n > 0 {
		if kind.ReadsSrc() {
			st.Src = places[0]
		}
		if kind.WritesDst() {
			st.Dst = places[n-1]
		}
	}
	return st
}

// newStep is a step of the thread block with one chunk and no places.
func newStep(kind ir.StepKind, tb *ir.ThreadBlock) ir.Step {
	st := ir.Step{Kind: kind, Src: ir.NoPlace, Dst: ir.NoPlace, Remote: ir.NoPlace, Count: 1,
		SendPeer: ir.None, RecvPeer: ir.None, Chan: tb.Chan}
	if kind == ir.Nop {
		st.Count = 0
	}
	if kind.Sends() {
		st.SendPeer = tb.Send
	}
	if kind.Receives() {
		st.RecvPeer = tb.Recv
	}
	return st
}

func number(t testing.TB, s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// check judges p with default options.
func check(t testing.TB, p *ir.Program) *Report {
	t.Helper()
	rep, err := Check(context.Background(), p, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// codes lists what a report complains about: each code once, in order, warnings
// and infos with their severity.
func codes(rep *Report) string {
	var out []string
	seen := map[string]bool{}
	for _, m := range rep.Messages {
		c := m.Code
		if m.Severity != diag.Error {
			c = fmt.Sprintf("%s:%s", m.Severity, c)
		}
		if !seen[c] {
			seen[c] = true
			out = append(out, c)
		}
	}
	return strings.Join(out, " ")
}

func inPlace(k ir.CollectiveKind, ranks, factor int32) *ir.Collective {
	return ir.NewCollective(k, ranks, factor, true)
}

func outOfPlace(k ir.CollectiveKind, ranks, factor int32) *ir.Collective {
	return ir.NewCollective(k, ranks, factor, false)
}

// demand is a custom collective: sizes of every rank, and "rank output wanted"
// lines such as "1 o0 = 0.0+1.0" that name contributions rank.index.
func demand(t testing.TB, ranks, in, out int32, inplace bool, lines ...string) *ir.Collective {
	t.Helper()
	c := ir.NewCollective(ir.Custom, ranks, 1, inplace)
	c.Name = "demand"
	u := &ir.CustomSpec{}
	for range ranks {
		u.Input, u.Output = append(u.Input, in), append(u.Output, out)
		u.Expect = append(u.Expect, make([][]ir.Contribution, out))
	}
	for _, l := range lines {
		left, right, _ := strings.Cut(l, "=")
		w := strings.Fields(left)
		var list []ir.Contribution
		for _, term := range strings.Split(right, "+") {
			a, b, _ := strings.Cut(strings.TrimSpace(term), ".")
			list = append(list, ir.Contribution{Rank: ir.Rank(number(t, a)), Index: int32(number(t, b))})
		}
		u.Expect[number(t, w[0])][number(t, w[1][1:])] = list
	}
	c.Custom = u
	return c
}
