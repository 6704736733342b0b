package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/mscclsh/mscclsh/algorithms"
	"github.com/mscclsh/mscclsh/checker"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/internal/lsp"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/machine"
	"github.com/mscclsh/mscclsh/starlib"
)

// What an editor's scripts may take: they are run again while one types.
const (
	lspDebounce  = 250 * time.Millisecond
	lspTimeLimit = 10 * time.Second
	lspMaxSteps  = 100_000_000
	lspMaxMemory = 1 << 30   // bytes
	lspKeepHeap  = 128 << 20 // bytes of a judgment's garbage that may stay until Go collects it
)

// findingsPage explains the checker's codes.
const findingsPage = "https://github.com/mscclsh/mscclsh/blob/main/docs/findings.md"

func lspEntry() command {
	return command{
		Name:  "lsp",
		Short: "Serve an editor: diagnostics, help, completion and definitions, on standard input and output",
		Long: `Speaks the Language Server Protocol; an editor starts it. docs/editors.md has configurations for VS Code,
Neovim and Helix.

Scripts are run, compiled and checked while one types, with their parameters' defaults, and what is wrong is
told at its line. Standard error says what went wrong in the server itself. --stdio, which many clients add, is taken and means
nothing.`,
		Ignored: []string{"stdio"},
		Run:     func(ctx context.Context, s *Session, _ []string) error { return s.serveEditor(ctx, os.Stdin) },
	}
}

// serveEditor serves one editor until it ends the session.
func (s *Session) serveEditor(ctx context.Context, in io.Reader) error {
	s.begin("serving an editor")
	err := lsp.Run(ctx, s.editorOptions(in))
	var framing *lsp.FramingError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return &codedError{exitInterrupted, errors.New("interrupted")}
	case errors.As(err, &framing):
		return badCallHint("protocol", "an editor starts this command; docs/editors.md says how", "lsp: %s", err)
	case errors.Is(err, lsp.ErrNoShutdown):
		return &codedError{exitWrong, fmt.Errorf("lsp: %w", err)}
	}
	return cannot("lsp: %w", err)
}

func (s *Session) editorOptions(in io.Reader) lsp.Options {
	return lsp.Options{
		In: in, Out: s.Out, Log: s.Err, Version: version,
		Judge: s.judgeText, Explain: explainMarkdown, Link: findingLink, Values: stringValues(),
		Library: algorithms.FS, LibraryDir: libraryFolder(),
		Debounce: lspDebounce, TimeLimit: lspTimeLimit,
	}
}

// judgeText says what is wrong with a script, or with a program in its text form:
// what mscclsh check would say, without the notes.
func (s *Session) judgeText(ctx context.Context, file string, text []byte, read func(string) ([]byte, error)) diag.List {
	c := &Session{Out: io.Discard, Err: io.Discard, Set: newSettings(), judgeOnly: true, outStyle: newStyle(io.Discard),
		errStyle: newStyle(io.Discard), progress: newProgress(io.Discard)}
	defer giveBack()
	var list diag.List
	err := c.guard(func() error {
		if filepath.Ext(file) == ".txt" {
			return c.judgeProgram(ctx, file, text)
		}
		return c.judgeScript(ctx, file, text, read, &list)
	})
	list = append(list, c.report.messages()...)
	if err != nil && !errors.Is(err, errReported) {
		list = append(list, diag.Messages(err)...)
	}
	return list
}

// giveBack returns the memory of a large judgment at once: the server waits for the
// next edit, maybe for hours, and the limit on scripts counts all that the process has.
func giveBack() {
	live := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	if metrics.Read(live); live[0].Value.Uint64() > lspKeepHeap {
		debug.FreeOSMemory()
	}
}

func (s *Session) judgeProgram(ctx context.Context, file string, text []byte) error {
	p, err := ir.ParseProgramHere(bytes.NewReader(text), file)
	if err != nil {
		return err
	}
	s.program, s.from = p, diag.Pos{File: file, Line: 1}
	part, _, err := s.judge(ctx, p)
	s.report.Check = part
	return err
}

