package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/charmbracelet/lipgloss"
	"github.com/mattn/go-isatty"

	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime/cpu"
	"github.com/mscclsh/mscclsh/viz"
)

// stageAll is the value of --stage that means each of them.
const stageAll = "all"

// drawForm is a form that pictures are written in.
type drawForm struct {
	name  string
	exts  []string
	stage string // drawn if none is named
	many  bool   // holds several stages
}

var drawForms = []drawForm{
	{"text", []string{".txt"}, viz.StageSchedule.String(), true},
	{"dot", []string{".dot", ".gv"}, viz.StageSchedule.String(), false},
	{"svg", []string{".svg"}, viz.StageSchedule.String(), false},
	{"html", []string{".html", ".htm"}, stageAll, true},
	{"trace", []string{".json"}, viz.StageTimeline.String(), false},
}

func drawFormNames() []string {
	var names []string
	for _, f := range drawForms {
		names = append(names, f.name)
	}
	return names
}

// drawSettings are what the flags of draw alone say.
type drawSettings struct {
	on          bool // the call draws
	stage, form string
	view        viz.View
	ranked      bool
	rank        int32
	full        bool
	width       int
	flag        string // one that was given
}

// drawFlags are those of draw alone.
func drawFlags() []toolFlag {
	only := func(name string, set func(*Settings, string) error) func(*Settings, string) error {
		return func(s *Settings, v string) error {
			s.Draw.flag = name
			return set(s, v)
		}
	}
	names := append(viz.StageNames(), stageAll)
	return []toolFlag{
		{Name: "stage", Arg: "NAME", Default: "schedule, all for html", Values: names,
			Help: "draw: what to draw: chunks (operations of the script), instructions (before fusion), fused (after it), schedule (steps on thread blocks), topology (channels and connections), timeline (of one run) or all",
			set:  only("stage", oneOf("stage", names, func(s *Settings, v string) { s.Draw.stage = v }))},
		{Name: "form", Arg: "FORM", Default: "by the ending of -o, else text", Values: drawFormNames(),
			Help: "draw: text (for a terminal), dot (Graphviz), svg, html (one page with all stages, for any browser) or trace (a timeline for Perfetto)",
			set:  only("form", oneOf("form", drawFormNames(), func(s *Settings, v string) { s.Draw.form = v }))},
		{Name: "view", Arg: "NAME", Default: "lanes", Values: []string{"lanes", "layers"},
			Help: "draw: of svg: lanes (a lane a rank or thread block, to the right with time) or layers (by depth alone)",
			set: only("view", oneOf("view", []string{"lanes", "layers"}, func(s *Settings, v string) {
				s.Draw.view = viz.Lanes
				if v == "layers" {
					s.Draw.view = viz.Layers
				}
			}))},
		{Name: "rank", Arg: "N", Help: "draw: only what one rank does, and the steps of others that it is joined to",
			set: only("rank", func(s *Settings, v string) error {
				n, err := parseRank(v)
				s.Draw.rank, s.Draw.ranked = n, err == nil
				return err
			})},
		{Name: "full", Help: "draw: of text: each step, however many there are, instead of an outline",
			set: only("full", yes(func(s *Settings, v bool) { s.Draw.full = v }))},
		{Name: "width", Arg: "N", Default: "80", Help: "draw: of text: how many columns a line has",
			set: only("width", positive("width", 1<<16, func(s *Settings, n int64) { s.Draw.width = int(n) }))},
	}
}

// toolFlags are the flags that may stand after a file. Those of draw may only where
// something is drawn: --rank elsewhere is a slip for a script's --ranks.
func (s *Session) toolFlags() []toolFlag {
	table := flagTable()
	if s.drawing == nil {
		table = slices.DeleteFunc(table, func(f toolFlag) bool { return onlyOfDraw(f.Name) })
	}
	return table
}

