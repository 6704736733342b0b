package checker

import (
	"fmt"
	"strings"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// open lists the places where it matters who comes first, and nothing says who does:
// channels and semaphores that several thread blocks take from, barriers that more use
// than meet there.
func (m *oneModel) open() []string {
	var out []string
	for i := range m.chans {
		if c := &m.chans[i]; len(c.takers) > 1 && !c.takesFixed {
			out = append(out, fmt.Sprintf("%s wait for the signals of %s", plural(len(c.takers), "thread block"), m.channelName(int32(i))))
		}
	}
	for i := range m.sems {
		if s := &m.sems[i]; len(s.takers) > 1 && !s.takesFixed {
			out = append(out, fmt.Sprintf("%s acquire %s", plural(len(s.takers), "thread block"), m.semName(int32(i))))
		}
	}
	for i := range m.barriers {
		if b := &m.barriers[i]; len(b.blocks) > int(b.parts) {
			out = append(out, fmt.Sprintf("%s use rank %d barrier %d, which is for %d", plural(len(b.blocks), "thread block"),
				b.rank, b.number, b.parts))
		}
	}
	return out
}

// shared lists the channels and semaphores that several thread blocks give to in no
// certain order. What a taker then knows depends on who came first; it is taken to know
// what it knows in every case, one giver for itself.
func (m *oneModel) shared() []string {
	var out []string
	for i := range m.chans {
		if c := &m.chans[i]; len(c.givers) > 1 && len(c.takers) > 0 && !(c.givesFixed && c.takesFixed) {
			out = append(out, fmt.Sprintf("%s signal on %s", plural(len(c.givers), "thread block"), m.channelName(int32(i))))
		}
	}
	for i := range m.sems {
		if s := &m.sems[i]; len(s.givers) > 1 && len(s.takers) > 0 && !(s.givesFixed && s.takesFixed) {
			out = append(out, fmt.Sprintf("%s release %s", plural(len(s.givers), "thread block"), m.semName(int32(i))))
		}
	}
	return out
}

// doubt warns that races may be none where several give.
func (m *oneModel) doubt(f *findings) {
	for _, what := range m.shared() {
		if f.admit(CodeUndecided) {
			f.add(diag.Warningf(diag.Pos{}, CodeUndecided, "%s, and which comes first is open: some of the races may be none", what).
				Suggest("give each its own"))
		}
	}
}

// schedules is how many orders to try: one where any order decides, else a few.
func (m *oneModel) schedules() int {
	if len(m.open()) == 0 {
		return 1
	}
	return openSchedules
}

const openSchedules = 8

// undecided warns of what one order doesn't decide.
func (m *oneModel) undecided(f *findings) {
	for _, what := range m.open() {
		if f.admit(CodeUndecided) {
			f.add(diag.Warningf(diag.Pos{}, CodeUndecided,
				"%s, and which comes first is open: %d orders were tried, not all of them", what, openSchedules).
				Suggest("give each its own"))
		}
	}
}

// leftovers warns of channels and semaphores that the next launch will not find as
// this one did: they live on between launches.
func (r *oneRun) leftovers(f *findings) {
	m := r.m
	for i := range m.chans {
		if n := r.given[i] - r.taken[i]; n != 0 && f.admit(CodeLeftover) {
			c := &m.chans[i]
			f.add(diag.Warningf(diag.Pos{}, CodeLeftover,
				"%s: %s and %s a launch, so that the next one doesn't wait for its own",
				m.channelName(int32(i)), plural(int(total(c.givers)), "signal"), plural(int(total(c.takers)), "wait")))
		}
	}
	for i, n := range r.tokens {
		if n != m.sems[i].initial && f.admit(CodeLeftover) {
			then := "so that a later one doesn't wait where it should"
			if n < m.sems[i].initial {
				then = "so that a later one waits for ever"
			}
			f.add(diag.Warningf(diag.Pos{}, CodeLeftover, "%s: a launch starts with %d and leaves %d, %s",
				m.semName(int32(i)), m.sems[i].initial, n, then))
		}
	}
}

func (m *oneModel) channelName(i int32) string {
	c := &m.chans[i]
	return fmt.Sprintf("rank %d channel %d to rank %d", c.rank, c.number, c.Peer)
}

func (m *oneModel) semName(i int32) string {
	r := 0
	for r+1 < len(m.rank) && m.rank[r+1].firstSem <= i {
		r++
	}
	return fmt.Sprintf("rank %d semaphore %d", r, i-m.rank[r].firstSem)
}

// reportDeadlock says who waits for whom: the cycle if there is one, else the chain
// that ends at something that nobody will do.
func (r *oneRun) reportDeadlock(f *findings) {
	if !f.admit(CodeDeadlock) {
		return
	}
	m := r.m
	at := map[int32]spot{}
	first, stuck := int32(ir.None), 0
	for s, list := range r.waiting {
		for _, b := range list {
			at[b] = s
		}
	}
	for b := range r.blocks {
		if !r.done(int32(b)) {
			if stuck++; first == ir.None {
				first = int32(b)
			}
		}
	}
	var chain []int32
	seen := map[int32]int{}
	for b := first; b != ir.None; b = r.blame(b, at[b]) {
		if n, again := seen[b]; again {
			chain = chain[n:]
			break
		}
		seen[b] = len(chain)
		chain = append(chain, b)
	}
	last := chain[len(chain)-1]
	what := fmt.Sprintf("a cycle of %s, each waiting for the next", plural(len(chain), "thread block"))
	if r.blame(last, at[last]) == ir.None {
		what = fmt.Sprintf("%s, each waiting for the next, and the last for what nobody does", plural(len(chain), "thread block"))
		if len(chain) == 1 {
			what = "it waits for what nobody does"
		}
	}
	step := func(b int32) *oneStep { return &m.blocks[b].steps[r.blocks[b].at] }
	msg := diag.Errorf(m.stepPos(step(chain[0])), CodeDeadlock, "deadlock of %s: %s", plural(stuck, "thread block"), what)
	for i, b := range chain {
		if i == maxCycle {
			msg.Note(diag.Pos{}, "and %d more", len(chain)-i)
			break
		}
		msg.Note(m.stepPos(step(b)), "%s waits for %s", m.stepName(step(b)), r.reason(at[b]))
		if st := r.overwriter(at[b]); st != nil {
			msg.Note(m.stepPos(st), "%s writes plain data there", m.stepName(st)).Suggest(packetsRoom)
		}
	}
	f.add(msg)
}

// blame is a thread block that still has to do what is waited for at s, the first
// in order, or None.
func (r *oneRun) blame(b int32, s spot) int32 {
	m := r.m
	switch s.kind {
	case atChannel:
		return r.pending(m.chans[s.n].givers, s)
	case atSemaphore:
		return r.pending(m.sems[s.n].givers, s)
	case atBarrier:
		for _, t := range m.barriers[s.n].blocks {
			if !r.done(t.block) && !r.standsAt(t.block, s.n) {
				return t.block
			}
		}
		return ir.None
	}
	for t := range r.blocks {
		if !r.done(int32(t)) && r.willWrite(int32(t), s.n) {
			return int32(t)
		}
	}
	return ir.None
}

func (r *oneRun) standsAt(b, barrier int32) bool {
	p := &r.blocks[b]
	return p.there && r.m.blocks[b].steps[p.at].ref == barrier
}

// pending is the first of the givers that has something left to give at s.
func (r *oneRun) pending(givers []tally, s spot) int32 {
	m := r.m
	for _, g := range givers {
		blk := &m.blocks[g.block]
		for i := r.blocks[g.block].at; int(i) < len(blk.steps); i++ {
			op := &m.o.Ops[blk.steps[i].op]
			for _, x := range m.o.RefsOf(op) {
				if s.kind == atChannel && signals(op.Kind) && m.rank[blk.rank].firstChan+x == s.n ||
					s.kind == atSemaphore && op.Kind == ir.OpSemaphoreRelease && m.rank[blk.rank].firstSem+x == s.n {
					return g.block
				}
			}
		}
	}
	return ir.None
}

// willWrite reports whether b has yet to write the packet at loc.
func (r *oneRun) willWrite(b, loc int32) bool {
	blk := &r.m.blocks[b]
	for i := r.blocks[b].at; int(i) < len(blk.steps); i++ {
		for _, l := range r.m.lanes(&blk.steps[i]) {
			for w, s := range l.writes {
				if k := loc - s.start; l.sends[w] && k >= 0 && k%2 == 0 && k/2 < s.n {
					return true
				}
			}
		}
	}
	return false
}

// overwriter is a step that writes plain data over the packet that is waited for at s,
// or nil.
func (r *oneRun) overwriter(s spot) *oneStep {
	if s.kind != atPacket {
		return nil
	}
	for b := range r.m.blocks {
		steps := r.m.blocks[b].steps
		for i := range steps {
			for _, l := range r.m.lanes(&steps[i]) {
				for k, w := range l.writes {
					if d := s.n - w.start; !l.sends[k] && d >= -1 && d < w.n {
						return &steps[i]
					}
				}
			}
		}
	}
	return nil
}

// reason names what is waited for, and what there is of it.
func (r *oneRun) reason(s spot) string {
	m := r.m
	switch s.kind {
	case atChannel:
		c := &m.chans[s.n]
		return fmt.Sprintf("signal %d on %s, which gives %d in all%s", r.taken[s.n]+1, m.channelName(s.n), total(c.givers),
			m.blockNames(" (by ", c.givers))
	case atSemaphore:
		c := &m.sems[s.n]
		return fmt.Sprintf("%s, which starts with %d and is released %s in all%s", m.semName(s.n), c.initial,
			plural(int(total(c.givers)), "time"), m.blockNames(" (by ", c.givers))
	case atBarrier:
		b := &m.barriers[s.n]
		return fmt.Sprintf("%d more at barrier %d%s", b.parts-int32(len(r.arrived[s.n])), b.number, m.blockNames(" (used by ", b.blocks))
	}
	return fmt.Sprintf("a packet at %s", m.chunkName(s.n, true))
}

// blockNames lists a few thread blocks in brackets.
func (m *oneModel) blockNames(open string, list []tally) string {
	var names []string
	for i, t := range list {
		if i == 4 {
			names = append(names, fmt.Sprintf("%d more", len(list)-i))
			break
		}
		names = append(names, fmt.Sprintf("rank %d tb %d", m.blocks[t.block].rank, m.blocks[t.block].index))
	}
	if names == nil {
		return ""
	}
	return open + strings.Join(names, ", ") + ")"
}
