package viz

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mscclsh/mscclsh/ir"
)

// Connections pictures what p sends from rank to rank on the topology: each
// connection with its channels, messages and chunks, and links that stay unused.
// Of a one-sided program, what operations write to or read from a peer.
func Connections(p *ir.Program) (*Picture, error) {
	sched, err := Schedule(p)
	if err != nil {
		return nil, err
	}
	c := &connections{prog: p, uses: map[[2]ir.Rank]*use{}}
	if p.OneSided == nil {
		c.twoSided(sched)
	} else {
		c.oneSided(sched)
	}
	pic := &Picture{Stage: StageTopology, Name: p.Name, Ranks: p.Ranks(), Cols: 1, Values: sched.Values}
	for r := range ir.Rank(p.Ranks()) {
		pic.Lanes = append(pic.Lanes, Lane{Rank: r, Block: ir.None, Rows: 1})
		pic.Nodes = append(pic.Nodes, Node{Kind: KindRank, Lane: int32(r), ID: int32(r)})
		pic.Order = append(pic.Order, int32(r))
	}
	messages := c.edges(pic)
	pic.About = about(p.Spec) + ", " + c.topology() + ", " + plural(len(c.uses), "connection") + ", " + plural(messages, "message")
	pic.label = func(i int32) string { return strconv.Itoa(int(i)) }
	pic.text = func(i int32) string { return c.rank(pic, i) }
	return pic, nil
}

// connections collects what goes from one rank to another.
type connections struct {
	prog *ir.Program
	uses map[[2]ir.Rank]*use
}

// use is what goes over one of them.
type use struct {
	channels         []int32
	kinds            []ir.ChannelKind // of one-sided ones
	messages, chunks int32
	moved            []int32
}

func (c *connections) at(from, to ir.Rank) *use {
	k := [2]ir.Rank{from, to}
	u := c.uses[k]
	if u == nil {
		u = &use{}
		c.uses[k] = u
	}
	return u
}

func (u *use) take(chunks int32, moved []int32) {
	u.messages++
	u.chunks += chunks
	u.moved = append(u.moved, moved...)
}

func (c *connections) twoSided(sched *Picture) {
	v := 0
	for r := range c.prog.GPUs {
		for b := range c.prog.GPUs[r].TBs {
			for i := range c.prog.GPUs[r].TBs[b].Steps {
				if s := &c.prog.GPUs[r].TBs[b].Steps[i]; s.Kind.Sends() && s.SendPeer >= 0 && int(s.SendPeer) < len(c.prog.GPUs) {
					u := c.at(ir.Rank(r), s.SendPeer)
					u.channels = append(u.channels, s.Chan)
					m := sched.Nodes[v].Moved
					u.take(s.Count, sched.Moved[m.Start:m.End])
				}
				v++
			}
		}
	}
}

func (c *connections) oneSided(sched *Picture) {
	one := c.prog.OneSided
	x := &puts{prog: c.prog, one: one}
	for v := range sched.Nodes {
		n := &sched.Nodes[v]
		self, op := sched.Lanes[n.Lane].Rank, &one.Ops[n.ID]
		moved := sched.Moved[n.Moved.Start:n.Moved.End]
		for k, o := range slices.Concat(one.Sources(op), one.Destinations(op)) {
			for _, r := range x.ranksOf(&o) {
				if r == self || r < 0 || int(r) >= len(c.prog.GPUs) {
					continue
				}
				u := c.at(self, r)
				if k < op.Src.Len() { // it is read from there
					u = c.at(r, self)
				}
				u.kinds = append(u.kinds, op.Via)
				u.take(o.Size, moved)
			}
		}
	}
}

// edges adds the connections, and the links that nothing uses, by source and
// destination, and returns the number of messages.
func (c *connections) edges(pic *Picture) int {
	var pairs [][2]ir.Rank
	for k := range c.uses {
		pairs = append(pairs, k)
	}
	slices.SortFunc(pairs, func(a, b [2]ir.Rank) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	all := 0
	for _, k := range pairs {
		u := c.uses[k]
		slices.Sort(u.moved)
		u.moved = slices.Compact(u.moved)
		e := Edge{Kind: EdgeConnection, From: int32(k[0]), To: int32(k[1]), Count: u.messages, Note: c.note(k, u)}
		e.Moved = pic.moves(u.moved)
		pic.Edges = append(pic.Edges, e)
		all += int(u.messages)
	}
	t := c.prog.Topo
	if t == nil || t.Bandwidth == nil {
		return all
	}
	for a := range ir.Rank(t.Ranks) {
		for b := range ir.Rank(t.Ranks) {
			if a != b && t.Linked(a, b) && c.uses[[2]ir.Rank{a, b}] == nil {
				pic.Edges = append(pic.Edges, Edge{Kind: EdgeLink, From: int32(a), To: int32(b), Note: c.speed(a, b)})
			}
		}
	}
	return all
}

// note says of a connection what goes over it, and over what link.
func (c *connections) note(k [2]ir.Rank, u *use) string {
	var parts []string
	slices.Sort(u.channels)
	if ch := slices.Compact(u.channels); len(ch) > 0 {
		parts = append(parts, "ch "+ranges(ch))
	}
	slices.Sort(u.kinds)
	for _, kind := range slices.Compact(u.kinds) {
		if kind != ir.ChannelNone {
			parts = append(parts, "via "+kind.String())
		}
	}
	parts = append(parts, plural(int(u.messages), "message"), plural(int(u.chunks), "chunk"))
	if t := c.prog.Topo; t != nil && t.Bandwidth != nil {
		parts = append(parts, c.speed(k[0], k[1]))
	}
	return strings.Join(parts, ", ")
}

// speed is the bandwidth of a link.
func (c *connections) speed(a, b ir.Rank) string {
	t := c.prog.Topo
	if at := int(a)*int(t.Ranks) + int(b); at < len(t.Bandwidth) && t.Bandwidth[at] > 0 {
		return strconv.FormatFloat(t.Bandwidth[at], 'g', 4, 64) + " GB/s"
	}
	return "no link"
}

func (c *connections) topology() string {
	if t := c.prog.Topo; t != nil && t.Name != "" {
		return "topology " + t.Name
	}
	return "topology not known"
}

// rank tells what a rank sends and receives.
func (c *connections) rank(pic *Picture, i int32) string {
	out, in, to, from := 0, 0, 0, 0
	for k, u := range c.uses {
		if k[0] == ir.Rank(i) {
			out, to = out+int(u.messages), to+1
		}
		if k[1] == ir.Rank(i) {
			in, from = in+int(u.messages), from+1
		}
	}
	return fmt.Sprintf("rank %d: sends %s to %s, receives %s from %s", i, plural(out, "message"), plural(to, "rank"), plural(in, "message"), plural(from, "rank"))
}

// ranges is a list of ascending numbers, runs as 0-3.
func ranges(list []int32) string {
	var parts []string
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		part := strconv.Itoa(int(list[i]))
		if j > i {
			part += "-" + strconv.Itoa(int(list[j]))
		}
		parts = append(parts, part)
		i = j + 1
	}
	return strings.Join(parts, ",")
}