func parseRank(v string) (int32, error) {
	n, err := parseSize(v)
	if err != nil || n > math.MaxInt32 || strings.ContainsFunc(v, func(r rune) bool { return r < '0' || r > '9' }) {
		return 0, fmt.Errorf("rank: got %q, want the number of a rank, from 0", v)
	}
	return int32(n), nil
}

// onlyOfDraw reports whether no other command has the flag.
func onlyOfDraw(name string) bool {
	return slices.ContainsFunc(drawFlags(), func(f toolFlag) bool { return f.Name == name })
}

// drawFlagNames are all flags of the draw command.
func drawFlagNames() []string {
	var names []string
	for _, f := range slices.Concat(drawFlags(), readFlags(), compileFlags()) {
		names = append(names, f.Name)
	}
	return append(names, "emit-file", "target", "in-place", "out-of-place", "size", "dtype", "op", "quiet")
}

// drawEntry is the command's row in the table.
func drawEntry() command {
	return command{
		Name:  "draw",
		Args:  "FILE [--parameter value ...]",
		Short: "Draw a program, at any stage: as text, SVG, DOT, or a page to look around in",
		Long: `Draws what becomes of a script: its operations on chunks with their dependencies, the instructions before and after
fusion, the steps of every thread block, the connections between ranks, and a run by the clock. Of a program that was
read there are the last three.

With -o FILE.html it writes one page with all of them, which needs no network and no other file: move and zoom, point
at a step to see its line of the script, its peer and what waits for it, click a chunk and see it lit up in
every stage, play the program step by step. -o FILE.svg, FILE.dot and FILE.json (for Perfetto) hold one stage; without
-o the drawing is text on standard output.

Programs that are wrong are drawn too, and steps that can never run are marked. A timeline runs the program on this
CPU, of which a wrong program has none.`,
		Examples: []string{
			"mscclsh draw @algorithms/allreduce_ring.star --ranks 4",
			"mscclsh draw -o ring.html @algorithms/allreduce_ring.star",
			"mscclsh draw --stage fused -o fused.svg @algorithms/allreduce_allpairs.star",
			"mscclsh draw --rank 0 ring.xml",
		},
		Flags:   drawFlagNames(),
		MaxArgs: -1,
		MinArgs: 1,
		Script:  true,
		Run:     func(ctx context.Context, s *Session, args []string) error { return s.Draw(ctx, args) },
	}
}

// drawing keeps what the compiler makes on the way, to be drawn.
type drawing struct {
	source        []byte              // of the file that the call is about
	chunks        *ir.ChunkDAG        // nil of a program that was read
	before, after *ir.InstrDAG        // fusion
	lines         map[string][]string // of scripts, by name
}

// Draw is the command: like Run up to the compiled program.
func (s *Session) Draw(ctx context.Context, args []string) error {
	s.drawing, s.judgeOnly, s.Set.Draw.on = &drawing{lines: map[string][]string{}}, true, true
	return s.Run(ctx, args)
}

// checkDraw refuses flags that mean nothing for what the call does.
func (s *Session) checkDraw() error {
	d := &s.Set.Draw
	if s.drawing == nil {
		if d.flag != "" {
			return badCallHint("flag-unused", "mscclsh draw FILE draws", "--%s is for draw", d.flag)
		}
		return nil
	}
	if s.Set.Emit != "" || s.Set.Run || s.Set.Trace != "" || s.Set.JSON || s.Set.BenchFlag != "" {
		return badCall("flag-unused", "draw draws, and nothing else: it takes no --emit, --run, --trace, --json or flags of bench")
	}
	form, err := s.Set.drawForm()
	if err != nil {
		return err
	}
	if d.stage == "" {
		d.stage = form.stage
	}
	switch {
	case d.stage == stageAll && !form.many:
		return badCallHint("stage", "choose one, or draw all with --form html", "--form %s holds one stage, not all", form.name)
	case form.name == "trace" && d.stage != viz.StageTimeline.String():
		return badCallHint("stage", "leave --stage out", "--form trace is of a timeline: got --stage %s", d.stage)
	case form.name == "trace" && d.ranked:
		return badCall("flag-unused", "--rank: a trace is of all ranks")
	case d.view == viz.Layers && form.name != "svg":
		return badCall("flag-unused", "--view is for svg; in the page (html) the key l changes it")
	}
	return nil
}

