package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/machine"
	"github.com/mscclsh/mscclsh/starlib"
)

// host answers what a script asks of the command while it runs: Check(), show()
// and run(). What it prints goes to the error stream; the result of the command
// line comes after the script.
type host struct {
	session *Session
	set     *Settings
}

func (h *host) functions(ctx context.Context) starlib.Host {
	return starlib.Host{
		Topology: machine.Topology,
		Check:    func(p *starlib.Program) (bool, error) { return h.checkTraced(ctx, p) },
		Show:     func(p *starlib.Program, what string) error { return h.show(ctx, p, what) },
		Run:      func(p *starlib.Program, o starlib.RunOptions) (bool, error) { return h.run(ctx, p, o) },
	}
}

// child is a session of its own for one call of the script: same streams, own
// report.
func (h *host) child() *Session {
	set := *h.set
	return &Session{Out: h.session.Err, Err: h.session.Err, Set: &set, outStyle: h.session.errStyle,
		errStyle: h.session.errStyle, progress: h.session.progress, judgeOnly: h.session.judgeOnly}
}

func (h *host) check(ctx context.Context, d *ir.ChunkDAG) (bool, error) {
	c := h.child()
	if err := c.compile(ctx, d, diag.Pos{}); err != nil {
		return false, err
	}
	if err := c.check(ctx); err != nil {
		return false, err
	}
	h.session.checked = &verdict{trace: d, key: c.compileKey(d), program: c.program, report: c.report}
	if c.wrong() {
		h.session.failed = true
	}
	return !c.wrong(), nil
}

// verdict is what came of a Check() in the script.
type verdict struct {
	trace   *ir.ChunkDAG // nil of a one-sided program
	one     *ir.OneTrace // nil of any other
	key     string
	program *ir.Program
	report  Report
}

// compileKey tells apart settings with which a trace compiles or is judged
// differently.
func (s *Session) compileKey(d *ir.ChunkDAG) string {
	o, err := s.compileOptions(d)
	return fmt.Sprint(o.Target, o.Size, err, o.Slots, o.SlotBytes, o.MinBytes, o.MaxBytes, o.Disable, o.CanonicalOrder, o.DirectAsSimple,
		s.Set.Strict, s.Set.GPU, s.Set.RanksPerGPU)
}

// recall takes over what the script's last Check() found if that was about the
// same trace: most scripts end with one, and compile only once then.
func (s *Session) recall(d *ir.ChunkDAG) bool {
	v := s.checked
	if v == nil || v.trace == nil || v.key != s.compileKey(d) || !sameTrace(v.trace, d) {
		return false
	}
	s.reuse(v)
	return true
}

// reuse takes over a verdict.
func (s *Session) reuse(v *verdict) {
	s.program = v.program
	program := *v.report.Program
	s.report.Program, s.report.Compiled, s.report.Check = &program, v.report.Compiled, v.report.Check
}

// sameTrace reports whether b is what a was taken from, with nothing added.
func sameTrace(a, b *ir.ChunkDAG) bool {
	return a.Name == b.Name && a.Coll == b.Coll && a.Topo == b.Topo && a.Protocol == b.Protocol &&
		a.Instances == b.Instances && len(a.Buffers) == len(b.Buffers) && slices.Equal(a.Ops, b.Ops)
}

func (h *host) run(ctx context.Context, p *starlib.Program, o starlib.RunOptions) (bool, error) {
	c := h.child()
	c.judgeOnly, c.Set.WritesXML = false, false
	if err := applyRunOptions(c.Set, o); err != nil {
		return false, err
	}
	if err := c.compileProgram(ctx, p); err != nil {
		return false, err
	}
	if err := c.run(ctx); err != nil {
		return false, err
	}
	if !c.Set.Quiet {
		c.report.writeHuman(c.Err, c.errStyle)
	}
	return !c.report.failed(), nil
}

// applyRunOptions lets the arguments of run(...) stand in for flags.
func applyRunOptions(set *Settings, o starlib.RunOptions) error {
	tool := flagTable()
	for _, arg := range [...][2]string{{"size", o.Size}, {"dtype", o.DType}, {"op", o.Op}} {
		if arg[1] == "" {
			continue
		}
		if err := findFlag(tool, arg[0]).set(set, arg[1]); err != nil {
			return err
		}
	}
	if o.Iterations > 0 {
		set.Iterations = int(o.Iterations)
	}
	return nil
}

// declaredParam finds the names that a script's text declares as parameters.
var declaredParam = regexp.MustCompile(`\bparam\s*\(\s*(?:name\s*=\s*)?["']([A-Za-z0-9_-]+)["']`)

// callsXML finds what makes a script write XML. Until it has run it is not known
// whether it will; for what it asks before, that it may is good enough.
var callsXML = regexp.MustCompile(`\bXML\s*\(`)

// hostSettings are the settings for what the script itself asks. Which of the
// flags after it are the tool's is known for certain only once it has run; until
// then the text of its param calls tells. A value that is wrong is reported when
// the flags are applied for good.
func (s *Session) hostSettings(source []byte, args []scriptArg) *Settings {
	set := *s.Set
	set.WritesXML = callsXML.Match(source)
	params := make(map[string]bool)
	for _, m := range declaredParam.FindAllSubmatch(source, -1) {
		params[string(m[1])] = true
	}
	tool := flagTable()
	for i := range args {
		a := &args[i]
		if f := findFlag(tool, a.name); f != nil && (a.tool || !params[a.name]) {
			_ = setToolFlag(&set, f, a)
		}
	}
	return &set
}

// showForms are what show(what) can print besides what a pass made.
var showForms = []string{"program", "chunks", "report", "xml", "plan", "dot"}

func (h *host) show(ctx context.Context, p *starlib.Program, what string) error {
	if p.One != nil {
		return h.showOneSided(ctx, p, what)
	}
	c, d := h.child(), p.DAG
	switch {
	case what == "chunks":
		return d.WriteText(c.Err)
	case slices.Contains(passNames(), what):
		c.Set.DumpAfter = []string{what}
		return c.compile(ctx, d, diag.Pos{})
	case !slices.Contains(showForms, what):
		all := slices.Concat(showForms, passNames())
		return fmt.Errorf("got %q, want %s", what, orList(all))
	}
	c.Set.DumpAfter = nil
	if what == "xml" || what == "plan" {
		c.Set.Emit, c.Set.File = what, ""
	}
	if err := c.compile(ctx, d, diag.Pos{}); err != nil {
		return err
	}
	switch what {
	case "report":
		if err := c.check(ctx); err != nil {
			return err
		}
		c.report.writeHuman(c.Err, c.errStyle)
		return nil
	case "program":
		return c.program.WriteText(c.Err)
	}
	c.Set.Emit, c.Set.File = what, ""
	if what == "plan" {
		if err := c.export(ctx); err != nil {
			return err
		}
	}
	return c.emit()
}
