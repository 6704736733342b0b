package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/mattn/go-isatty"

	"github.com/mscclsh/mscclsh/internal/notebook"
	"github.com/mscclsh/mscclsh/tutorials"
)

// lessonSettings are what the flags of tutorial alone say.
type lessonSettings struct {
	html     bool
	exercise string // a file to be judged
	files    string // a directory for the lessons' files
	flag     string // one that was given
}

// lessonFlags are those of tutorial alone.
func lessonFlags() []toolFlag {
	only := func(name string, set func(*Settings, string) error) func(*Settings, string) error {
		return func(s *Settings, v string) error {
			s.Lesson.flag = name
			return set(s, v)
		}
	}
	return []toolFlag{
		{Name: "html", Help: "tutorial: write a page with text, code, outputs and pictures, of one lesson or all",
			set: only("html", yes(func(s *Settings, v bool) { s.Lesson.html = v }))},
		{Name: "exercise", Arg: "FILE", Help: "tutorial: judge FILE, a script or program, as a solution of the lesson's exercise",
			set: only("exercise", fileName("exercise", func(s *Settings, v string) { s.Lesson.exercise = v }))},
		{Name: "files", Arg: "DIR", Help: "tutorial: write the lesson, or all, and the files that lessons load to a directory",
			set: only("files", fileName("files", func(s *Settings, v string) { s.Lesson.files = v }))},
	}
}

// onlyOfTutorial reports whether no other command has the flag.
func onlyOfTutorial(name string) bool {
	return slices.ContainsFunc(lessonFlags(), func(f toolFlag) bool { return f.Name == name })
}

// tutorialEntry is the command's row in the table.
func tutorialEntry() command {
	return command{
		Name:  "tutorial",
		Args:  "[LESSON]",
		Short: "Learn in lessons: list them, go through one cell by cell, or make a page of them",
		Long: `Without a lesson it lists them. LESSON is a number, a part of a name, or the file of a notebook: a script with lines
"# %%" between its cells.

At a terminal a lesson begins a shell. Enter shows and runs the next cell; in between one can type whatever the shell
takes. Otherwise the whole lesson is run and printed.

Lessons end with an exercise. --exercise FILE judges a solution in a file, judge one that was typed in the shell. The
exit code is 0 only if it is solved.`,
		Examples: []string{
			"mscclsh tutorial",
			"mscclsh tutorial 1",
			"mscclsh tutorial deadlocks",
			"mscclsh tutorial 4 --exercise mine.star",
			"mscclsh tutorial --html -o lessons.html",
			"mscclsh tutorial 10 --files lesson10",
		},
		Flags:   []string{"html", "exercise", "files", "emit-file"},
		MaxArgs: 1,
		Run:     func(ctx context.Context, s *Session, args []string) error { return s.tutorial(ctx, args) },
	}
}

// lesson is a notebook with its name; the number is 0 for one that isn't ours.
type lesson struct {
	*notebook.Notebook
	number int
	name   string
}

// lessons are those that come with the tool, in their order.
func lessons() ([]lesson, error) {
	var list []lesson
	for _, name := range tutorials.Names() {
		data, err := fs.ReadFile(tutorials.FS, name+".star")
		if err != nil {
			return nil, err
		}
		nb, err := notebook.Parse(tutorialPrefix+name+".star", data)
		if err != nil {
			return nil, err
		}
		number, _ := strconv.Atoi(name[:2]) // tutorials.Names promises one
		list = append(list, lesson{nb, number, name})
	}
	return list, nil
}

// tutorialPrefix begins the names of the lessons' files.
const tutorialPrefix = "@tutorials/"

// readTutorial is a file that comes with the lessons; ok is false if the name isn't
// one of theirs.
func readTutorial(file string) (data []byte, ok bool, err error) {
	name, ok := strings.CutPrefix(file, tutorialPrefix)
	if !ok {
		return nil, false, nil
	}
	data, err = fs.ReadFile(tutorials.FS, name)
	if err != nil {
		return nil, true, badCallHint("no-file", "mscclsh tutorial --files DIR writes those that there are", "%s: the lessons have no such file", file)
	}
	return data, true, nil
}