// drawForm is the form asked for, or the one that the name of the file says.
func (s *Settings) drawForm() (drawForm, error) {
	ext := strings.ToLower(filepath.Ext(s.File))
	for _, f := range drawForms {
		if s.Draw.form == f.name || s.Draw.form == "" && (s.toStdout() && f.name == "text" || !s.toStdout() && slices.Contains(f.exts, ext)) {
			return f, nil
		}
	}
	return drawForm{}, badCallHint("draw-form", "give --form "+strings.Join(drawFormNames(), ", --form ")+", or a name that ends in .txt, .dot, .svg, .html or .json",
		"-o %s: what to draw there is not known", s.File)
}

// keep takes note of what the compiler made. Later passes may change it.
func (d *drawing) keep(st compiler.Stage) {
	switch {
	case st.Chunks != nil && st.Pass == tracePass:
		d.chunks = st.Chunks
	case st.Instrs != nil:
		made := &ir.InstrDAG{Spec: st.Instrs.Spec, Instrs: slices.Clone(st.Instrs.Instrs)}
		if st.Pass == "lower" {
			d.before = made
		} else {
			d.after = made
		}
	}
}

// draw writes the pictures asked for, of the program that was compiled or read.
func (s *Session) draw(ctx context.Context) error {
	set := &s.Set.Draw
	form, err := s.Set.drawForm()
	if err != nil {
		return err
	}
	if set.ranked && set.rank >= s.program.Ranks() {
		return badCall("rank", "--rank %d: program %q has ranks 0 to %d", set.rank, s.program.Name, s.program.Ranks()-1)
	}
	var pictures []*viz.Picture
	for i, name := range viz.StageNames() {
		if set.stage != name && set.stage != stageAll || form.name == "trace" {
			continue
		}
		p, err := s.picture(ctx, viz.Stage(i))
		if err != nil {
			return err
		}
		if p != nil && set.ranked {
			p = p.OfRank(ir.Rank(set.rank))
		}
		if p != nil {
			pictures = append(pictures, p)
		}
	}
	write := func(w io.Writer) error { return s.writePictures(w, form.name, pictures) }
	if form.name == "trace" {
		bytes, events, err := s.events(ctx)
		if err != nil {
			return err
		}
		write = func(w io.Writer) error {
			return viz.Timeline(w, s.program, events, s.aboutRun(s.program, backendCPU, bytes))
		}
	}
	return s.deliverDrawing(write)
}

// deliverDrawing writes to standard output, or to a file as a whole.
func (s *Session) deliverDrawing(write func(io.Writer) error) error {
	s.begin("drawing " + s.program.Name)
	whole := func(w io.Writer) error {
		if err := write(w); err != nil {
			return cannot("writing the drawing: %w", err)
		}
		return nil
	}
	if !s.Set.toStdout() {
		if s.input != "" && overwrites(s.Set.File, s.input) {
			return badCall("output", "writing %s: that is the file which the program comes from", s.Set.File)
		}
		return writeFile(s.Set.File, whole)
	}
	s.begin("")
	buf := bufio.NewWriterSize(s.Out, 1<<20)
	if err := whole(buf); err != nil {
		return err
	}
	if err := buf.Flush(); err != nil {
		return cannot("writing the drawing: %w", err)
	}
	return nil
}

