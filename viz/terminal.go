package viz

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/lipgloss"
	"github.com/mscclsh/mscclsh/ir"
)

// Terminal says what a drawing in text may use.
type Terminal struct {
	Width    int                // columns; 0 is 80
	Renderer *lipgloss.Renderer // of colors; nil for none
	ASCII    bool               // no character beyond it
	Full     bool               // all of a large picture, not its outline
}

// What a terminal shows without being asked for all of it.
const (
	textNodes = 600 // nodes, beyond which there is an outline
	textLanes = 64  // lanes of a run, connections of a topology
	textRefs  = 4   // of what a node depends on
)

// WriteText draws p for a terminal, or for a file that is read like one. Lanes are
// rows, time goes to the right; what doesn't fit goes on below.
func WriteText(w io.Writer, p *Picture, t Terminal) error {
	x := &texter{pic: p, out: bufio.NewWriterSize(w, 64<<10), term: t, width: t.Width}
	if x.width <= 0 {
		x.width = 80
	}
	x.styles(t.Renderer)
	x.line(x.bold(x.cut(p.Name+": "+p.Stage.String(), x.width)))
	x.wrapped(strings.SplitAfter(p.About, ", "))
	switch {
	case p.Stage == StageTopology:
		x.topology()
	case len(p.Nodes) > textNodes && !t.Full:
		x.outline()
	case p.Stage == StageTimeline:
		x.timeline()
	default:
		x.grid()
	}
	if err := x.out.Flush(); err != nil {
		return fmt.Errorf("writing the drawing: %w", err)
	}
	return nil
}

// texter draws for a terminal; the error of the writer stays in out until its end.
type texter struct {
	pic   *Picture
	out   *bufio.Writer
	term  Terminal
	width int
	kind  [kinds]func(...string) string
	bold  func(...string) string
	faint func(...string) string
}

// styles are made once: a style costs more than the text that it renders.
func (x *texter) styles(r *lipgloss.Renderer) {
	plain := func(s ...string) string { return strings.Join(s, " ") }
	x.bold, x.faint = plain, plain
	for k := range x.kind {
		x.kind[k] = plain
	}
	if r == nil {
		return
	}
	x.bold, x.faint = r.NewStyle().Bold(true).Render, r.NewStyle().Faint(true).Render
	// The 16 colors of every terminal, which read on a light and on a dark ground.
	for k, color := range [...]string{KindCopy: "2", KindReduce: "3", KindSend: "6", KindReceive: "4", KindRelay: "5", KindSync: "8"} {
		x.kind[k] = r.NewStyle().Foreground(lipgloss.Color(color)).Render
	}
}

var asASCII = strings.NewReplacer("←", "<", "→", ">", "×", "x", "…", "~", "µ", "u", "·", ".")

// plain is a text in the characters that the terminal has.
func (x *texter) plain(s string) string {
	if !x.term.ASCII {
		return s
	}
	s = asASCII.Replace(s)
	return strings.Map(func(r rune) rune {
		if r > 126 {
			return '?'
		}
		return r
	}, s)
}

// line writes a line without blanks at its end.
func (x *texter) line(s string) { x.out.WriteString(strings.TrimRight(x.plain(s), " ") + "\n") }

// wrapped writes parts one after another, on as few lines as they fit.
func (x *texter) wrapped(parts []string) {
	text := ""
	for _, part := range parts {
		part = clean(part)
		if text != "" && utf8.RuneCountInString(text)+utf8.RuneCountInString(strings.TrimRight(part, " ")) > x.width {
			x.line(x.faint(x.cut(strings.TrimRight(text, " "), x.width)))
			text = ""
		}
		text += part
	}
	if text != "" {
		x.line(x.faint(x.cut(text, x.width)))
	}
}

// cut shortens a text to n columns.
func (x *texter) cut(s string, n int) string { return short(clean(s), max(n, 1)) }

// clean takes out what would move the cursor: names are anybody's.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == utf8.RuneError {
			return '?'
		}
		return r
	}, s)
}

