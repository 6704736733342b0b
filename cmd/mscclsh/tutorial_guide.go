package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/internal/notebook"
	"github.com/mscclsh/mscclsh/viz"
)

// guide leads through a lesson in a shell, and knows how far it is.
type guide struct {
	shell  *Shell
	lesson *lesson
	at     int  // the next cell
	shown  bool // it is code, and has been shown
	warned bool // it was said that the solution comes next
	wants  *wanted
	about  string // the lesson's latest program
}

// lessonState is what a shell knows of lessons.
type lessonState struct {
	guide    *guide             // of the lesson that has begun, or nil
	pictured func(*viz.Picture) // gets what commands draw, if not nil
	mute     bool               // values of expressions are not printed
}

// turnsPage reports whether a line that was typed is the empty one that goes on
// with the lesson.
func (s *Shell) turnsPage(line string) bool {
	return s.guide != nil && s.split.typed && !s.split.pending() && !s.split.block && strings.TrimSpace(line) == ""
}

func newGuide(sh *Shell, l *lesson) *guide { return &guide{shell: sh, lesson: l} }

// next runs the cell that was shown, if it is code, and shows what follows: text,
// and the code after it.
func (g *guide) next(ctx context.Context) error {
	s := g.shell
	if g.at == len(g.lesson.Cells) {
		s.say("this was the last cell; what you type goes on from here, and Ctrl-D ends")
		return nil
	}
	var failed error
	if g.shown {
		c := &g.lesson.Cells[g.at]
		g.at, g.shown = g.at+1, false
		_, failed = g.run(ctx, c)
		if ctx.Err() != nil {
			g.at, g.shown = g.at-1, true // it can be run again
			return failed
		}
		s.say("")
	}
	if g.at < len(g.lesson.Cells) && g.lesson.Cells[g.at].Kind == notebook.Text {
		g.text(&g.lesson.Cells[g.at])
		g.at++
	}
	if g.at < len(g.lesson.Cells) && g.lesson.Cells[g.at].Kind == notebook.Code {
		c := &g.lesson.Cells[g.at]
		if c.Has(notebook.TagSolution) && !g.warned { // nobody should see it by accident
			g.warned = true
			g.hint("your turn: type your own, then judge (or judge FILE); Enter shows a solution")
			return failed
		}
		g.code(c)
		g.shown = true
	}
	g.prompt()
	return failed
}

func (g *guide) prompt() {
	switch {
	case g.at == len(g.lesson.Cells):
		g.hint("the end of the lesson")
	case g.shown:
		g.hint("Enter runs this")
	default:
		g.hint("Enter goes on")
	}
}

func (g *guide) hint(text string) {
	s := g.shell
	s.say("%s", s.outStyle.dim.Render(fmt.Sprintf("[%d of %d] %s", min(g.at+1, len(g.lesson.Cells)), len(g.lesson.Cells), text)))
}

// text prints a cell of text.
func (g *guide) text(c *notebook.Cell) {
	s := g.shell
	for _, line := range notebook.Plain(c.Source, min(s.width, 100)-2, func(h string) string { return s.outStyle.label.Render(h) }) {
		s.say("%s", line)
	}
	s.say("")
}

// code prints a cell of code, with the numbers that its lines will have.
func (g *guide) code(c *notebook.Cell) {
	s := g.shell
	if c.Title != "" {
		s.say("%s", s.outStyle.label.Render("# "+c.Title))
	}
	commands := make(map[int32]bool)
	for _, p := range c.Parts() {
		if p.Command {
			commands[p.Line] = true
		}
	}
	number := len(s.lines) + 1
	for i, line := range strings.Split(c.Code(), "\n") {
		mark := fmt.Sprintf("%4d", number+i)
		if commands[c.First+int32(i)] {
			mark = "   >"
		}
		s.say("%s", strings.TrimRight(s.outStyle.dim.Render(mark)+"  "+line, " "))
	}
}

// all runs the whole lesson and prints it. The error is that of the first cell that
// should not have failed, or should have.
func (g *guide) all(ctx context.Context) error {
	s := g.shell
	var first error
	defer func(before error) { s.first = before }(s.first) // what failed on purpose is no error of the session
	for i := range g.lesson.Cells {
		c := &g.lesson.Cells[i]
		if c.Kind == notebook.Text {
			g.text(c)
			continue
		}
		g.code(c)
		_, err := g.run(ctx, c)
		s.say("")
		if ctx.Err() != nil {
			return &codedError{exitInterrupted, errors.New("interrupted")}
		}
		if err := unexpected(c, err, g.lesson.File); err != nil && first == nil {
			first = err
			s.tell(ctx, err)
		}
	}
	return first
}

