package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/charmbracelet/lipgloss"

	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime/cpu"
	"github.com/mscclsh/mscclsh/runtime/sim"
	"github.com/mscclsh/mscclsh/starlib"
	"github.com/mscclsh/mscclsh/viz"
)

// pictureArgs are what the commands that draw have in common: ranks to draw alone,
// and full for all of a large picture.
func (s *Shell) draw(call *invocation, p *viz.Picture, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	t := viz.Terminal{Width: s.width, Renderer: lipgloss.NewRenderer(s.plain), ASCII: s.ascii}
	for _, a := range call.args {
		if a == "full" {
			t.Full = true
			continue
		}
		r, err := rankArg(call.name, a, p.Ranks)
		if err != nil {
			return false, err
		}
		p = p.OfRank(ir.Rank(r))
	}
	if s.pictured != nil {
		s.pictured(p)
	}
	if s.drawn != nil {
		var text strings.Builder
		if err := viz.WriteText(&text, p, t); err != nil {
			return false, err
		}
		return true, s.drawn(p, text.String())
	}
	return true, viz.WriteText(s.out, p, t)
}

func shellDAG(_ context.Context, s *Shell, call *invocation) (bool, error) {
	prog, err := s.traced("dag")
	if err != nil {
		return false, err
	}
	p, err := viz.Chunks(prog.DAG)
	return s.draw(call, p, err)
}

func shellSchedule(ctx context.Context, s *Shell, call *invocation) (bool, error) {
	prog, err := s.final(ctx, call.set)
	if err != nil {
		return false, err
	}
	p, err := viz.Schedule(prog)
	return s.draw(call, p, err)
}

func shellConnections(ctx context.Context, s *Shell, call *invocation) (bool, error) {
	prog, err := s.final(ctx, call.set)
	if err != nil {
		return false, err
	}
	p, err := viz.Connections(prog)
	return s.draw(call, p, err)
}

// stageText is what a pass made, as text and as a picture where it has one.
type stageText struct {
	pass    string
	text    string
	picture *viz.Picture
}

// stages compiles the program and keeps what every pass made. A pass that runs
// again replaces what it made before.
func (s *Shell) stages(ctx context.Context, set *Settings) ([]stageText, error) {
	p, err := s.subject()
	if err != nil {
		return nil, err
	}
	if p.traced != nil && p.traced.One != nil {
		return s.oneSidedStages(ctx, set, p.traced)
	}
	prog, err := s.traced("instructions")
	if err != nil {
		return nil, err
	}
	c := s.session(set)
	opt, err := c.compileOptions(prog.DAG)
	if err != nil {
		return nil, err
	}
	var list []stageText
	var failed error
	keep := func(st compiler.Stage) {
		var b bytes.Buffer
		x := stageText{pass: st.Pass}
		switch {
		case st.Chunks != nil:
			failed = st.Chunks.WriteText(&b)
		case st.Instrs != nil:
			failed = st.Instrs.WriteText(&b)
			stage := viz.StageInstructions
			if slices.Contains([]string{"forward", "fuse"}, st.Pass) {
				stage = viz.StageFused
			}
			// Later passes change the instructions; pictures look at them when they are drawn.
			made := &ir.InstrDAG{Spec: st.Instrs.Spec, Instrs: slices.Clone(st.Instrs.Instrs)}
			if failed == nil {
				x.picture, failed = viz.Instructions(made, stage)
			}
		case st.Program != nil:
			failed = st.Program.WriteText(&b)
		}
		x.text = b.String()
		if i := slices.IndexFunc(list, func(y stageText) bool { return y.pass == x.pass }); i >= 0 {
			list[i] = x
			return
		}
		list = append(list, x)
	}
	opt.Observe = keep
	keep(compiler.Stage{Pass: tracePass, Chunks: prog.DAG})
	err = c.guard(func() error {
		_, err := compiler.Compile(ctx, prog.DAG, opt)
		return compileError(err, prog.Pos)
	})
	if err == nil {
		err = failed
	}
	return list, err
}

// oneSidedStages is stages for a one-sided program, whose passes have no pictures.
func (s *Shell) oneSidedStages(ctx context.Context, set *Settings, p *starlib.Program) ([]stageText, error) {
	c := s.session(set)
	var list []stageText
	var failed error
	keep := func(st compiler.Stage) {
		var b bytes.Buffer
		err := error(nil)
		if st.Trace != nil {
			err = st.Trace.WriteText(&b)
		} else {
			err = st.Program.WriteText(&b)
		}
		failed = cmp.Or(failed, err)
		list = append(list, stageText{pass: st.Pass, text: b.String()})
	}
	keep(compiler.Stage{Pass: tracePass, Trace: p.One})
	err := c.guard(func() error {
		_, err := compiler.CompileOneSided(ctx, p.One, compiler.Options{Target: c.oneSidedTarget(p.One.Protocol), Disable: set.Disable, Observe: keep})
		return compileError(err, p.Pos)
	})
	return list, cmp.Or(err, failed)
}

