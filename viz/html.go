package viz

import (
	"bufio"
	_ "embed" // the page's text, looks and script
	"encoding/json"
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

//go:embed page/page.html
var pageHTML string

//go:embed page/page.css
var pageCSS string

//go:embed page/model.js
var modelJS string

//go:embed page/draw.js
var drawJS string

//go:embed page/page.js
var pageJS string

// inlined is the number of nodes up to which the page holds each of them; of a
// larger stage it holds the outline alone, and says so.
const inlined = 400_000

// Page is what an HTML page shows.
type Page struct {
	Title    string
	Pictures []*Picture                // a stage each, in their order
	Line     func(pos diag.Pos) string // the line of the script at a position, "" if unknown; nil knows none
}

// WriteHTML writes one page with all pictures, in which one can pan, zoom, point at
// steps, follow chunks and play the program. It needs no other file and no network.
func WriteHTML(w io.Writer, page Page) error {
	out := bufio.NewWriterSize(w, 256<<10)
	head, rest, _ := strings.Cut(pageHTML, "<!--data-->")
	head = strings.NewReplacer("{{title}}", html.EscapeString(page.Title), "{{css}}", pageCSS).Replace(head)
	out.WriteString(head)
	doc := document{Title: page.Title, Light: lightLooks, Dark: darkLooks, Dashes: dashes[:], Kinds: kindNames[:], Edges: edgeNames[:],
		Outlined: outlined, Spread: spread}
	for i, p := range page.Pictures {
		doc.Stages = append(doc.Stages, summary{p.Stage.String(), p.Name, p.About, len(p.Nodes)})
		if err := data(out, fmt.Sprintf("stage%d", i), newInline(p, page.Line)); err != nil {
			return err
		}
	}
	if err := data(out, "doc", doc); err != nil {
		return err
	}
	out.WriteString(strings.NewReplacer("{{script}}", modelJS+drawJS+pageJS).Replace(rest))
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

// data writes a value where the page's script finds it. JSON escapes < and >, so
// that no name can end the element.
func data(out *bufio.Writer, id string, v any) error {
	fmt.Fprintf(out, `<script type="application/json" id="%s">`, id)
	if err := json.NewEncoder(out).Encode(v); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	_, err := out.WriteString("</script>\n")
	return err
}

// document is what the page's script has to know before it opens a stage.
type document struct {
	Title    string      `json:"title"`
	Stages   []summary   `json:"stages"`
	Light    looks       `json:"light"`
	Dark     looks       `json:"dark"`
	Dashes   [][]float64 `json:"dashes"`
	Kinds    []string    `json:"kinds"`
	Edges    []string    `json:"edges"`
	Outlined int         `json:"outlined"`
	Spread   int         `json:"spread"`
}

type summary struct {
	Stage string `json:"stage"`
	Name  string `json:"name"`
	About string `json:"about"`
	Nodes int    `json:"nodes"`
}

// inline is a picture as the page holds it: columns of numbers, texts by number.
type inline struct {
	Stage string   `json:"stage"`
	About string   `json:"about"`
	Ranks int32    `json:"ranks"`
	Cols  int32    `json:"cols"`
	Span  int64    `json:"span"`
	Lanes [][4]any `json:"lanes"` // rank, block, rows, about

	Kind  []int   `json:"kind"`
	Lane  []int32 `json:"lane"`
	Row   []int32 `json:"row"`
	Col   []int32 `json:"col"`
	Depth []int32 `json:"depth,omitempty"`
	Layer []int32 `json:"layer,omitempty"`
	ID    []int32 `json:"id"`
	Label []int32 `json:"label"`
	Text  []int32 `json:"text"`
	Pos   []int32 `json:"pos"`
	Moved []int32 `json:"moved"` // where the values of a node begin, and the end of the last
	Begin []int64 `json:"begin,omitempty"`
	End   []int64 `json:"end,omitempty"`
	Tile  []int32 `json:"tile,omitempty"`
	Stuck []int32 `json:"stuck,omitempty"`
	Order []int32 `json:"order"`

	EdgeKind  []int    `json:"ekind"`
	EdgeFrom  []int32  `json:"efrom"`
	EdgeTo    []int32  `json:"eto"`
	EdgeCount []int32  `json:"ecount,omitempty"`
	EdgeNote  []string `json:"enote,omitempty"`
	EdgeMoved []int32  `json:"emoved,omitempty"`

	Values  []int32  `json:"values"`  // of nodes and edges, one after another
	Parts   []int32  `json:"parts"`   // of value i+1: A, B
	Sums    []int32  `json:"sums"`    // values that are sums
	Strings []string `json:"strings"` // by number
	Lines   []int32  `json:"lines"`   // pairs: the number of a position, that of its line
	Outline *cells   `json:"outline,omitempty"`
}

// cells are the outline of a picture that is too large.
type cells struct {
	Ranks    int     `json:"ranks"`
	Phases   int     `json:"phases"`
	PerRow   int     `json:"perRow"`
	PerPhase int64   `json:"perPhase"`
	Kinds    int     `json:"kinds"`
	Count    []int32 `json:"count"`
	Nodes    int     `json:"nodes"`
}

// newInline packs a picture. line may be nil.
func newInline(p *Picture, line func(diag.Pos) string) *inline {
	x := &packer{in: &inline{Stage: p.Stage.String(), About: p.About, Ranks: p.Ranks, Cols: p.Cols, Span: p.Span}, numbers: map[string]int32{}, line: line}
	for i := range p.Lanes {
		l := &p.Lanes[i]
		x.in.Lanes = append(x.in.Lanes, [4]any{l.Rank, l.Block, max(l.Rows, 1), l.About})
	}
	if len(p.Nodes) > inlined {
		o := newOutline(p, outlineRows, 4*outlinePhases)
		x.in.Outline = &cells{o.ranks, o.phases, o.perRow, o.perPhase, int(kinds), o.count, len(p.Nodes)}
		return x.in
	}
	x.nodes(p)
	x.edges(p)
	x.values(p)
	return x.in
}

type packer struct {
	in      *inline
	numbers map[string]int32
	line    func(diag.Pos) string
}

func (x *packer) text(s string) int32 {
	n, ok := x.numbers[s]
	if !ok {
		n = int32(len(x.in.Strings))
		x.numbers[s] = n
		x.in.Strings = append(x.in.Strings, s)
	}
	return n
}

func (x *packer) nodes(p *Picture) {
	in := x.in
	timed := p.Stage == StageTimeline
	if !timed && p.Stage != StageTopology {
		in.Layer = p.layers()
	}
	places := map[diag.Pos]int32{}
	in.Moved = append(in.Moved, 0)
	for v := range p.Nodes {
		n := &p.Nodes[v]
		in.Kind, in.Lane, in.Row, in.Col = append(in.Kind, int(n.Kind)), append(in.Lane, n.Lane), append(in.Row, n.Row), append(in.Col, n.Col)
		in.ID = append(in.ID, n.ID)
		in.Label, in.Text = append(in.Label, x.text(p.label(int32(v)))), append(in.Text, x.text(p.text(int32(v))))
		pos, known := places[n.Pos]
		if !known {
			pos = x.position(n.Pos)
			places[n.Pos] = pos
		}
		in.Pos = append(in.Pos, pos)
		in.Values = append(in.Values, p.Moved[n.Moved.Start:n.Moved.End]...)
		in.Moved = append(in.Moved, int32(len(in.Values)))
		if timed {
			in.Begin, in.End, in.Tile = append(in.Begin, n.Begin), append(in.End, n.End), append(in.Tile, n.Tile)
		} else {
			in.Depth = append(in.Depth, n.Depth)
		}
		if n.Stuck {
			in.Stuck = append(in.Stuck, int32(v))
		}
	}
	in.Order = p.Order
}

// position keeps a place of a script and the line there.
func (x *packer) position(pos diag.Pos) int32 {
	if !pos.IsValid() {
		return ir.None
	}
	n := x.text(pos.String())
	if x.line != nil {
		if text := strings.TrimSpace(x.line(pos)); text != "" {
			x.in.Lines = append(x.in.Lines, n, x.text(text))
		}
	}
	return n
}

func (x *packer) edges(p *Picture) {
	in := x.in
	notes := p.Stage == StageTopology
	if notes {
		in.EdgeMoved = append(in.EdgeMoved, int32(len(in.Values)))
	}
	for i := range p.Edges {
		e := &p.Edges[i]
		in.EdgeKind, in.EdgeFrom, in.EdgeTo = append(in.EdgeKind, int(e.Kind)), append(in.EdgeFrom, e.From), append(in.EdgeTo, e.To)
		if notes {
			in.EdgeCount, in.EdgeNote = append(in.EdgeCount, e.Count), append(in.EdgeNote, e.Note)
			in.Values = append(in.Values, p.Moved[e.Moved.Start:e.Moved.End]...)
			in.EdgeMoved = append(in.EdgeMoved, int32(len(in.Values)))
		}
	}
}

func (x *packer) values(p *Picture) {
	if p.Values == nil {
		return
	}
	for i, v := range p.Values.list[1:] {
		a := v.A
		if v.Sum {
			x.in.Sums = append(x.in.Sums, int32(i+1))
		} else {
			a-- // the rank
		}
		x.in.Parts = append(x.in.Parts, a, v.B)
	}
}
