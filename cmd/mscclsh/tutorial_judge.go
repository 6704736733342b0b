package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/internal/notebook"
	"github.com/mscclsh/mscclsh/ir"
)

// wanted is what an exercise demands: the collective of its solution, over links
// that the solution may use, and what the exercise's key demand says.
type wanted struct {
	coll    *ir.Collective
	topo    *ir.Topology
	demands []demand
}

// demand bounds a quantity of the program, or of what goes from one rank to another.
type demand struct {
	what     string
	least    bool // at least n, not at most
	n        int64
	from, to ir.Rank // None for the whole program
}

// quantity is something that a demand can be about.
type quantity struct {
	name, text string
	of         func(w *wanted, c *Session) int64
}

func quantities() []quantity {
	return []quantity{
		{"steps", "step", func(_ *wanted, c *Session) int64 { return int64(c.report.Compiled.Steps) }},
		{"blocks", "thread block", func(_ *wanted, c *Session) int64 { return int64(c.report.Compiled.ThreadBlocks) }},
		{"channels", "channel", func(_ *wanted, c *Session) int64 { return int64(c.report.Compiled.Channels) }},
		{"scratch", "chunk of scratch", func(_ *wanted, c *Session) int64 { return c.report.Compiled.ScratchChunks }},
		{"slots", "slot a connection", func(_ *wanted, c *Session) int64 { return int64(c.report.Check.MinSlots) }},
		{"hops", "message one after the other", func(_ *wanted, c *Session) int64 { return longestChain(c.program) }},
		{"load", "chunk over the busiest link", func(w *wanted, c *Session) int64 { return w.load(c.program) }},
	}
}

var demandForm = regexp.MustCompile(`^([a-z]+)(?:\(([0-9]{1,5}),([0-9]{1,5})\))? (<=|>=) ([0-9]+)$`)

// parseDemands reads "steps <= 4, channels >= 2, channels(1,2) >= 2".
func parseDemands(text string, at diag.Pos) ([]demand, error) {
	var list []demand
	if text == "" {
		return nil, nil
	}
	for _, part := range strings.Split(text, ", ") {
		m := demandForm.FindStringSubmatch(part)
		if m == nil || m[2] != "" && m[1] != "channels" || !slices.ContainsFunc(quantities(), func(q quantity) bool { return q.name == m[1] }) {
			var names []string
			for _, q := range quantities() {
				names = append(names, q.name)
			}
			return nil, diag.Errorf(at, "lesson", "demand: got %q, want something like steps <= 4, with %s", part, orList(names))
		}
		n, err := strconv.ParseInt(m[5], 10, 64)
		if err != nil {
			return nil, diag.Errorf(at, "lesson", "demand: %s is too large", m[5])
		}
		d := demand{m[1], m[4] == ">=", n, ir.None, ir.None}
		if m[2] != "" {
			from, _ := strconv.ParseInt(m[2], 10, 32) // the form has digits, and few
			to, _ := strconv.ParseInt(m[3], 10, 32)
			d.from, d.to = ir.Rank(from), ir.Rank(to)
		}
		list = append(list, d)
	}
	return list, nil
}

// exerciseOf is what a lesson's exercise demands. The solution is run for that, with
// the cells that it may need.
func exerciseOf(ctx context.Context, l *lesson) (*wanted, error) {
	exercise, solution := -1, -1
	for i := range l.Cells {
		switch c := &l.Cells[i]; {
		case c.Has(notebook.TagExercise):
			exercise = i
		case c.Has(notebook.TagSolution):
			solution = i
		}
	}
	if exercise < 0 || solution < 0 {
		return nil, badCall("no-exercise", "%s: the lesson has no exercise with a solution", l.name)
	}
	w := &wanted{}
	var err error
	if w.demands, err = parseDemands(l.Cells[exercise].Keys["demand"], diag.Pos{File: l.File, Line: l.Cells[exercise].Line}); err != nil {
		return nil, err
	}
	sh := NewShell(io.Discard, io.Discard)
	for i := range l.Cells[:solution+1] {
		c := &l.Cells[i]
		if c.Has(notebook.TagFails) {
			continue
		}
		for _, p := range c.Parts() {
			if p.Command && firstWord(p.Text) != "load" {
				continue
			}
			mark := ""
			if p.Command {
				mark = ":"
			}
			if err := sh.Exec(ctx, mark+p.Text); err != nil {
				return nil, err
			}
			if err := sh.End(ctx); err != nil {
				return nil, err
			}
		}
	}
	prog, err := sh.final(ctx, sh.set)
	if err != nil {
		return nil, err
	}
	w.coll, w.topo = prog.Coll, prog.Topo
	return w, nil
}