// picture is one stage, nil where the program has none and all were asked for.
func (s *Session) picture(ctx context.Context, stage viz.Stage) (*viz.Picture, error) {
	d := s.drawing
	if stage < viz.StageSchedule && (d.chunks == nil || d.before == nil || d.after == nil) {
		if s.Set.Draw.stage == stageAll {
			return nil, nil
		}
		what := "a script; a program that was read"
		if s.report.Read == nil {
			what = "a script that routes chunks; a one-sided program"
		}
		return nil, badCallHint("stage", "it has "+strings.Join(viz.StageNames()[viz.StageSchedule:], ", "), "--stage %s is of %s has no such stage", stage, what)
	}
	switch stage {
	case viz.StageChunks:
		return viz.Chunks(d.chunks)
	case viz.StageInstructions:
		return viz.Instructions(d.before, stage)
	case viz.StageFused:
		return viz.Instructions(d.after, stage)
	case viz.StageSchedule:
		return viz.Schedule(s.program)
	case viz.StageTopology:
		return viz.Connections(s.program)
	}
	_, events, err := s.events(ctx)
	if err != nil && s.Set.Draw.stage == stageAll && ctx.Err() == nil {
		s.warn(diag.Warningf(s.from, "no-timeline", "there is no timeline: %s", diag.Messages(err)[0].Text))
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return viz.Run(s.program, events)
}

// events are those of a run on this CPU, and the bytes that it ran on.
func (s *Session) events(ctx context.Context) (int64, []ir.Event, error) {
	s.begin("checking " + s.program.Name)
	part, _, err := s.judge(ctx, s.program)
	if err != nil {
		return 0, nil, err
	}
	if !part.Holds {
		return 0, nil, &codedError{exitWrong, diag.Errorf(s.from, "no-timeline", "program %q is wrong, so it isn't run", s.program.Name).
			Suggest("mscclsh check %s says what is wrong", s.input)}
	}
	s.begin("running " + s.program.Name)
	n := s.Set.Size
	if n == ir.None {
		n = ordinarySize(s.program, s.Set.DType)
	}
	rep, err := cpu.Run(ctx, s.program, cpu.Options{DType: s.Set.DType, Op: s.Set.Op, Bytes: n, Iterations: 1, Seed: s.Set.Seed,
		NoVerify: true, Exact: s.Set.Data == dataExact, Events: true})
	if err != nil {
		return 0, nil, runError(err)
	}
	return rep.Bytes, rep.Events, nil
}

// writePictures writes pictures in a form.
func (s *Session) writePictures(w io.Writer, form string, pictures []*viz.Picture) error {
	switch form {
	case "dot":
		return viz.WriteDOT(w, pictures[0])
	case "svg":
		return viz.WriteSVG(w, pictures[0], s.Set.Draw.view)
	case "html":
		return viz.WriteHTML(w, viz.Page{Title: s.program.Name, Pictures: pictures, Line: s.scriptLine})
	}
	t := viz.Terminal{Width: s.Set.Draw.width, Full: s.Set.Draw.full}
	if s.Set.toStdout() {
		t.Renderer = lipgloss.NewRenderer(s.Out)
		out, ok := s.Out.(*os.File)
		t.ASCII = ok && isatty.IsTerminal(out.Fd()) && !utf8Locale() // a file can be read anywhere
	}
	for i, p := range pictures {
		if i > 0 {
			if _, err := io.WriteString(w, "\n"); err != nil {
				return err
			}
		}
		if err := viz.WriteText(w, p, t); err != nil {
			return err
		}
	}
	return nil
}

// scriptLine is the text at a position, "" where the file can't be read.
func (s *Session) scriptLine(pos diag.Pos) string {
	d := s.drawing
	list, known := d.lines[pos.File]
	if !known {
		data := d.source
		if pos.File != s.input {
			data, _ = readScript(context.Background(), pos.File) // drawn without, if it is gone
		}
		list = strings.Split(string(data), "\n")
		d.lines[pos.File] = list
	}
	if pos.Line < 1 || int(pos.Line) > len(list) {
		return ""
	}
	return list[pos.Line-1]
}
