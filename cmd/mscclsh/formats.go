package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/ir/mscclxml"
)

// format is one kind of file that holds programs. Each has a file of its own,
// format_NAME.go; from the table come the values of --emit, what the endings of
// names mean, and mscclsh formats.
type format struct {
	Name  string   // of --emit, if it is written
	Title string   // within a sentence
	Exts  []string // of its files, the usual one first
	Help  string   // one line
	// read takes a program in; nil for a format that is only written, or is a script.
	read func(ctx context.Context, src source, set *Settings) (*imported, error)
	// write refuses what the format can't hold before it writes a byte; nil for a
	// format that is only read.
	write    func(w io.Writer, p *ir.Program, set *Settings) error
	script   bool // makes programs when it is run
	twoSided bool // programs of sends and receives can be written
	oneSided bool // programs of puts and signals can be written
}

// source is a file that was read.
type source struct {
	file string
	data []byte
}

// imported is what a file says.
type imported struct {
	format   *format
	rules    string             // by which it was read, "" where there are no others
	programs []*ir.Program      // at least one; several are modes of one algorithm, in place first
	notes    diag.List          // infos and warnings
	refusals []mscclxml.Refusal // by the runtimes that the format is for
	runtimes []string           // that it is for
}

// formatTable lists the formats in the order of the help.
func formatTable() []format {
	return []format{xmlFormat(), planFormat(), textFormat(), dotFormat(), starFormat(), pythonFormat()}
}

// emitForms are the values of --emit.
func emitForms() []string {
	var names []string
	for _, f := range formatTable() {
		if f.write != nil {
			names = append(names, f.Name)
		}
	}
	return names
}

func findFormat(name string) *format {
	table := formatTable()
	i := slices.IndexFunc(table, func(f format) bool { return f.Name == name })
	return &table[i]
}

// formatOfName tells a format from the ending of a file's name, nil if it doesn't
// say.
func formatOfName(name string) *format {
	table := formatTable()
	ext := strings.ToLower(filepath.Ext(name))
	for i := range table {
		if ext != "" && slices.Contains(table[i].Exts, ext) {
			return &table[i]
		}
	}
	return nil
}

// formatOf tells the format of a file that was read: by its name, else by how it
// begins; nil if neither says.
func formatOf(src source) *format {
	if f := formatOfName(src.file); f != nil && (f.read != nil || f.script) {
		return f
	}
	text := bytes.TrimLeft(bytes.TrimPrefix(src.data, []byte("\ufeff")), " \t\r\n")
	for _, start := range [...][2]string{{"<", "xml"}, {"{", "plan"}, {"program \"", "text"}} {
		if bytes.HasPrefix(text, []byte(start[0])) {
			return findFormat(start[1])
		}
	}
	return nil
}

// endings are those of the files that --emit writes.
func endings() []string {
	var list []string
	for _, f := range formatTable() {
		if f.write != nil {
			list = append(list, f.Exts[0])
		}
	}
	return list
}

// readableEndings are those of the files that a call can be about, without dots.
func readableEndings() []string {
	var list []string
	for _, f := range formatTable() {
		if f.read != nil || f.script {
			for _, ext := range f.Exts {
				list = append(list, ext[1:])
			}
		}
	}
	return list
}

// refuseSide says why a program of the wrong kind can't be written.
func (f *format) refuseSide(p *ir.Program) error {
	switch {
	case p.OneSided != nil && !f.oneSided:
		return diag.Errorf(diag.Pos{}, "one-sided", "program %q is one-sided (it puts and signals): %s holds sends and receives only", p.Name, f.Title).
			Suggest("write it with --emit plan or --emit text")
	case p.OneSided == nil && !f.twoSided:
		return diag.Errorf(diag.Pos{}, "two-sided", "program %q is two-sided (it sends and receives): %s holds puts and signals only", p.Name, f.Title)
	}
	return nil
}

// listFormats prints the table, one format a line.
func (s *Session) listFormats() error {
	for _, f := range formatTable() {
		use := "read, written"
		switch {
		case f.script:
			use = "run"
		case f.write == nil:
			use = "read"
		case f.read == nil:
			use = "written"
		}
		if _, err := fmt.Fprintf(s.Out, "%-7s %-9s  %-13s  %s\n", f.Name, strings.Join(f.Exts, " "), use, f.Help); err != nil {
			return cannot("writing the list: %w", err)
		}
	}
	return nil
}
