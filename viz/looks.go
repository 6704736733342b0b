package viz

import (
	"fmt"
	"strings"
)

// looks are the colors of a picture on light or on dark paper. They differ in
// brightness too, so that they can be told apart in print and by the color-blind;
// what a node does is also written in it, and edges have dashes of their own.
type looks struct {
	Paper  string            `json:"paper"`
	Shade  string            `json:"shade"` // every second rank
	Ink    string            `json:"ink"`
	Dim    string            `json:"dim"`
	Light  string            `json:"light"` // around what is lit up
	Fill   [kinds]string     `json:"fill"`
	Stroke [kinds]string     `json:"stroke"`
	Edge   [edgeKinds]string `json:"edge"`
}

var lightLooks = looks{
	Paper: "#ffffff", Shade: "#f4f5f7", Ink: "#111111", Dim: "#4a4f57", Light: "#c49a00",
	Fill: [kinds]string{KindCopy: "#d8efe6", KindReduce: "#fbe0cc", KindSend: "#d3e5f4", KindReceive: "#e4f5fd",
		KindRelay: "#f5e2ec", KindSync: "#ececec", KindRank: "#f4f5f7"},
	Stroke: [kinds]string{KindCopy: "#00805c", KindReduce: "#c04f00", KindSend: "#00619e", KindReceive: "#3f97c4",
		KindRelay: "#a5517f", KindSync: "#777777", KindRank: "#333333"},
	Edge: [edgeKinds]string{EdgeTrue: "#444444", EdgeFalse: "#8a8a8a", EdgeMessage: "#0072b2", EdgeWait: "#c04f00",
		EdgeOrder: "#999999", EdgeConnection: "#0072b2", EdgeLink: "#aaaaaa"},
}

var darkLooks = looks{
	Paper: "#16181c", Shade: "#1f2228", Ink: "#f2f2f2", Dim: "#b9bec7", Light: "#ffd84d",
	Fill: [kinds]string{KindCopy: "#0d3d30", KindReduce: "#53290a", KindSend: "#0d3550", KindReceive: "#173f52",
		KindRelay: "#4a2139", KindSync: "#33363c", KindRank: "#262a31"},
	Stroke: [kinds]string{KindCopy: "#2fb58d", KindReduce: "#f08a3c", KindSend: "#4aa3dc", KindReceive: "#7cc6ea",
		KindRelay: "#d98ab4", KindSync: "#9a9a9a", KindRank: "#dddddd"},
	Edge: [edgeKinds]string{EdgeTrue: "#c4c4c4", EdgeFalse: "#808080", EdgeMessage: "#4aa3dc", EdgeWait: "#f08a3c",
		EdgeOrder: "#777777", EdgeConnection: "#4aa3dc", EdgeLink: "#666666"},
}

// dashes are those of edges, drawn and left out in turn; none for a solid line.
var dashes = [edgeKinds][]float64{EdgeFalse: {4, 3}, EdgeWait: {7, 2}, EdgeOrder: {1, 3}, EdgeLink: {2, 3}}

// css is a drawing's style sheet.
func css() string {
	var b strings.Builder
	b.WriteString(".title{font-weight:bold;font-size:13px}\npath{fill:none}\nmarker path{stroke:none}\n" +
		".stuck rect{stroke-width:2.5;stroke-dasharray:4 2}\n")
	for k, d := range dashes {
		if d != nil {
			fmt.Fprintf(&b, ".e%d{stroke-dasharray:%g %g}\n", k, d[0], d[1])
		}
	}
	lightLooks.css(&b)
	b.WriteString("@media (prefers-color-scheme:dark){\n")
	darkLooks.css(&b)
	b.WriteString("}\n")
	return b.String()
}

func (l *looks) css(b *strings.Builder) {
	fmt.Fprintf(b, ".paper,.lane{fill:%s}\n.lane.odd{fill:%s}\n.title,g text{fill:%s}\n.about,.name,.note{fill:%s}\n.note{paint-order:stroke;stroke:%s;stroke-width:3px}\n", l.Paper, l.Shade, l.Ink, l.Dim, l.Paper)
	for k := range kinds {
		fmt.Fprintf(b, ".k%d rect,.k%d circle{fill:%s;stroke:%s}\n", k, k, l.Fill[k], l.Stroke[k])
	}
	for k := range edgeKinds {
		fmt.Fprintf(b, ".e%d{stroke:%s}\nmarker.e%d path{fill:%s}\n", k, l.Edge[k], k, l.Edge[k])
	}
}
