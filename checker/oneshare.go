package checker

import (
	"context"
	"maps"
	"slices"
)

// Where several thread blocks signal on one channel, or wait there, and so with
// semaphores, it matters who comes first. Often that is no question: one block hands the
// turn on to the next. So runs take down which gives and takes come before which others in
// every order of events.
//
// Who takes for the k-th time at least, counting those before him for certain, gets by only
// when k gives have been made. A give is among any k if fewer than k of the others don't
// come after it. What a taker learns of it may order other gives and takes, so runs are
// repeated until nothing new is found: each of them starts from facts.

// turnOrder is the gives, or the takes, of a channel or semaphore, in the order of a run.
type turnOrder struct {
	list []turnOf
	segs map[int32][]int32 // of each block: the segments of its turns
}

// turnOf is the nth give or take of a block, from 1 on, and how many of each other block's
// come before it.
type turnOf struct {
	block, nth int32
	before     map[int32]int32
}

// note appends block b's next turn; clock is what the thread knows that makes it.
func (o *turnOrder) note(b, seg int32, clock []int32) *turnOf {
	if o.segs == nil {
		o.segs = map[int32][]int32{}
	}
	t := turnOf{block: b, nth: int32(len(o.segs[b])) + 1, before: map[int32]int32{}}
	for other, segs := range o.segs {
		if n, _ := slices.BinarySearch(segs, clock[other]); other != b && n > 0 {
			t.before[other] = int32(n)
		}
	}
	o.segs[b] = append(o.segs[b], seg)
	o.list = append(o.list, t)
	return &o.list[len(o.list)-1]
}

// fixed reports whether turns come in this order always.
func (o *turnOrder) fixed() bool {
	for i := 1; i < len(o.list); i++ {
		x, y := &o.list[i-1], &o.list[i]
		if x.block != y.block && y.before[x.block] < x.nth {
			return false
		}
	}
	return true
}

func (o *turnOrder) equal(p *turnOrder) bool {
	return slices.EqualFunc(o.list, p.list, func(x, y turnOf) bool {
		return x.block == y.block && x.nth == y.nth && maps.Equal(x.before, y.before)
	})
}

// others is how many gives, of those that blocks make in the launches so far, may come
// before the nth of block b.
func (o *turnOrder) others(b, nth int32, made map[int32]int32) int32 {
	n := nth - 1
	for block, all := range made {
		if block != b {
			n += all
		}
	}
	if o == nil {
		return n
	}
	for i := range o.list {
		if t := &o.list[i]; t.block != b && t.nth <= made[t.block] && t.before[b] >= nth {
			n--
		}
	}
	return n
}

// turnFacts are the orders of all channels and then all semaphores.
type turnFacts struct{ gives, takes []turnOrder }

func newTurnFacts(m *oneModel) *turnFacts {
	n := len(m.chans) + len(m.sems)
	return &turnFacts{make([]turnOrder, n), make([]turnOrder, n)}
}

// several reports whether more than one thread block gives to or takes from anything.
func (m *oneModel) several() bool {
	more := func(c *oneCount) bool { return len(c.givers) > 1 || len(c.takers) > 1 }
	for i := range m.chans {
		if more(&m.chans[i].oneCount) {
			return true
		}
	}
	for i := range m.sems {
		if more(&m.sems[i]) {
			return true
		}
	}
	return false
}

// maxSettling bounds the runs of settle. Facts of fewer are facts too.
const maxSettling = 16

// settle finds what orders gives and takes in launches of the models; nil if nothing has
// several of either, or a launch doesn't end.
func settle(ctx context.Context, models []*oneModel) (*turnFacts, error) {
	if !models[0].several() {
		return nil, nil
	}
	var facts *turnFacts
	for range maxSettling {
		h := newHistory(models, newRaceSet(), map[int32]bool{})
		h.facts = facts
		ok, err := h.run(ctx)
		if err != nil || !ok {
			return nil, err
		}
		same := facts != nil && slices.EqualFunc(facts.gives, h.turns.gives, func(x, y turnOrder) bool { return x.equal(&y) })
		if facts = h.turns; same {
			break
		}
	}
	return facts, nil
}

// settle notes which channels and semaphores are given to and taken from in a certain order.
func (m *oneModel) settle(ctx context.Context) error {
	facts, err := settle(ctx, slices.Repeat([]*oneModel{m}, m.launches()))
	if facts == nil || err != nil {
		return err
	}
	note := func(c *oneCount, i int) {
		c.givesFixed, c.takesFixed = facts.gives[i].fixed(), facts.takes[i].fixed()
	}
	for i := range m.chans {
		note(&m.chans[i].oneCount, i)
	}
	for i := range m.sems {
		note(&m.sems[i], len(m.chans)+i)
	}
	return nil
}
