package main

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/internal/notebook"
	"github.com/mscclsh/mscclsh/viz"
)

// pageWidth is that of outputs on the page, in characters.
const pageWidth = 100

// lessonPage runs lessons and writes them as a page.
func (s *Session) lessonPage(ctx context.Context, list []lesson) error {
	var rendered []notebook.Rendered
	for i := range list {
		l := &list[i]
		s.begin("running lesson " + l.name)
		outputs, err := renderLesson(ctx, l)
		if err != nil {
			return err
		}
		rendered = append(rendered, notebook.Rendered{Notebook: l.Notebook, ID: fmt.Sprintf("lesson-%d", i+1), Outputs: outputs})
	}
	s.begin("")
	title := "mscclsh: lessons"
	if len(list) == 1 {
		title = list[0].Title()
	}
	write := func(w io.Writer) error { return notebook.WritePage(w, title, rendered) }
	if s.Set.File == "" || s.Set.File == "-" {
		return write(s.Out)
	}
	return writeFile(s.Set.File, write)
}

// renderLesson runs a lesson in a shell of its own and keeps what each cell gave. A
// cell that ends otherwise than it was meant to is an error.
func renderLesson(ctx context.Context, l *lesson) ([]notebook.Output, error) {
	var said bytes.Buffer
	sh := NewShell(&said, &said)
	sh.width = pageWidth
	g := newGuide(sh, l)
	outputs := make([]notebook.Output, len(l.Cells))
	var failed error
	for i := range l.Cells {
		c, out := &l.Cells[i], &outputs[i]
		if c.Kind != notebook.Code {
			continue
		}
		said.Reset()
		sh.pictured = func(p *viz.Picture) {
			var svg bytes.Buffer
			if err := viz.WriteSVG(&svg, p, viz.Lanes); err != nil {
				failed = err
				return
			}
			out.Pictures = append(out.Pictures, svg.String())
			out.Both = out.Both || p.Stage == viz.StageTopology // the text counts messages
		}
		out.Line = len(sh.lines) + 1
		_, err := g.run(ctx, c)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		out.Text, out.Failed = said.String(), err != nil
		if failed != nil {
			return nil, failed
		}
		if wrong := unexpected(c, err, l.File); wrong != nil {
			for _, m := range diag.Messages(wrong) {
				m.Note(diag.Pos{}, "%s", said.String())
			}
			return nil, wrong
		}
	}
	return outputs, nil
}
