package main

import (
	"io"
	"path/filepath"
	"strconv"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/viz"
)

// traceFlag is for commands that run programs.
func traceFlag() toolFlag {
	return toolFlag{Name: "trace", Arg: "FILE",
		Help: "write when each step of one run began and ended, for Perfetto (ui.perfetto.dev) and other viewers of Chrome's trace format",
		set:  fileName("trace", func(s *Settings, v string) { s.Trace = v })}
}

// TimelinePart says what --trace wrote.
type TimelinePart struct {
	File   string `json:"file"`
	Events int    `json:"events"`
}

// checkTrace refuses --trace where nothing or too much would be written.
func (s *Settings) checkTrace(benching bool) error {
	switch {
	case s.Trace == "":
	case s.Emit != "" && !s.Run:
		return badCallHint("flag-unused", "add --run", "--trace: what is emitted doesn't run")
	case benching && len(s.Sizes) != 1:
		return badCallHint("flag-unused", "give one, such as --sizes 1MiB", "--trace: a timeline is of one size")
	case s.File != "" && samePath(s.File, s.Trace):
		return badCall("flag-conflict", "--trace and --emit-file name the same file")
	}
	return nil
}

func samePath(a, b string) bool { return filepath.Clean(a) == filepath.Clean(b) || overwrites(a, b) }

// writeTimeline writes what --trace asks for: all of it or nothing.
func (s *Session) writeTimeline(p *ir.Program, backend string, bytes int64, events []ir.Event) error {
	if s.Set.Trace == "" {
		return nil
	}
	s.begin("writing " + s.Set.Trace)
	if s.input != "" && overwrites(s.Set.Trace, s.input) {
		return badCall("output", "writing %s: that is the file which the program comes from", s.Set.Trace)
	}
	about := s.aboutRun(p, backend, bytes)
	err := writeFile(s.Set.Trace, func(w io.Writer) error {
		if err := viz.Timeline(w, p, events, about); err != nil {
			return cannot("writing %s: %w", s.Set.Trace, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.report.Timeline = &TimelinePart{File: s.Set.Trace, Events: len(events)}
	return nil
}

// aboutRun says what was run, for a timeline.
func (s *Session) aboutRun(p *ir.Program, backend string, bytes int64) [][2]string {
	return [][2]string{{"program", p.Name}, {"collective", p.Coll.String()}, {"ranks", strconv.Itoa(int(p.Ranks()))},
		{"protocol", p.Protocol.String()}, {"bytes", strconv.FormatInt(bytes, 10)}, {"dtype", s.Set.DType.String()},
		{"backend", backend}}
}
