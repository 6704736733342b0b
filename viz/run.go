package viz

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/mscclsh/mscclsh/ir"
)

// Run pictures a run of p by the clock: an event a node, in the lanes of the
// schedule. An event that names no step of p is an error.
func Run(p *ir.Program, events []ir.Event) (*Picture, error) {
	sched, err := Schedule(p)
	if err != nil {
		return nil, err
	}
	r := &runPicture{sched: sched, nodes: map[stepAt]int32{}, at: map[occurrence]int32{}}
	for v := range sched.Nodes {
		n := &sched.Nodes[v]
		l := &sched.Lanes[n.Lane]
		r.nodes[stepAt{l.Rank, l.Block, n.ID}] = int32(v)
	}
	r.pic = &Picture{Stage: StageTimeline, Name: p.Name, Ranks: p.Ranks(), Lanes: sched.Lanes, Moved: sched.Moved, Values: sched.Values}
	if err := r.take(events); err != nil {
		return nil, err
	}
	r.join()
	r.rows()
	step := r.step
	r.pic.label = func(i int32) string { return sched.label(step[i]) }
	r.pic.text = func(i int32) string {
		n := &r.pic.Nodes[i]
		text := sched.text(step[i]) + ", " + duration(n.Begin) + " to " + duration(n.End)
		if r.tiles > 1 {
			text += ", tile " + strconv.Itoa(int(n.Tile))
		}
		return text
	}
	r.pic.About = about(p.Spec) + ", " + plural(len(events), "event") + " in " + duration(r.pic.Span)
	return r.pic, nil
}

type occurrence struct{ node, tile int32 }

// runPicture is a picture of a run in the making.
type runPicture struct {
	sched, pic *Picture
	nodes      map[stepAt]int32 // of the schedule
	step       []int32          // node of the schedule that an event is of
	at         map[occurrence]int32
	tiles      int32
}

// take adds a node an event, by lane and time.
func (r *runPicture) take(events []ir.Event) error {
	type found struct {
		step int32
		*ir.Event
	}
	var list []found
	for i := range events {
		e := &events[i]
		v, ok := r.nodes[stepAt{e.Rank, e.TB, e.Step}]
		if !ok {
			return fmt.Errorf("timeline: no step %d in thread block %d of rank %d", e.Step, e.TB, e.Rank)
		}
		list = append(list, found{v, e})
		r.tiles = max(r.tiles, e.Tile+1)
		r.pic.Span = max(r.pic.Span, e.End)
	}
	slices.SortStableFunc(list, func(a, b found) int {
		x, y := r.sched.Nodes[a.step].Lane, r.sched.Nodes[b.step].Lane
		return cmp.Or(cmp.Compare(x, y), cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.Tile, b.Tile), cmp.Compare(a.step, b.step))
	})
	for i, f := range list {
		n := r.sched.Nodes[f.step]
		n.Begin, n.End, n.Tile, n.Row, n.Col, n.Depth, n.Stuck = f.Begin, f.End, f.Tile, 0, 0, 0, false
		r.pic.Nodes = append(r.pic.Nodes, n)
		r.step = append(r.step, f.step)
		r.at[occurrence{f.step, f.Tile}] = int32(i)
		r.pic.Order = append(r.pic.Order, int32(i))
	}
	slices.SortStableFunc(r.pic.Order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(r.pic.Nodes[a].Begin, r.pic.Nodes[b].Begin), cmp.Compare(a, b))
	})
	return nil
}

// join repeats what the schedule's steps are joined by, tile by tile.
func (r *runPicture) join() {
	for _, e := range r.sched.Edges {
		if e.Kind == EdgeOrder {
			continue
		}
		for tile := range r.tiles {
			from, sent := r.at[occurrence{e.From, tile}]
			to, got := r.at[occurrence{e.To, tile}]
			if sent && got {
				r.pic.Edges = append(r.pic.Edges, Edge{Kind: e.Kind, From: from, To: to})
			}
		}
	}
}

// rows puts events of one lane that overlap below one another.
func (r *runPicture) rows() {
	r.pic.Lanes = slices.Clone(r.pic.Lanes)
	var ends []int64
	for i := range r.pic.Nodes {
		n := &r.pic.Nodes[i]
		if i == 0 || r.pic.Nodes[i-1].Lane != n.Lane {
			ends = ends[:0]
		}
		for int(n.Row) < len(ends) && ends[n.Row] > n.Begin {
			n.Row++
		}
		if int(n.Row) == len(ends) {
			ends = append(ends, 0)
		}
		ends[n.Row] = max(n.End, n.Begin)
		l := &r.pic.Lanes[n.Lane]
		l.Rows = max(l.Rows, n.Row+1)
	}
}

// duration is a time in nanoseconds, for people.
func duration(ns int64) string {
	switch {
	case ns < 10_000:
		return strconv.FormatInt(ns, 10) + " ns"
	case ns < 10_000_000:
		return strconv.FormatFloat(float64(ns)/1e3, 'f', 1, 64) + " µs"
	}
	return strconv.FormatFloat(float64(ns)/1e6, 'f', 1, 64) + " ms"
}