// judgeSolutionFile judges a file as a solution of a lesson's exercise.
func (s *Session) judgeSolutionFile(ctx context.Context, l *lesson, file string) error {
	w, err := exerciseOf(ctx, l)
	if err != nil {
		return err
	}
	sh := NewShell(s.Out, s.Err)
	sh.progress = s.progress
	ok, err := sh.judgeLoaded(ctx, w, file)
	s.begin("")
	if err == nil && !ok {
		err = errReported
	}
	var told *toldError
	s.told = errors.As(err, &told) || errors.Is(err, errReported)
	return err
}

// judgeLoaded judges a file in a session of its own.
func (s *Shell) judgeLoaded(ctx context.Context, w *wanted, file string) (bool, error) {
	sh := NewShell(s.out, s.err)
	sh.progress = s.progress
	if _, err := sh.load(ctx, file, nil, sh.set); err != nil {
		return false, err
	}
	return sh.judgeSolution(ctx, w)
}

// judgeSolution judges the program that the session is about, and says how it went.
func (s *Shell) judgeSolution(ctx context.Context, w *wanted) (bool, error) {
	p, err := s.subject()
	if err != nil {
		return false, err
	}
	c := s.session(s.set)
	c.judgeOnly = true
	err = c.guard(func() error {
		if err := s.make(ctx, c, p); err != nil {
			return err
		}
		if w.unfit(c.program) != "" { // what its outputs hold is another matter
			return nil
		}
		if c.report.Compiled == nil {
			c.report.Compiled = countedPart(c.program)
		}
		return c.check(ctx)
	})
	c.begin("")
	if err != nil {
		return false, err
	}
	wrong := w.judge(c)
	if len(wrong) == 0 {
		s.say("%s", s.outStyle.good.Render("exercise: solved")+": every output right"+w.reached(c))
		return true, nil
	}
	s.say("%s", s.outStyle.bad.Render("exercise: not solved yet"))
	for _, line := range wrong {
		s.say("    %s", line)
	}
	return false, nil
}

// judge says what of a program isn't as the exercise demands it.
func (w *wanted) judge(c *Session) []string {
	var wrong []string
	p := c.program
	if what := w.unfit(p); what != "" {
		return []string{what}
	}
	if !c.report.Check.Holds {
		wrong = append(wrong, fmt.Sprintf("the check fails: %s", plural(int64(countErrors(c.report.Check.Messages)), "error")))
	}
	if from, to, bad := missingLink(p, w.topo); bad {
		wrong = append(wrong, fmt.Sprintf("rank %d sends to rank %d, and the topology of the exercise, %s, has no such link", from, to, w.topo.Name))
	}
	if len(wrong) > 0 {
		return wrong
	}
	for _, d := range w.demands {
		n, q := d.of(w, c)
		switch {
		case d.least && n < d.n:
			wrong = append(wrong, fmt.Sprintf("it has %s, at least %d are wanted", counted(n, q), d.n))
		case !d.least && n > d.n:
			wrong = append(wrong, fmt.Sprintf("it has %s, at most %d are allowed", counted(n, q), d.n))
		}
	}
	return wrong
}

// unfit says why a program is about something else than the exercise, "" if it
// isn't.
func (w *wanted) unfit(p *ir.Program) string {
	if p.OneSided != nil {
		return "the program puts and signals; the exercise is about sends and receives"
	}
	return otherCollective(p.Coll, w.coll)
}