func pad(s string, n int) string {
	return s + strings.Repeat(" ", max(0, n-utf8.RuneCountInString(s)))
}

// laneLabels are the names of lanes, and how wide they are.
func (x *texter) laneLabels() ([]string, int) {
	labels, width := make([]string, len(x.pic.Lanes)), 0
	for i := range x.pic.Lanes {
		l := &x.pic.Lanes[i]
		labels[i] = l.Name()
		if l.About != "" && x.width >= 60 {
			labels[i] += " " + l.About
		}
		labels[i] = x.cut(labels[i], max(x.width/3, 8))
		width = max(width, utf8.RuneCountInString(labels[i]))
	}
	return labels, width
}

// grid draws nodes in the columns that they have, as many columns side by side as
// fit.
func (x *texter) grid() {
	p := x.pic
	labels, labelWidth := x.laneLabels()
	rows := p.laneTops()
	cells := make([][]int32, rows[len(p.Lanes)]) // nodes of a row, by column
	cols := make([]int, p.Cols)
	texts := make([]string, len(p.Nodes))
	ends := p.adjacent(true)
	for v := range p.Nodes {
		n := &p.Nodes[v]
		row := rows[n.Lane] + n.Row
		cells[row] = append(cells[row], int32(v))
		texts[v] = x.cut(x.cell(int32(v), ends), max(x.width-labelWidth-2, 8))
		cols[n.Col] = max(cols[n.Col], utf8.RuneCountInString(texts[v]))
	}
	for r := range cells {
		slices.SortFunc(cells[r], func(a, b int32) int { return int(p.Nodes[a].Col) - int(p.Nodes[b].Col) })
	}
	for from := 0; from < len(cols); {
		to, width := from, labelWidth
		for to < len(cols) && (to == from || width+2+cols[to] <= x.width) {
			width += 2 + cols[to]
			to++
		}
		if len(cols) > to-from { // more than one band
			x.line("")
			which := fmt.Sprintf("columns %d to %d of %d", from, to-1, len(cols))
			if to == from+1 {
				which = fmt.Sprintf("column %d of %d", from, len(cols))
			}
			x.line(x.faint(which))
		}
		for lane := range p.Lanes {
			for row := rows[lane]; row < rows[lane+1]; row++ {
				label := ""
				if row == rows[lane] {
					label = labels[lane]
				}
				x.row(pad(label, labelWidth), cells[row], texts, cols, from, to)
			}
		}
		from = to
	}
	x.legend()
}

// row draws the nodes of a row between two columns, if there are any or the row has
// a name.
func (x *texter) row(label string, cells []int32, texts []string, cols []int, from, to int) {
	var b strings.Builder
	b.WriteString(x.faint(label))
	next, any := from, strings.TrimSpace(label) != ""
	for _, v := range cells {
		n := &x.pic.Nodes[v]
		if int(n.Col) < from || int(n.Col) >= to {
			continue
		}
		any = true
		for ; next < int(n.Col); next++ {
			b.WriteString(strings.Repeat(" ", 2+cols[next]))
		}
		b.WriteString("  " + x.kind[n.Kind](texts[v]) + strings.Repeat(" ", cols[next]-utf8.RuneCountInString(texts[v])))
		next++
	}
	if any {
		x.line(b.String())
	}
}

// cell is a node with its number and what it depends on, as far as the order of its
// lane doesn't say so.
func (x *texter) cell(v int32, ends *adjacency) string {
	p := x.pic
	n := &p.Nodes[v]
	text := strconv.Itoa(int(n.ID)) + " " + p.label(v)
	var refs []string
	for _, e := range ends.of(v) {
		edge := &p.Edges[e]
		from := &p.Nodes[edge.From]
		switch {
		case edge.Kind == EdgeOrder, edge.Kind == EdgeMessage && p.Stage == StageSchedule:
			continue
		case edge.Kind == EdgeWait:
			refs = append(refs, fmt.Sprintf("%d:%d", p.Lanes[from.Lane].Block, from.ID))
		case edge.Kind == EdgeFalse:
			refs = append(refs, fmt.Sprintf("~%d", from.ID))
		case edge.Kind == EdgeMessage:
			refs = append(refs, fmt.Sprintf("*%d", from.ID))
		default:
			refs = append(refs, strconv.Itoa(int(from.ID)))
		}
	}
	if n.Stuck {
		text = "!" + text
	}
	if len(refs) > textRefs {
		refs = append(refs[:textRefs-1], "…")
	}
	if len(refs) > 0 {
		text += " (" + strings.Join(refs, " ") + ")"
	}
	return text
}