// shellInstructions shows what the passes make of the program.
func shellInstructions(ctx context.Context, s *Shell, call *invocation) (bool, error) {
	pass := ""
	for i, a := range call.args {
		if slices.Contains(passNames(), a) || a == "before" || a == "after" || a == "all" {
			pass = a
			call.args = slices.Delete(call.args, i, i+1)
			break
		}
		if a != "full" && (a == "" || a[0] < '0' || a[0] > '9') {
			return false, oneOfWords("instructions", a, append([]string{"before", "after", "all", "full"}, passNames()...))
		}
	}
	list, err := s.stages(ctx, call.set)
	if err != nil {
		return false, err
	}
	switch pass {
	case "", "before", "after":
		return s.drawInstructions(call, list, pass)
	case "all":
		for i := range list {
			s.say("# after %s", list[i].pass)
			fmt.Fprint(s.out, list[i].text)
		}
		return true, nil
	}
	i := slices.IndexFunc(list, func(x stageText) bool { return x.pass == pass })
	if i < 1 {
		s.say("# %s did not run", pass)
		return true, nil
	}
	s.say("# before %s, as %s made it", pass, list[i-1].pass)
	fmt.Fprint(s.out, list[i-1].text)
	s.say("# after %s", pass)
	fmt.Fprint(s.out, list[i].text)
	return true, nil
}

// drawInstructions pictures the first form of the instructions, the last, or both.
func (s *Shell) drawInstructions(call *invocation, list []stageText, which string) (bool, error) {
	list = slices.DeleteFunc(list, func(x stageText) bool { return x.picture == nil })
	if len(list) == 0 {
		return false, badCallHint("no-instructions", "instructions all shows what every pass made, schedule draws the result",
			"instructions: the program has none to draw")
	}
	first, last := &list[0], &list[len(list)-1]
	if which != "after" {
		if ok, err := s.draw(call, first.picture, nil); !ok || which == "before" {
			return ok, err
		}
		s.say("")
	}
	return s.draw(call, last.picture, nil)
}

// shellDraw writes pictures in the forms of mscclsh draw.
func shellDraw(ctx context.Context, s *Shell, call *invocation) (bool, error) {
	if len(call.args) > 0 {
		call.set.File = call.args[0]
	}
	p, err := s.subject()
	if err != nil {
		return false, err
	}
	set := *call.set
	set.Draw.on = true
	if set.toStdout() && set.Draw.width == 0 {
		set.Draw.width = s.width
	}
	defer s.exact()()
	return s.judged(ctx, &set, func(c *Session) error {
		c.Out = s.plain
		c.drawing = &drawing{lines: map[string][]string{shellFile: s.lines}}
		for i := range s.entries {
			if e := &s.entries[i]; e.kind == entryScript {
				c.drawing.lines[e.file] = textLines(e.text)
			}
		}
		for _, f := range []func() error{c.Set.validate, c.checkDraw} {
			if err := f(); err != nil {
				return err
			}
		}
		if err := s.make(ctx, c, p); err != nil {
			return err
		}
		if err := c.draw(ctx); err != nil || set.toStdout() {
			return err
		}
		s.say("drawn to %s", set.File)
		return nil
	})
}

// timelineBytes is what a timeline runs on: as many bytes as show how steps follow
// one another.
const timelineBytes = 64 << 10

// shellTimeline runs the program and draws when each step ran, or writes that for
// other viewers.
func shellTimeline(ctx context.Context, s *Shell, call *invocation) (bool, error) {
	file := ""
	call.args = slices.DeleteFunc(call.args, func(a string) bool {
		if filepath.Ext(a) == ".json" {
			file = a
			return true
		}
		return false
	})
	if file != "" {
		p, err := s.subject()
		if err != nil {
			return false, err
		}
		call.set.Trace = file
		return s.judged(ctx, call.set, func(c *Session) error {
			if err := s.make(ctx, c, p); err != nil {
				return err
			}
			return c.deliver(ctx, true)
		})
	}
	prog, err := s.final(ctx, call.set)
	if err != nil {
		return false, err
	}
	opt := cpu.Options{DType: call.set.DType, Op: call.set.Op, Iterations: 1, Seed: call.set.Seed, Exact: true, NoVerify: true, Events: true}
	if opt.Bytes = call.set.Size; opt.Bytes == ir.None {
		opt.Bytes = min(ordinarySize(prog, call.set.DType), timelineBytes)
		if prog.MinBytes > opt.Bytes {
			opt.Bytes = ordinarySize(prog, call.set.DType)
		}
	}
	rep, err := cpu.Run(ctx, prog, opt)
	if err != nil {
		return false, runError(err)
	}
	p, err := viz.Run(prog, rep.Events)
	return s.draw(call, p, err)
}

