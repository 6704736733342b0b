package main

import (
	"bytes"
	"context"
	"io"

	"github.com/mscclsh/mscclsh/ir"
)

// textFormat is the readable form of any program.
func textFormat() format {
	return format{
		Name: "text", Title: "the text form", Exts: []string{".txt", ".ir"}, twoSided: true, oneSided: true,
		Help: "readable form of any program, with positions of the script",
		read: func(_ context.Context, src source, _ *Settings) (*imported, error) {
			p, err := ir.ParseProgramHere(bytes.NewReader(src.data), src.file)
			if err != nil {
				return nil, err
			}
			return &imported{programs: []*ir.Program{p}}, nil
		},
		write: func(w io.Writer, p *ir.Program, _ *Settings) error { return p.WriteText(w) },
	}
}
