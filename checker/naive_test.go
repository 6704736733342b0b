package checker

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/mscclsh/mscclsh/ir"
)

// naive judges tiny programs by trying everything. It shares nothing with the
// checker but the form of a program: no canonical locations (it knows only
// collectives in which in place means that outputs are inputs), values are
// sorted strings, orders are explored one by one.
type naive struct {
	p     *ir.Program
	k     int32
	slots int
	lines []line // thread blocks
}

type line struct {
	rank, tb int
	steps    []ir.Step
}

func newNaive(p *ir.Program, k int32, slots int) *naive {
	n := &naive{p: p, k: k, slots: slots}
	for r := range p.GPUs {
		for t := range p.GPUs[r].TBs {
			n.lines = append(n.lines, line{r, t, p.GPUs[r].TBs[t].Steps})
		}
	}
	return n
}

// state is where every thread block is, what is under way, and the memory.
type state struct {
	step, message []int32
	queues        map[string][][]string
	memory        map[string]string
}

func (s *state) key() string {
	var b strings.Builder
	fmt.Fprint(&b, s.step, s.message)
	for _, m := range []map[string]string{s.memory} {
		for _, k := range sortedKeys(m) {
			b.WriteString(k + "=" + m[k] + ";")
		}
	}
	for _, k := range sortedKeys(s.queues) {
		fmt.Fprint(&b, k, s.queues[k])
	}
	return b.String()
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

func (s *state) clone() *state {
	c := &state{step: slices.Clone(s.step), message: slices.Clone(s.message),
		queues: map[string][][]string{}, memory: map[string]string{}}
	for k, v := range s.queues {
		c.queues[k] = slices.Clone(v)
	}
	for k, v := range s.memory {
		c.memory[k] = v
	}
	return c
}

// cell names a location; in place an output is the input of the same number.
func (n *naive) cell(rank int, buf ir.BufferID, i int32) string {
	if buf == ir.Output && n.p.Coll.InPlace {
		buf = ir.Input
	}
	return fmt.Sprintf("%d%c%d", rank, "ios"[buf], i)
}

func (n *naive) start() *state {
	s := &state{step: make([]int32, len(n.lines)), message: make([]int32, len(n.lines)),
		queues: map[string][][]string{}, memory: map[string]string{}}
	for r, g := range n.p.GPUs {
		for i := range g.Scratch {
			s.memory[n.cell(r, ir.FirstScratch, i)] = fmt.Sprintf("?%ds%d", r, i)
		}
		for i := range g.Output {
			s.memory[n.cell(r, ir.Output, i)] = fmt.Sprintf("?%do%d", r, i)
		}
		for i := range g.Input {
			s.memory[n.cell(r, ir.Input, i)] = fmt.Sprintf("%d.%d", r, i)
		}
	}
	return s
}

func add(a, b string) string {
	terms := append(strings.Split(a, "+"), strings.Split(b, "+")...)
	sort.Strings(terms)
	return strings.Join(terms, "+")
}

// move lets thread block t handle one message (or a whole local step), if it can.
func (n *naive) move(s *state, t int) *state {
	l := n.lines[t]
	if int(s.step[t]) == len(l.steps) {
		return nil
	}
	st := &l.steps[s.step[t]]
	for _, d := range n.p.DepsOf(st) {
		for o, other := range n.lines {
			if other.rank == l.rank && other.tb == int(d.TB) && s.step[o] <= d.Step {
				return nil
			}
		}
	}
	in := fmt.Sprintf("%d>%d#%d", st.RecvPeer, l.rank, st.Chan)
	out := fmt.Sprintf("%d>%d#%d", l.rank, st.SendPeer, st.Chan)
	if st.Kind.Receives() && len(s.queues[in]) == 0 || st.Kind.Sends() && len(s.queues[out]) >= n.slots {
		return nil
	}
	next := s.clone()
	first, last := s.message[t]*n.k, min((s.message[t]+1)*n.k, st.Count)
	if !st.Kind.Sends() && !st.Kind.Receives() {
		first, last = 0, st.Count
	}
	var got, put []string
	if st.Kind.Receives() {
		got, next.queues[in] = next.queues[in][0], next.queues[in][1:]
	}
	for j := first; j < last; j++ {
		src := n.cell(l.rank, max(st.Src.Buf, 0), st.Src.Index+j)
		dst := n.cell(l.rank, max(st.Dst.Buf, 0), st.Dst.Index+j)
		v := ""
		switch st.Kind {
		case ir.Send, ir.Copy:
			v = next.memory[src]
		case ir.Recv, ir.RecvCopySend:
			v = got[j-first]
		case ir.Reduce:
			v = add(next.memory[src], next.memory[dst])
		default:
			v = add(got[j-first], next.memory[src])
		}
		if st.Kind != ir.Send && st.Kind != ir.RecvReduceSend {
			next.memory[dst] = v
		}
		put = append(put, v)
	}
	if st.Kind.Sends() {
		next.queues[out] = append(next.queues[out], put)
	}
	if next.message[t]++; last >= st.Count {
		next.step[t]++
		next.message[t] = 0
	}
	return next
}

// explore visits every reachable state, up to a limit: the different memories at
// the end, and how many states are stuck.
func (n *naive) explore(limit int) (ends map[string]*state, stuck int, complete bool) {
	ends = map[string]*state{}
	seen := map[string]bool{}
	todo := []*state{n.start()}
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		key := s.key()
		if seen[key] {
			continue
		}
		if seen[key] = true; len(seen) > limit {
			return ends, stuck, false
		}
		moved, over := false, true
		for t := range n.lines {
			over = over && int(s.step[t]) == len(n.lines[t].steps)
			if next := n.move(s, t); next != nil {
				moved = true
				todo = append(todo, next)
			}
		}
		switch {
		case over:
			ends[key] = s
		case !moved:
			stuck++
		}
	}
	return ends, stuck, true
}