// shellBuffers prints what every buffer holds after the operations so far, as sums
// of the inputs.
func shellBuffers(ctx context.Context, s *Shell, call *invocation) (bool, error) {
	p, err := s.subject()
	if err != nil {
		return false, err
	}
	if p.traced == nil || p.traced.DAG == nil {
		return s.readBuffers(ctx, call)
	}
	d := p.traced.DAG
	ranks, err := ranksOf(call, d.Ranks())
	if err != nil {
		return false, err
	}
	for _, r := range ranks {
		for b := range d.Buffers {
			s.buffer(p, r, ir.BufferID(b))
		}
	}
	return true, nil
}

// ranksOf are the ranks that a command is about: the one named, or all.
func ranksOf(call *invocation, ranks int32) ([]ir.Rank, error) {
	if len(call.args) > 0 {
		r, err := rankArg(call.name, call.args[0], ranks)
		return []ir.Rank{ir.Rank(r)}, err
	}
	all := make([]ir.Rank, ranks)
	for i := range all {
		all[i] = ir.Rank(i)
	}
	return all, nil
}

// buffer prints one buffer of a rank.
func (s *Shell) buffer(p *shellProgram, r ir.Rank, b ir.BufferID) {
	d := p.traced.DAG
	n := int32(0)
	if chunks := d.Buffers[b].Chunks; int(r) < len(chunks) {
		n = chunks[r]
	}
	if n == 0 {
		return
	}
	name := d.BufferName(b)
	if canon, index := d.Coll.Canon(r, b, 0); canon != b {
		s.say("rank %d %s: the same memory as from %s[%d] on", r, name, d.BufferName(canon), index)
		return
	}
	s.say("rank %d %s", r, name)
	var cells []string
	for i := range n {
		c := sim.Content{}
		for _, x := range p.traced.Contents(r, b, i) {
			c.State = sim.Sum
			if last := len(c.Terms) - 1; last >= 0 && c.Terms[last].Contribution == x {
				c.Terms[last].Times++
				continue
			}
			c.Terms = append(c.Terms, sim.Term{Contribution: x, Times: 1})
		}
		cells = append(cells, fmt.Sprintf("%d%c %s", i, s.markOf(d, p, r, b, i), c))
	}
	writeGrid(s.out, cells, s.width)
}

// markOf is = where a place holds what the collective demands of it, . where it
// doesn't, and a blank where nothing is demanded.
func (s *Shell) markOf(d *ir.ChunkDAG, p *shellProgram, r ir.Rank, b ir.BufferID, i int32) byte {
	for out := range d.Coll.OutputChunks(r) {
		if canon, index := d.Coll.Canon(r, ir.Output, out); canon != b || index != i {
			continue
		}
		want, demanded := d.Coll.Expect(nil, r, out)
		switch {
		case !demanded:
			return ' '
		case slices.Equal(want, p.traced.Contents(r, b, i)):
			return '='
		}
		return '.'
	}
	return ' '
}

// writeGrid prints short texts in as many columns as fit.
func writeGrid(w io.Writer, cells []string, width int) {
	longest := 0
	for _, c := range cells {
		longest = max(longest, len(c))
	}
	columns := max((width-2)/(longest+2), 1)
	for i := 0; i < len(cells); i += columns {
		var row []string
		for _, c := range cells[i:min(i+columns, len(cells))] {
			row = append(row, fmt.Sprintf("%-*s", longest, c))
		}
		fmt.Fprintf(w, "  %s\n", strings.TrimRight(strings.Join(row, "  "), " "))
	}
}

// readBuffers is shellBuffers for a program without a trace: what is there when it
// has run.
func (s *Shell) readBuffers(ctx context.Context, call *invocation) (bool, error) {
	prog, err := s.final(ctx, call.set)
	if err != nil {
		return false, err
	}
	ranks, err := ranksOf(call, prog.Ranks())
	if err != nil {
		return false, err
	}
	m, err := sim.New(prog, sim.Options{})
	if err != nil {
		return false, err
	}
	if _, err := m.Run(ctx, sim.Until{}); err != nil {
		return false, err
	}
	for _, r := range ranks {
		if err := m.WriteBuffers(s.out, r, s.width); err != nil {
			return false, err
		}
	}
	return true, nil
}