// unexpected is what to say of a cell that ended otherwise than it was meant to.
func unexpected(c *notebook.Cell, err error, file string) error {
	fails := c.Has(notebook.TagFails) || c.Has(notebook.TagExercise)
	at := diag.Pos{File: file, Line: c.Line}
	switch {
	case c.Has(notebook.TagGPU):
	case err != nil && !fails:
		return diag.Errorf(at, "lesson", "the cell failed, and should not have")
	case err == nil && fails:
		return diag.Errorf(at, "lesson", "the cell did not fail, as it should have")
	}
	return nil
}

// run runs a cell of code. An exercise, and its solution, are judged when they have
// run; solved says how that went. The error has been told.
func (g *guide) run(ctx context.Context, c *notebook.Cell) (solved bool, err error) {
	s := g.shell
	for _, p := range c.Parts() {
		if err = g.part(ctx, p); err != nil {
			break
		}
	}
	if !c.Has(notebook.TagExercise) && !c.Has(notebook.TagSolution) {
		return false, err
	}
	if err != nil {
		s.say("%s", s.outStyle.bad.Render("exercise: not solved yet"))
		return false, err
	}
	return g.judge(ctx)
}

// part runs a part of a cell. Commands are about the lesson's latest program, even
// if somebody has typed another one meanwhile.
func (g *guide) part(ctx context.Context, p notebook.Part) error {
	s := g.shell
	before, err := s.programs()
	if err != nil {
		return err
	}
	load := p.Command && firstWord(p.Text) == "load"
	known := slices.ContainsFunc(before, func(x shellProgram) bool { return x.name == g.about })
	if p.Command && !load && known && before[len(before)-1].name != g.about {
		s.chosen = g.about
		s.changed()
		defer func() {
			s.chosen = ""
			s.changed()
		}()
	}
	s.mute = strings.Count(p.Text, "\n") > 1 // of several lines none asks for its value
	defer func() { s.mute = false }()
	if p.Command {
		err = s.Exec(ctx, ":"+p.Text)
	} else if err = s.Exec(ctx, p.Text); err == nil {
		err = s.End(ctx)
	}
	if err != nil {
		return err
	}
	after, err := s.programs()
	if n := len(after); err == nil && n > 0 && (load || n > len(before)) {
		g.about = after[n-1].name
	}
	return err
}

// judge judges the program that the session is about as a solution.
func (g *guide) judge(ctx context.Context) (bool, error) {
	w, err := g.wanted(ctx)
	if err != nil {
		return false, err
	}
	ok, err := g.shell.judgeSolution(ctx, w)
	if err == nil && !ok {
		err = errReported
	}
	return ok, err
}

// wanted is what the lesson's exercise demands.
func (g *guide) wanted(ctx context.Context) (*wanted, error) {
	if g.wants == nil {
		w, err := exerciseOf(ctx, g.lesson)
		if err != nil {
			return nil, err
		}
		g.wants = w
	}
	return g.wants, nil
}

// lessonCommands are the shell's commands about lessons.
func lessonCommands() []shellCommand {
	return []shellCommand{
		{Name: "tutorial", Args: "[LESSON]", MaxArgs: 1, Alone: true, Complete: lessonNames,
			Short:    "List the lessons, or begin one: Enter then shows and runs the next cell",
			Examples: []string{"tutorial", "tutorial 1", "tutorial deadlocks"}, Run: shellTutorial},
		{Name: "judge", Args: "[FILE]", MaxArgs: 1, Alone: true, Files: true,
			Short:    "Judge the program, or the one in a file, as a solution of the lesson's exercise",
			Examples: []string{"judge", "judge mine.star"}, Run: shellJudge},
	}
}

func lessonNames(*Shell) []string {
	all, _ := lessons() // the tests read them all
	var names []string
	for i := range all {
		names = append(names, all[i].name)
	}
	return names
}

func shellTutorial(ctx context.Context, s *Shell, call *invocation) (bool, error) {
	c := s.session(s.set)
	all, err := lessons()
	if err != nil {
		return false, err
	}
	if len(call.args) == 0 {
		return true, c.listLessons(all)
	}
	l, err := c.findLesson(ctx, all, call.args[0])
	if err != nil {
		return false, err
	}
	s.guide = newGuide(s, l)
	if !s.split.typed {
		return true, s.guide.all(ctx)
	}
	return true, s.guide.next(ctx)
}

func shellJudge(ctx context.Context, s *Shell, call *invocation) (bool, error) {
	if s.guide == nil {
		return false, badCallHint("no-lesson", "tutorial LESSON begins one", "judge: no lesson has begun")
	}
	if len(call.args) > 0 {
		w, err := s.guide.wanted(ctx)
		if err != nil {
			return false, err
		}
		return s.judgeLoaded(ctx, w, call.args[0])
	}
	return s.guide.judge(ctx)
}
