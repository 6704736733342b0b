package main

import (
	"io"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/viz"
)

// dotFormat is a drawing for Graphviz.
func dotFormat() format {
	return format{
		Name: "dot", Title: "a drawing", Exts: []string{".dot", ".gv"}, twoSided: true,
		Help: "drawing for Graphviz",
		write: func(w io.Writer, p *ir.Program, _ *Settings) error {
			pic, err := viz.Schedule(p)
			if err != nil {
				return err
			}
			return viz.WriteDOT(w, pic)
		},
	}
}