// runs reports whether the program ends, by one schedule.
func (n *naive) runs() bool {
	s := n.start()
	for {
		moved := false
		over := true
		for t := range n.lines {
			if next := n.move(s, t); next != nil {
				s, moved = next, true
			}
			over = over && int(s.step[t]) == len(n.lines[t].steps)
		}
		if over || !moved {
			return over
		}
	}
}

// right reports whether an end state is what the collective demands.
func (n *naive) right(s *state) bool {
	for r, g := range n.p.GPUs {
		for i := range g.Output {
			want := n.p.Coll.Custom.Expect[r][i]
			var terms []string
			for _, w := range want {
				terms = append(terms, fmt.Sprintf("%d.%d", w.Rank, w.Index))
			}
			sort.Strings(terms)
			if want != nil && s.memory[n.cell(r, ir.Output, i)] != strings.Join(terms, "+") {
				return false
			}
		}
		for i := range g.Input {
			if !n.p.Coll.InPlace && s.memory[n.cell(r, ir.Input, i)] != fmt.Sprintf("%d.%d", r, i) {
				return false
			}
		}
	}
	return true
}

// races reports whether any two conflicting accesses are unordered in the
// transitive closure over chunks of steps.
func (n *naive) races() bool {
	type node struct {
		rank, line, step int
		chunk            int32
	}
	var nodes []node
	first := map[[2]int]int{} // of line and step: its first node
	last := map[[2]int]int{}
	sends, recvs := map[string][]int{}, map[string][]int{}
	for l, ln := range n.lines {
		for s := range ln.steps {
			st := &ln.steps[s]
			first[[2]int{l, s}] = len(nodes)
			for j := range max(st.Count, 1) {
				if st.Kind.Sends() {
					k := fmt.Sprintf("%d>%d#%d", ln.rank, st.SendPeer, st.Chan)
					sends[k] = append(sends[k], len(nodes))
				}
				if st.Kind.Receives() {
					k := fmt.Sprintf("%d>%d#%d", st.RecvPeer, ln.rank, st.Chan)
					recvs[k] = append(recvs[k], len(nodes))
				}
				nodes = append(nodes, node{ln.rank, l, s, j})
			}
			last[[2]int{l, s}] = len(nodes) - 1
		}
	}
	before := make([][]bool, len(nodes))
	for i := range before {
		before[i] = make([]bool, len(nodes))
		if i > 0 && nodes[i].line == nodes[i-1].line {
			before[i-1][i] = true
		}
	}
	for l, ln := range n.lines {
		for s := range ln.steps {
			for _, d := range n.p.DepsOf(&ln.steps[s]) {
				for o, other := range n.lines {
					if other.rank == ln.rank && other.tb == int(d.TB) {
						before[last[[2]int{o, int(d.Step)}]][first[[2]int{l, s}]] = true
					}
				}
			}
		}
	}
	for k, list := range sends {
		for i, x := range list {
			before[x][recvs[k][i]] = true
		}
	}
	for k := range nodes {
		for i := range nodes {
			if before[i][k] {
				for j := range nodes {
					before[i][j] = before[i][j] || before[k][j]
				}
			}
		}
	}
	touches := func(x node) (reads []string, write string) {
		st := &n.lines[x.line].steps[x.step]
		if st.Kind.ReadsSrc() {
			reads = append(reads, n.cell(x.rank, st.Src.Buf, st.Src.Index+x.chunk))
		}
		if st.Kind.WritesDst() {
			write = n.cell(x.rank, st.Dst.Buf, st.Dst.Index+x.chunk)
		}
		if st.Kind == ir.Copy && slices.Contains(reads, write) {
			write = "" // onto itself: readers see no change
		}
		if st.Kind == ir.Reduce {
			reads = append(reads, write)
		}
		return reads, write
	}
	for i, x := range nodes {
		_, w := touches(x)
		for j, y := range nodes {
			reads, v := touches(y)
			if x.line != y.line && w != "" && (v == w || slices.Contains(reads, w)) && !before[i][j] && !before[j][i] {
				return true
			}
		}
	}
	return false
}