func (d demand) of(w *wanted, c *Session) (int64, string) {
	if d.from != ir.None {
		return channelsBetween(c.program, d.from, d.to), fmt.Sprintf("channel from rank %d to rank %d", d.from, d.to)
	}
	for _, q := range quantities() {
		if q.name == d.what {
			return q.of(w, c), q.text
		}
	}
	return 0, d.what
}

// counted is "2 slots a connection".
func counted(n int64, what string) string {
	noun, rest, _ := strings.Cut(what, " ")
	if noun == "thread" {
		noun, rest = what, ""
	}
	if rest != "" {
		rest = " " + rest
	}
	return plural(n, noun) + rest
}

// reached tells the quantities that were demanded.
func (w *wanted) reached(c *Session) string {
	var b strings.Builder
	for _, d := range w.demands {
		n, q := d.of(w, c)
		b.WriteString(", " + counted(n, q))
	}
	return b.String()
}

// otherCollective says how a collective differs from the one that is wanted, "" if
// it demands the same of the same places. Chunks may be cut into more pieces, or
// fewer: an instance more makes no other collective.
func otherCollective(got, want *ir.Collective) string {
	name := func(c *ir.Collective) string {
		return fmt.Sprintf("%s on %s, %s", c, plural(int64(c.Ranks), "rank"), modeName(c.InPlace))
	}
	if got.Ranks != want.Ranks || got.InPlace != want.InPlace {
		return fmt.Sprintf("it is %s; the exercise wants %s", name(got), name(want))
	}
	fine, coarse, pieces := got, want, piecesOf(got, want)
	if pieces == 0 {
		fine, coarse, pieces = want, got, piecesOf(want, got)
	}
	for r := range ir.Rank(want.Ranks) {
		if in, out := want.InputChunks(r), want.OutputChunks(r); pieces == 0 {
			return fmt.Sprintf("rank %d has %s of input and %d of output; the exercise wants %d and %d, as %s has them", r,
				plural(int64(got.InputChunks(r)), "chunk"), got.OutputChunks(r), in, out, name(want))
		}
		for i := range fine.InputChunks(r) {
			if fine.Holds(r, i) != coarse.Holds(r, i/pieces) {
				return fmt.Sprintf("it is %s; the exercise wants %s", name(got), name(want))
			}
		}
		for i := range fine.OutputChunks(r) {
			a, demandedA := fine.Expect(nil, r, i)
			b, demandedB := coarse.Expect(nil, r, i/pieces)
			for k := range b {
				b[k].Index = b[k].Index*pieces + i%pieces
			}
			if demandedA != demandedB || !slices.Equal(a, b) {
				return fmt.Sprintf("it is %s, which demands something else of output %d of rank %d than the exercise, %s", name(got), i, r, name(want))
			}
		}
	}
	return ""
}

// piecesOf is into how many pieces fine cuts each chunk of coarse: 1 if their chunks
// are the same, 0 if they aren't pieces of the other's.
func piecesOf(fine, coarse *ir.Collective) int32 {
	n := int32(0)
	for r := range ir.Rank(coarse.Ranks) {
		for _, c := range [][2]int32{{fine.InputChunks(r), coarse.InputChunks(r)}, {fine.OutputChunks(r), coarse.OutputChunks(r)}} {
			if n == 0 && c[1] > 0 {
				n = c[0] / c[1]
			}
			if c[0] != n*c[1] {
				return 0
			}
		}
	}
	return n
}

// missingLink finds a message over a link that a topology doesn't have.
func missingLink(p *ir.Program, topo *ir.Topology) (from, to ir.Rank, missing bool) {
	if topo == nil {
		return 0, 0, false
	}
	for g := range p.GPUs {
		for b := range p.GPUs[g].TBs {
			for _, st := range p.GPUs[g].TBs[b].Steps {
				if st.Kind.Sends() && !topo.Linked(ir.Rank(g), st.SendPeer) {
					return ir.Rank(g), st.SendPeer, true
				}
			}
		}
	}
	return 0, 0, false
}