// findLesson finds a lesson by its number, its name or a part of that, or reads a
// notebook's file.
func (s *Session) findLesson(ctx context.Context, all []lesson, name string) (*lesson, error) {
	if n, err := strconv.Atoi(name); err == nil {
		if n < 1 || n > len(all) {
			return nil, badCall("bad-argument", "tutorial: got %q, want a lesson from 1 to %d", name, len(all))
		}
		return &all[n-1], nil
	}
	if strings.ContainsAny(name, "./\\") {
		src, err := s.open(ctx, name)
		s.begin("")
		if err != nil {
			return nil, err
		}
		nb, err := notebook.Parse(name, src.data)
		if err != nil {
			return nil, err
		}
		return &lesson{nb, 0, name}, nil
	}
	var found []*lesson
	var names []string
	for i := range all {
		names = append(names, all[i].name[3:])
		if all[i].name == name || all[i].name[3:] == name {
			return &all[i], nil
		}
		if strings.Contains(all[i].name, name) {
			found = append(found, &all[i])
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, badCall("bad-argument", "tutorial: %q is a part of several names: %s or %s", name, found[0].name, found[1].name)
	}
	hint := didYouMean(name, names, "")
	if hint == "" {
		hint = "mscclsh tutorial lists the lessons"
	}
	return nil, badCallHint("bad-argument", hint, "tutorial: no lesson %q", name)
}

// tutorial carries out the command.
func (s *Session) tutorial(ctx context.Context, args []string) error {
	all, err := lessons()
	if err != nil {
		return err
	}
	chosen := all
	if len(args) > 0 {
		l, err := s.findLesson(ctx, all, args[0])
		if err != nil {
			return err
		}
		chosen = []lesson{*l}
	}
	set := &s.Set.Lesson
	switch {
	case set.html && (set.exercise != "" || set.files != "") || set.exercise != "" && set.files != "":
		return badCall("flag-unused", "tutorial: --html, --exercise and --files are each for a call of their own")
	case s.Set.File != "" && !set.html:
		return badCall("flag-unused", "-o is for tutorial --html")
	case set.html:
		return s.lessonPage(ctx, chosen)
	case set.files != "":
		return s.lessonFiles(chosen)
	case len(args) == 0 && set.exercise != "":
		return badCall("missing-argument", "tutorial --exercise: which lesson's exercise is it? tutorial N --exercise %s", set.exercise)
	case set.exercise != "":
		return s.judgeSolutionFile(ctx, &chosen[0], set.exercise)
	case len(args) == 0:
		return s.listLessons(all)
	}
	return s.teach(ctx, &chosen[0])
}

func (s *Session) listLessons(all []lesson) error {
	for i := range all {
		l := &all[i]
		fmt.Fprintf(s.Out, "%s  %s\n", s.outStyle.label.Render(fmt.Sprintf("%2d", l.number)), s.outStyle.label.Render(l.Title()))
		for _, line := range wrap(l.Summary(), 76) {
			fmt.Fprintf(s.Out, "    %s\n", line)
		}
	}
	_, err := fmt.Fprintf(s.Out, "\nmscclsh tutorial 1 begins the first one, mscclsh tutorial --html -o lessons.html makes a page of all\n")
	return err
}

// lessonFiles writes lessons, and the programs that lessons load.
func (s *Session) lessonFiles(list []lesson) error {
	dir := s.Set.Lesson.files
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return createError(dir, err)
	}
	var names []string
	for i := range list {
		if list[i].number > 0 {
			names = append(names, list[i].name+".star")
		}
	}
	entries, err := fs.ReadDir(tutorials.FS, ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".star" && loads(list, e.Name()) {
			names = append(names, e.Name())
		}
	}
	for _, name := range names {
		data, err := fs.ReadFile(tutorials.FS, name)
		if err != nil {
			return err
		}
		path := filepath.Join(dir, name)
		if _, err := os.Lstat(path); err == nil {
			return badCallHint("output", "name another directory, or move it away", "%s is there already, perhaps changed", path)
		}
		err = writeFile(path, func(w io.Writer) error {
			_, err := w.Write(data)
			return err
		})
		if err != nil {
			return err
		}
		fmt.Fprintln(s.Out, path)
	}
	return nil
}

// loads reports whether one of the lessons names a file of theirs. What repairs it
// is for the solution alone.
func loads(list []lesson, file string) bool {
	for i := range list {
		for k := range list[i].Cells {
			c := &list[i].Cells[k]
			if !c.Has(notebook.TagSolution) && strings.Contains(c.Source, tutorialPrefix+file) {
				return true
			}
		}
	}
	return false
}

// teach goes through a lesson: cell by cell in a shell where somebody sits at a
// terminal, else all of it.
func (s *Session) teach(ctx context.Context, l *lesson) error {
	begin := func(errors io.Writer) *Shell {
		sh := NewShell(s.Out, errors)
		sh.progress.end()
		sh.progress = s.progress
		sh.guide = newGuide(sh, l)
		return sh
	}
	in := os.Stdin
	if out, ok := s.Out.(*os.File); ok && isatty.IsTerminal(in.Fd()) && isatty.IsTerminal(out.Fd()) {
		return s.atTerminal(context.WithoutCancel(ctx), begin(s.Err), in, out, nil)
	}
	s.told = true
	return begin(s.Out).guide.all(ctx) // what goes wrong on purpose belongs to the lesson
}