// legend says what stands in brackets.
func (x *texter) legend() {
	var parts []string
	_, edges := x.pic.kindsUsed()
	for _, k := range edges {
		switch {
		case k == EdgeTrue:
			parts = append(parts, "(1) reads what 1 wrote")
		case k == EdgeFalse:
			parts = append(parts, "(~1) reuses a place after 1")
		case k == EdgeMessage && x.pic.Stage != StageSchedule:
			parts = append(parts, "(*1) message of 1")
		case k == EdgeWait:
			parts = append(parts, "(1:2) waits for thread block 1, step 2")
		}
	}
	if slices.ContainsFunc(x.pic.Nodes, func(n Node) bool { return n.Stuck }) {
		parts = append(parts, "! can never run")
	}
	if len(parts) > 0 {
		x.line("")
		x.wrapped(strings.SplitAfter(strings.Join(parts, "; "), "; "))
	}
}

// outline counts nodes by rank and phase.
func (x *texter) outline() {
	const cell = 6
	names := 12
	o := newOutline(x.pic, 48, max(1, (x.width-names)/cell))
	for row := range o.ranks {
		var b strings.Builder
		b.WriteString(x.faint(pad(o.rowName(row, int(x.pic.Ranks)), names)))
		for phase := range o.phases {
			n, kind := o.cell(row, phase)
			text := ""
			if n > 0 {
				text = thousands(n) + kindLetters[kind]
			}
			b.WriteString(strings.Repeat(" ", max(0, cell-len(text))) + x.kind[kind](text))
		}
		x.line(b.String())
	}
	x.line("")
	per := plural(int(o.perPhase), "column")
	if x.pic.Stage == StageTimeline {
		per = duration(o.perPhase)
	}
	x.line(x.faint(x.cut(fmt.Sprintf("%s: an outline, ranks by phases of %s", plural(len(x.pic.Nodes), "node"), per), x.width)))
	x.letters()
}

// kindLetters stand for kinds where there is no room.
var kindLetters = [kinds]string{KindCopy: "c", KindReduce: "+", KindSend: "s", KindReceive: "r", KindRelay: "x", KindSync: "w", KindRank: " "}

// letters explains those of the kinds that there are.
func (x *texter) letters() {
	nodes, _ := x.pic.kindsUsed()
	var parts []string
	for _, k := range nodes {
		parts = append(parts, kindLetters[k]+" "+kindNames[k])
	}
	x.wrapped(strings.SplitAfter(strings.Join(parts, ", "), ", "))
}

// timeline draws each event from its begin to its end, in the letter of its kind.
func (x *texter) timeline() {
	p := x.pic
	labels, labelWidth := x.laneLabels()
	room := max(x.width-labelWidth-2, 10)
	scale := func(ns int64) int { return int(ns * int64(room) / max(p.Span, 1)) }
	tops := p.laneTops()
	rows := make([][]int32, tops[len(p.Lanes)])
	for v := range p.Nodes {
		r := tops[p.Nodes[v].Lane] + p.Nodes[v].Row
		rows[r] = append(rows[r], int32(v))
	}
	shown := 0
	for lane := range p.Lanes {
		for row := tops[lane]; row < tops[lane+1]; row++ {
			if shown++; shown > textLanes && !x.term.Full {
				continue
			}
			kind := make([]int, room)
			for i := range kind {
				kind[i] = ir.None
			}
			for _, v := range rows[row] {
				n := &p.Nodes[v]
				from := min(scale(n.Begin), room-1)
				for i := from; i < max(from+1, min(scale(n.End), room)); i++ {
					kind[i] = int(n.Kind)
				}
			}
			label := ""
			if row == tops[lane] {
				label = labels[lane]
			}
			x.line(x.faint(pad(label, labelWidth)) + "  " + x.runs(kind))
		}
	}
	if shown > textLanes && !x.term.Full {
		x.line(x.faint("and " + plural(shown-textLanes, "lane") + " more"))
	}
	end := duration(p.Span)
	x.line(x.faint(pad("", labelWidth) + "  0" + strings.Repeat(" ", max(1, room-1-utf8.RuneCountInString(end))) + end))
	x.letters()
}

