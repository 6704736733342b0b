package checker

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// TestRaceWitness: every race is told with what shows it and what would end it.
func TestRaceWitness(t *testing.T) {
	shifted := demand(t, 2, 3, 3, true, "0 o2 = 0.1")
	swap := demand(t, 2, 1, 1, true, "0 o0 = 1.0", "1 o0 = 0.0")
	tests := []struct {
		name     string
		coll     *ir.Collective
		protocol ir.Protocol
		text     string
		note     string // of the first race
		fix      string
	}{
		{"what no step before it", outOfPlace(ir.AllReduce, 1, 1), ir.Simple, "0: cpy i0 s0\n0: cpy s0 o0",
			"for example, with nothing done yet, rank 0 tb 1 step 0 (cpy) runs before rank 0 tb 0 step 0 (cpy) begins",
			"let rank 0 tb 1 step 0 (cpy) wait for tb 0 step 0 (cpy)"},
		{"a chunk that comes back as another", shifted, ir.Simple, "0 >1: s i0 x2\n0 <1: r i1 x2\n1 >0 <0: rcs s0 x2",
			"messages of one chunk, as they are at large sizes, are passed on one by one: rank 0 tb 0 step 0 (s) may come to its chunk 1 after rank 0 tb 1 step 0 (r) has come to its chunk 0",
			"let rank 0 tb 1 step 0 (r) wait for tb 0 step 0 (s)"},
		{"a push into memory that is read", outOfPlace(ir.AllToNext, 2, 1), ir.Direct, "0 >1: s i0\n1 <0: r s0\n1: cpy s0 o0",
			"for example, with nothing done yet, rank 1 tb 1 step 0 (cpy) moves its bytes before rank 0 tb 0 step 0 (s) has moved its own",
			"let rank 1 tb 1 step 0 (cpy) wait for tb 0 step 0 (r)"},
		{"a pull from memory that is written", demand(t, 2, 2, 1, true, "1 o0 = 0.0+1.0"), ir.Direct, "0 >1: s i0\n0: cpy i1 i0\n1 <0: rrc i0",
			"for example, with nothing done yet, rank 0 tb 1 step 0 (cpy) moves its bytes before rank 1 tb 0 step 0 (rrc) has moved its own",
			"let rank 0 tb 1 step 0 (cpy) wait for tb 0 step 0 (s)"},
		{"no wait would do", swap, ir.Direct, "0 >1 <1: s i0; r i0\n1 >0 <0: s i0; r i0",
			"for example, with nothing done yet, rank 1 tb 0 step 0 (s) moves its bytes before rank 0 tb 0 step 0 (s) has moved its own", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := program(t, test.coll, test.text)
			if p.Protocol = test.protocol; p.Protocol == ir.Direct {
				p.Transport = ir.Transport{}
			}
			m := firstRace(check(t, p))
			if m == nil {
				t.Fatal("no race")
			}
			if got := m.Notes[len(m.Notes)-1].Text; got != test.note || len(m.Notes) != 3 {
				t.Errorf("got %d notes, the last %q, want %q", len(m.Notes), got, test.note)
			}
			if m.Suggestion != test.fix {
				t.Errorf("got %q, want %q", m.Suggestion, test.fix)
			}
		})
	}
}

func firstRace(rep *Report) *diag.Message {
	for _, m := range rep.Messages {
		if m.Code == CodeRace {
			return m
		}
	}
	return nil
}

var waitAdvice = regexp.MustCompile(`^let rank (\d+) tb (\d+) step (\d+) \(\w+\) wait for tb (\d+) step (\d+) \(\w+\)$`)

// TestRaceAdvice: whoever waits as a race's finding says is rid of it, and of no
// program that ends with endless slots comes one that doesn't.
func TestRaceAdvice(t *testing.T) {
	for _, protocol := range []ir.Protocol{ir.Simple, ir.LL, ir.LL128, ir.Direct} {
		followed, none := 0, 0
		for seed := range uint64(3000) {
			p := randomProgram(seed)
			if p.Protocol = protocol; protocol == ir.Direct {
				p.Transport, p.MinBytes, p.MaxBytes = ir.Transport{}, 0, 0
			} else {
				p.Transport.Slots = enough
			}
			race := firstRace(check(t, p))
			if race == nil {
				continue
			}
			f := waitAdvice.FindStringSubmatch(race.Suggestion)
			if f == nil {
				none++
				continue
			}
			at := make([]int, len(f))
			for i, s := range f[1:] {
				at[i], _ = strconv.Atoi(s)
			}
			tbs := p.GPUs[at[0]].TBs
			st := &tbs[at[1]].Steps[at[2]]
			start := int32(len(p.Deps))
			p.Deps = append(p.Deps, p.Deps[st.DepStart:st.DepEnd]...)
			p.Deps = append(p.Deps, ir.Dep{TB: int32(at[3]), Step: int32(at[4])})
			st.DepStart, st.DepEnd = start, int32(len(p.Deps))
			tbs[at[3]].Steps[at[4]].Post = true
			followed++
			rep := check(t, p)
			for _, m := range rep.Messages {
				if m.Code == CodeDeadlock || m.Code == CodeDependency || m.Text == race.Text {
					t.Errorf("%v, seed %d: %s\n%s\ngives %v", protocol, seed, race.Text, race.Suggestion, rep.Messages)
				}
			}
		}
		if followed < 300 || protocol != ir.Direct && none > 0 {
			t.Errorf("%v: followed %d times, not to be had %d times", protocol, followed, none)
		}
	}
}
