package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mscclsh/mscclsh/checker"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/ir/mscclxml"
)

// The verdicts on a file, from the worst: what can't be read is refused.
const (
	verdictRefused  = "refused"
	verdictInvalid  = "invalid"
	verdictDeadlock = "deadlock"
	verdictFail     = "fail"
	verdictRace     = "race"
	verdictUnfit    = "unfit"   // on the GPU that was named
	verdictWarning  = "warning" // with --strict
	verdictPass     = "pass"
)

var verdictOrder = []string{verdictRefused, verdictInvalid, verdictDeadlock, verdictFail, verdictRace, verdictUnfit,
	verdictWarning, verdictPass}

func worse(a, b string) string {
	if slices.Index(verdictOrder, a) < slices.Index(verdictOrder, b) {
		return a
	}
	return b
}

// FilePart is the row of one file; --json prints it as it stands here. A file that
// declares both modes has the worse of everything.
type FilePart struct {
	File       string        `json:"file"`
	Format     string        `json:"format,omitempty"`
	Program    string        `json:"program,omitempty"`
	Collective string        `json:"collective,omitempty"`
	Ranks      int32         `json:"ranks,omitempty"`
	Protocol   string        `json:"protocol,omitempty"`
	Modes      []string      `json:"modes,omitempty"`
	Verdict    string        `json:"verdict"`
	MinSlots   int32         `json:"min_slots"`        // least that every size of the window runs with; 0: none does, or with protocol Direct none is needed
	SafeMin    int64         `json:"safe_min_bytes"`   // sizes that are safe with the file's own slots:
	SafeMax    int64         `json:"safe_max_bytes"`   // 0 is no limit, -1 no size at all
	Orders     bool          `json:"order_differs"`    // ranks add in different orders
	Result     string        `json:"result,omitempty"` // of a one-sided program: right, wrong or n/a (nothing is demanded)
	Races      int           `json:"races"`            // of a one-sided program, within a launch
	Across     int           `json:"races_across"`     // and with the next
	Runtimes   []string      `json:"runtimes,omitempty"`
	Refusals   []RefusalPart `json:"refusals,omitempty"`
	Notes      []jsonMessage `json:"notes"`
	Messages   []jsonMessage `json:"messages"`

	path     string // as it was called, for places in it
	oneSided bool
	list     diag.List // as Messages
	notes    diag.List // as Notes
	fault    error     // not the file's: interrupted, or a defect of this tool
}

// tableReport is what --json prints of a table.
type tableReport struct {
	OK    bool           `json:"ok"`
	Count map[string]int `json:"count"` // of each verdict
	Files []FilePart     `json:"files"`
}

// checkAll judges many files, as many at a time as there are processors, and prints
// them in the order of their names.
func (s *Session) checkAll(ctx context.Context, names, rest []string) error {
	tool := flagTable()
	args, err := splitScriptArgs(rest, tool)
	if err != nil {
		return err
	}
	if err := applyToolArgs(s.Set, args, tool, nil); err != nil {
		return err
	}
	if err := errors.Join(s.Set.judgesOnly(), s.Set.validate()); err != nil {
		return err
	}
	if len(names) == 0 {
		return badCall("missing-argument", "check: no file is named")
	}
	s.begin("looking for programs")
	files, err := checkedFiles(names)
	if err != nil {
		return err
	}
	rows := s.judgeFiles(ctx, files)
	s.begin("")
	if ctx.Err() != nil {
		return &codedError{exitInterrupted, fmt.Errorf("interrupted while checking %s", plural(int64(len(files)), "file"))}
	}
	t := tableReport{OK: true, Count: map[string]int{}, Files: rows}
	for i := range rows {
		if rows[i].fault != nil {
			return rows[i].fault
		}
		t.Count[rows[i].Verdict]++
		t.OK = t.OK && rows[i].Verdict == verdictPass
	}
	if err := s.printTable(&t); err != nil {
		return err
	}
	if !t.OK {
		s.told = true
		return errReported
	}
	return nil
}

func (s *Session) printTable(t *tableReport) error {
	switch {
	case s.Set.SARIF:
		var all diag.List
		for i := range t.Files {
			all = append(all, located(t.Files[i].messages(), t.Files[i].path)...)
		}
		return s.writeSARIF(all)
	case s.Set.JSON:
		return s.printJSON(t)
	case !s.Set.Quiet:
		if err := t.writeHuman(s.Out, s.outStyle, s.Set.Verbose); err != nil {
			return cannot("writing the table: %w", err)
		}
	}
	return nil
}

// judgeFiles fills in the rows.
func (s *Session) judgeFiles(ctx context.Context, files []checkedFile) []FilePart {
	rows := make([]FilePart, len(files))
	var next, done atomic.Int64
	s.begin("checking")
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(files)) {
		wg.Go(func() {
			for {
				i := next.Add(1) - 1
				if i >= int64(len(files)) {
					return
				}
				rows[i] = s.judgeFile(ctx, files[i])
				s.progress.at(fmt.Sprintf("%d of %s ", done.Add(1), plural(int64(len(files)), "file")))
			}
		})
	}
	wg.Wait()
	return rows
}