// runs renders letters of one kind together.
func (x *texter) runs(kind []int) string {
	var b strings.Builder
	for i := 0; i < len(kind); {
		j := i
		for j < len(kind) && kind[j] == kind[i] {
			j++
		}
		if kind[i] == ir.None {
			b.WriteString(strings.Repeat("·", j-i))
		} else {
			b.WriteString(x.kind[kind[i]](strings.Repeat(kindLetters[kind[i]], j-i)))
		}
		i = j
	}
	return b.String()
}

// topology draws a table of who sends how many messages to whom, or, where it has no
// room, a list.
func (x *texter) topology() {
	p := x.pic
	cell := len(strconv.Itoa(len(p.Nodes))) + 1
	for i := range p.Edges {
		cell = max(cell, len(strconv.Itoa(int(p.Edges[i].Count)))+1)
	}
	const names = 12
	if names+cell*len(p.Nodes) <= x.width {
		table := make(map[[2]int32]string, len(p.Edges))
		for i := range p.Edges {
			e := &p.Edges[i]
			table[[2]int32{e.From, e.To}] = strconv.Itoa(int(e.Count))
			if e.Kind == EdgeLink {
				table[[2]int32{e.From, e.To}] = "-"
			}
		}
		head := pad("from, to", names)
		for v := range p.Nodes {
			head += fmt.Sprintf("%*d", cell, p.Nodes[v].ID)
		}
		x.line(x.faint(head))
		for v := range p.Nodes {
			row := x.faint(pad(fmt.Sprintf("rank %d", p.Nodes[v].ID), names))
			for u := range p.Nodes {
				text := table[[2]int32{int32(v), int32(u)}]
				row += strings.Repeat(" ", cell-len(text)) + x.kind[KindSend](text)
			}
			x.line(row)
		}
		x.line("")
		x.wrapped([]string{"messages by source and destination; ", "- is a link that nothing uses"})
	}
	x.connections()
}

// connections lists what goes over each, those alike together.
func (x *texter) connections() {
	p := x.pic
	var notes []string
	pairs := map[string][]string{}
	for i := range p.Edges {
		e := &p.Edges[i]
		if e.Kind != EdgeConnection {
			continue
		}
		if pairs[e.Note] == nil {
			notes = append(notes, e.Note)
		}
		pairs[e.Note] = append(pairs[e.Note], fmt.Sprintf("%d→%d", p.Nodes[e.From].ID, p.Nodes[e.To].ID))
	}
	x.line("")
	for i, note := range notes {
		if i == textLanes && !x.term.Full {
			x.line(x.faint("and " + plural(len(notes)-i, "kind of connection") + " more"))
			break
		}
		x.line(x.bold(x.cut(note, x.width)))
		list := pairs[note]
		if len(list) > textLanes && !x.term.Full {
			list = append(list[:textLanes:textLanes], "… "+strconv.Itoa(len(list)-textLanes)+" more")
		}
		text := ""
		for _, pair := range list {
			if utf8.RuneCountInString(text)+utf8.RuneCountInString(pair)+3 > x.width {
				x.line(text)
				text = ""
			}
			text += "  " + pair
		}
		x.line(text)
	}
}
