package main

import (
	"bytes"
	"context"
	"io"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/ir/plan"
)

// planFormat is MSCCL++'s execution plan.
func planFormat() format {
	return format{
		Name: "plan", Title: "an MSCCL++ execution plan", Exts: []string{".json"}, oneSided: true,
		Help: "MSCCL++ execution plan (JSON), of three dialects; the current one is written",
		read: func(_ context.Context, src source, set *Settings) (*imported, error) {
			im, err := plan.Read(bytes.NewReader(src.data), plan.Options{File: src.file, Literal: set.Literal})
			if err != nil {
				return nil, err
			}
			rules := "dialect " + im.Dialect.String()
			if set.Literal {
				rules += ", literally"
			}
			return &imported{rules: rules, programs: []*ir.Program{im.Program}, notes: im.Notes}, nil
		},
		write: func(w io.Writer, p *ir.Program, _ *Settings) error { return plan.Write(w, p) },
	}
}