// judgeFile makes the row of a file. It shares nothing with other files' but the
// settings, which it doesn't change.
func (s *Session) judgeFile(ctx context.Context, f checkedFile) FilePart {
	c := &Session{Out: s.Out, Err: s.Err, phase: "checking " + f.path}
	row := FilePart{File: f.name, path: f.path, Notes: []jsonMessage{}, Messages: []jsonMessage{}}
	row.fault = c.guard(func() error {
		set := *s.Set
		c.Set = &set
		return row.fill(ctx, c, f.path)
	})
	return row
}

func (row *FilePart) fill(ctx context.Context, c *Session, path string) error {
	data, err := readInput(ctx, path)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		row.refuse(err)
		return nil
	}
	src := source{path, data}
	f := formatOf(src)
	if f == nil || f.read == nil {
		f = findFormat("text")
	}
	row.Format = f.Name
	im, err := readProgram(ctx, f, src, c.Set)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		row.refuse(err)
		return nil
	}
	read := readPart(im)
	row.Runtimes, row.Refusals, row.Notes, row.notes = read.Runtimes, read.Refusals, read.Notes, read.list
	p := im.programs[0]
	row.Program, row.Ranks, row.Protocol = p.Name, p.Ranks(), p.Protocol.String()
	row.Collective = p.Coll.String()
	row.oneSided = p.OneSided != nil
	row.Verdict = verdictPass
	for i, p := range im.programs {
		_, rep, err := c.judge(ctx, p)
		if err != nil {
			return err
		}
		row.add(p, rep, i == 0)
	}
	if c.Set.Strict && len(warnings(row.messages())) > 0 {
		row.Verdict = worse(row.Verdict, verdictWarning)
	}
	row.Messages = jsonMessages(row.list)
	return nil
}

// messages are all that is said of the file.
func (row *FilePart) messages() diag.List { return slices.Concat(row.notes, row.list) }

// refuse is the row of a file that can't be read. A file whose meaning is clear
// enough to say that it is wrong has the verdict on that.
func (row *FilePart) refuse(err error) {
	row.Verdict = verdictRefused
	row.list = diag.Messages(err)
	row.Messages = jsonMessages(row.list)
	for _, m := range row.list {
		switch m.Code {
		case mscclxml.CodeInvalid:
			row.Verdict = verdictInvalid
		case mscclxml.CodeIncomplete:
			row.Verdict = verdictFail
		case mscclxml.CodeHang:
			row.Verdict = verdictDeadlock
		}
	}
}

// add is the judgment of one of the file's modes.
func (row *FilePart) add(p *ir.Program, rep *checker.Report, first bool) {
	row.Modes = append(row.Modes, modeName(p.Coll.InPlace))
	row.Verdict = worse(row.Verdict, verdictOf(rep))
	row.Orders = row.Orders || rep.OrderDiffers
	row.Races, row.Across = row.Races+rep.Races, row.Across+rep.RacesAcross
	row.list = append(row.list, rep.Messages...)
	switch {
	case !row.oneSided:
	case rep.Has(checker.CodeDeadlock):
	case !demanded(p):
		row.Result = "n/a"
	case verdictOf(rep) == verdictFail:
		row.Result = "wrong"
	case rep.OK, verdictOf(rep) == verdictUnfit, verdictOf(rep) == verdictRace:
		row.Result = "right" // in one order of events; races stand beside it
	}
	least, most := safeWindow(p, rep)
	switch {
	case first:
		row.MinSlots, row.SafeMin, row.SafeMax = rep.MinSlots, least, most
	default:
		if row.MinSlots == 0 || rep.MinSlots == 0 {
			row.MinSlots = 0
		}
		row.MinSlots = max(row.MinSlots, rep.MinSlots)
		row.SafeMin = max(row.SafeMin, least)
		row.SafeMax = smallerMax(row.SafeMax, most)
	}
}

// verdictOf is a report in one word.
func verdictOf(rep *checker.Report) string {
	worst := verdictPass
	for _, m := range rep.Messages {
		if m.Severity != diag.Error {
			continue
		}
		v := verdictInvalid
		switch m.Code {
		case checker.CodeDeadlock:
			v = verdictDeadlock
		case checker.CodeWrongResult, checker.CodeInputClobbered:
			v = verdictFail
		case checker.CodeRace:
			v = verdictRace
		case checker.CodeFit:
			v = verdictUnfit
		}
		worst = worse(worst, v)
	}
	return worst
}

// safeWindow are the sizes with which a program runs on its own slots: most 0 is
// no limit, -1 is none at all.
func safeWindow(p *ir.Program, rep *checker.Report) (least, most int64) {
	if !rep.OneSided && rep.SafeRegime == 0 && len(rep.Regimes) > 0 || rep.OneSided && rep.Has(checker.CodeDeadlock) {
		return p.MinBytes, -1
	}
	return p.MinBytes, cmp.Or(rep.SafeMaxBytes, p.MaxBytes)
}

// smallerMax is the smaller of two largest sizes, where 0 is no limit.
func smallerMax(a, b int64) int64 {
	open := func(n int64) int64 {
		if n == 0 {
			return math.MaxInt64
		}
		return n
	}
	if m := min(open(a), open(b)); m != math.MaxInt64 {
		return m
	}
	return 0
}
