package main

import (
	"bytes"
	"context"
	"io"

	"github.com/mscclsh/mscclsh/checker"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/ir/mscclxml"
)

// xmlFormat is MSCCL XML, which three runtimes load and a simulator reads.
func xmlFormat() format {
	return format{
		Name: "xml", Title: "MSCCL XML", Exts: []string{".xml"}, twoSided: true,
		Help: "MSCCL XML: read by the rules of --runtime, written for --target",
		read: readXML,
		write: func(w io.Writer, p *ir.Program, set *Settings) error {
			return mscclxml.Write(w, p, set.xmlTarget())
		},
	}
}

func readXML(ctx context.Context, src source, set *Settings) (*imported, error) {
	var failed error
	im, err := mscclxml.Read(bytes.NewReader(src.data), mscclxml.ReadOptions{File: src.file, Runtime: set.Runtime,
		Holds: func(p *ir.Program) bool {
			rep, err := checker.Check(ctx, p, checker.Options{MaxMessages: 1})
			if err != nil {
				failed = err
				return false
			}
			for _, code := range [...]string{checker.CodeWrongResult, checker.CodeInputClobbered, checker.CodeProgram, checker.CodeBounds} {
				if rep.Has(code) {
					return false
				}
			}
			return true
		}})
	switch {
	case failed != nil:
		return nil, failed
	case err != nil:
		return nil, err
	}
	out := &imported{rules: set.Runtime.String(), programs: im.Programs, notes: im.Notes,
		refusals: mscclxml.Refusals(src.data, src.file)}
	for _, name := range mscclxml.ReadingNames() {
		if name != mscclxml.Plain.String() {
			out.runtimes = append(out.runtimes, name)
		}
	}
	return out, nil
}
