package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/starlib"
)

// helpWidth is where help text is broken.
const helpWidth = 96

// writeHelp prints a command's help.
func writeHelp(w io.Writer, c *command) {
	fmt.Fprintf(w, "usage: %s\n\n", c.Usage())
	writeWrapped(w, "", c.Short+".")
	for _, para := range paragraphs(c.Long) {
		fmt.Fprintln(w)
		writeWrapped(w, "", para)
	}
	if len(c.Examples) > 0 {
		fmt.Fprintln(w, "\nexamples:")
		for _, e := range c.Examples {
			fmt.Fprintf(w, "  %s\n", e)
		}
	}
	if c.Name == "" {
		fmt.Fprintln(w, "\ncommands:")
		for _, sub := range commandTable()[1:] {
			fmt.Fprintf(w, "  %-12s  %s\n", sub.Name, sub.Short)
		}
	}
	if flags := c.allFlags(); len(flags) > 0 {
		fmt.Fprintln(w, "\nflags:")
		for i := range flags {
			f := &flags[i]
			writeFlag(w, flagHead(f), f.Help, f.Default, f.Values)
		}
	}
}

// writeShortHelp is what a call without arguments gets.
func writeShortHelp(w io.Writer) {
	c := &commandTable()[0]
	fmt.Fprintf(w, "usage: %s\n", c.Usage())
	for _, e := range c.Examples {
		fmt.Fprintf(w, "  %s\n", e)
	}
	fmt.Fprintln(w, "mscclsh algorithms lists the library, mscclsh --help everything else")
}

// flagHead is "-o, --emit-file FILE".
func flagHead(f *toolFlag) string {
	head := "    --" + f.Name
	if f.Short != "" {
		head = "-" + f.Short + ", --" + f.Name
	}
	if f.Arg != "" {
		head += " " + f.Arg
	}
	return head
}

// writeFlag prints a flag and, indented beside it, what it does.
func writeFlag(w io.Writer, head, help, def string, values []string) {
	if len(values) > 0 && !strings.Contains(help, values[len(values)-1]) {
		help += ": " + orList(values)
	}
	if def != "" {
		help += " (default " + def + ")"
	}
	const column = 26
	if len(head) >= column-1 {
		fmt.Fprintf(w, "  %s\n", head)
		head = ""
	}
	lines := wrap(help, helpWidth-column-2)
	for i, line := range lines {
		if i > 0 {
			head = ""
		}
		fmt.Fprintf(w, "  %-*s%s\n", column, head, line)
	}
}

// scriptHelp prints a script's docstring and its parameters. A script that
// failed still has the parameters that it declared before.
func (s *Session) scriptHelp(file string, script *starlib.Script, failed error) error {
	s.begin("")
	if failed != nil && len(script.Params) == 0 && script.Doc == "" {
		return failed
	}
	shape := ""
	if len(script.Params) > 0 {
		shape = " [--parameter value ...]"
	}
	fmt.Fprintf(s.Out, "usage: mscclsh [flags] %s%s\n", file, shape)
	if script.Doc != "" {
		fmt.Fprintf(s.Out, "\n%s\n", script.Doc)
	}
	if len(script.Params) > 0 {
		fmt.Fprintln(s.Out, "\nparameters:")
	}
	for _, p := range script.Params {
		head := "--" + p.Name
		if p.Type != "bool" {
			head += " " + strings.ToUpper(p.Type)
		}
		help := p.Help
		if help == "" && len(p.Choices) > 0 {
			help = "one of"
		}
		def := p.Default
		if def == "" {
			def = `""`
		}
		writeFlag(s.Out, head, help, def, p.Choices)
	}
	fmt.Fprintln(s.Out, "\nThe tool's flags (mscclsh --help) are accepted here too;"+
		" one that a parameter hides is --tool.NAME.")
	if failed != nil {
		writeMessages(s.Err, s.errStyle, diag.List{diag.Warningf(diag.Pos{}, "help",
			"the script fails as it is called here, so there may be more parameters")})
	}
	return nil
}

// paragraphs are the parts of a text between empty lines.
func paragraphs(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n\n")
}

func writeWrapped(w io.Writer, indent, text string) {
	for _, line := range wrap(text, helpWidth-len(indent)) {
		fmt.Fprintf(w, "%s%s\n", indent, line)
	}
}

// wrap breaks text between words so that lines stay within width.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case len(line)+1+len(word) > width:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}