// judgeScript runs a script and judges what it traced. A script that makes no program
// may be there for others to load.
func (s *Session) judgeScript(ctx context.Context, file string, text []byte, read func(string) ([]byte, error), list *diag.List) error {
	s.begin("running " + file)
	script, err := starlib.Load(ctx, starlib.Options{File: file, Source: text, Library: algorithms.FS, ReadFile: read,
		MaxSteps: lspMaxSteps, MaxMemory: lspMaxMemory,
		Host: starlib.Host{
			Topology: machine.Topology,
			// What a script asks on its way is answered well: the whole of it is judged below,
			// and nothing is run or shown while one types.
			Check: func(*starlib.Program) (bool, error) { return true, nil },
			Show:  func(*starlib.Program, string) error { return nil },
			Run:   func(*starlib.Program, starlib.RunOptions) (bool, error) { return true, nil },
			// What the entries of a table are worth its build tells.
			Algorithm: func(starlib.Algorithm) error { return nil },
		}})
	if err != nil {
		return softLimits(err)
	}
	programs := make([]*starlib.Program, len(script.Programs))
	for i := range script.Programs {
		programs[i] = &script.Programs[i]
	}
	for _, t := range s.tasks(programs) {
		s.report = Report{}
		s.size = t.size
		err := s.compileProgram(ctx, t.prog)
		if err == nil {
			err = s.check(ctx)
		}
		*list = append(*list, s.report.messages()...)
		if err != nil {
			if ctx.Err() != nil {
				return err
			}
			*list = append(*list, diag.Messages(err)...)
		}
	}
	s.report = Report{}
	return nil
}

// softLimits makes warnings of what an editor's limits stopped: elsewhere the script
// may well be right.
func softLimits(err error) error {
	list := diag.Messages(err)
	for i, m := range list {
		if m.Code == "step-limit" || m.Code == "memory-limit" {
			w := *m
			w.Severity = diag.Warning
			list[i] = w.Suggest("while one types less is allowed; mscclsh check runs it on")
		}
	}
	return list
}

// explainMarkdown is what mscclsh check --explain says of a code, without the example.
func explainMarkdown(code string) string {
	e, ok := checker.Explain(code)
	if !ok {
		return ""
	}
	return fmt.Sprintf("**%s**: %s\n\n%s\n\n%s\n\n`mscclsh check --explain %s` shows an example.", e.Code, e.Title, e.Text, e.Fix, e.Code)
}

func findingLink(code string) string {
	if _, ok := checker.Explain(code); !ok {
		return ""
	}
	return findingsPage + "#" + code
}

// stringValues are what parameters of the language that are strings can be.
func stringValues() map[string][]string {
	var protocols []string
	for _, p := range [...]ir.Protocol{ir.Simple, ir.LL, ir.LL128, ir.Direct, ir.AutoProtocol} {
		protocols = append(protocols, p.String())
	}
	tool := flagTable()
	return map[string][]string{
		"MSCCLProgram.protocol":           protocols,
		"MSCCLProgram.threadblock_policy": {"auto", "manual"},
		"CollectiveProgram.protocol":      protocols[:2],
		"AlgoSpec.protocol":               protocols[:2],
		"SwitchChannel.buffer_type":       {"input", "output", "scratch"},
		"Chunk.buffer":                    {"input", "output", "scratch"},
		"topology.name":                   machine.Names(),
		"show.what":                       append(append([]string(nil), showForms...), passNames()...),
		"run.dtype":                       findFlag(tool, "dtype").Values,
		"run.op":                          findFlag(tool, "op").Values,
	}
}

// libraryFolder is where the library's scripts are written for editors to open: a
// folder for each state of the library.
func libraryFolder() string {
	base, err := os.UserCacheDir()
	if err != nil {
		base = filepath.Join(os.TempDir(), fmt.Sprintf("mscclsh-%d", os.Getuid()))
	}
	h := sha256.New()
	for _, name := range algorithms.Names() {
		text, err := algorithms.FS.ReadFile(name + ".star")
		if err != nil { // it is embedded
			continue
		}
		fmt.Fprintf(h, "%s %d\n%s", name, len(text), text)
	}
	return filepath.Join(base, "mscclsh", "algorithms", fmt.Sprintf("%x", h.Sum(nil)[:6]))
}
