package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mscclsh/mscclsh/internal/lsp"
	"github.com/mscclsh/mscclsh/starlib"
)

// shellHelp explains one name, or lists all.
func shellHelp(_ context.Context, s *Shell, call *invocation) (bool, error) {
	if len(call.args) == 0 {
		s.helpList()
		return true, nil
	}
	name := strings.TrimSuffix(strings.Trim(strings.Join(call.args, " "), "?: "), "()")
	found := false
	if c := findShellCommand(name); c != nil {
		found = true
		s.helpCommand(c)
	}
	for _, sig := range starlib.Signatures() {
		full := sig.Name
		if sig.Receiver != "" {
			full = sig.Receiver + "." + sig.Name
		}
		if name == full || name == sig.Name || s.isMethodOf(name, &sig) {
			if found {
				s.say("")
			}
			found = true
			s.helpSignature(&sig)
		}
	}
	if !found && s.helpValue(name) {
		return true, nil
	}
	if !found {
		return false, badCallHint("no-help", didYouMean(name, helpNames(s), "help "), "help: there is nothing about %q", name)
	}
	return true, nil
}

// isMethodOf reports whether a dotted name, such as c.copy of a reference c, is the
// method.
func (s *Shell) isMethodOf(name string, sig *starlib.Signature) bool {
	i := strings.LastIndexByte(name, '.')
	if i < 0 || sig.Receiver == "" || name[i+1:] != sig.Name {
		return false
	}
	typ, _, ok := s.live.Value(name[:i])
	return ok && typ == sig.Receiver
}

// helpValue tells what the session's own name stands for.
func (s *Shell) helpValue(name string) bool {
	typ, text, ok := s.live.Value(name)
	if !ok {
		return false
	}
	if usage, doc, builtin := lsp.Universe(name); builtin && !s.live.Defined(name) {
		s.say("%s", s.outStyle.label.Render(usage))
		s.paragraph("  ", doc)
		return true
	}
	for _, line := range wrap(fmt.Sprintf("%s: %s, %s", name, typ, text), s.width) {
		s.say("%s", line)
	}
	if attrs := s.live.Attrs(name); len(attrs) > 0 {
		s.paragraph("  ", "fields and methods: "+strings.Join(attrs, ", "))
	}
	return true
}

// paragraph prints text within the width.
func (s *Shell) paragraph(indent, text string) {
	for _, line := range wrap(text, s.width-len(indent)) {
		s.say("%s%s", indent, line)
	}
}

func (s *Shell) helpList() {
	s.paragraph("", "Lines are statements of the language, or commands. A program is begun by a line with MSCCLProgram(...): or by open; "+
		"each line updates it. help NAME explains a name, Tab completes one, Ctrl-C ends what runs.")
	s.say("\n%s", s.outStyle.label.Render("commands"))
	table := shellCommandTable()
	longest := 0
	for i := range table {
		longest = max(longest, len(table[i].Name))
	}
	for i := range table {
		for j, line := range wrap(table[i].Short, s.width-longest-4) {
			name := table[i].Name
			if j > 0 {
				name = ""
			}
			s.say("  %s%s  %s", s.outStyle.label.Render(name), strings.Repeat(" ", longest-len(name)), line)
		}
	}
	s.say("\n%s", s.outStyle.label.Render("functions"))
	var names []string
	for _, sig := range starlib.Signatures() {
		name := sig.Name
		if sig.Receiver != "" {
			name = sig.Receiver + "." + name
		}
		names = append(names, name)
	}
	s.paragraph("  ", strings.Join(names, ", "))
}

func (s *Shell) helpCommand(c *shellCommand) {
	s.say("%s", s.outStyle.label.Render(c.usage()))
	if c.Alias != "" {
		s.say("also: %s", c.Alias)
	}
	s.paragraph("  ", c.Short+".")
	for _, para := range paragraphs(c.Long) {
		s.paragraph("  ", para)
	}
	s.examples(c.Examples)
	if len(c.Flags) > 0 {
		s.say("flags:")
		tool := flagTable()
		for _, name := range c.Flags {
			f := findFlag(tool, name)
			writeFlagWithin(s.out, flagHead(f), f.Help, f.Default, f.Values, s.width)
		}
	}
}

func (s *Shell) examples(list []string) {
	if len(list) == 0 {
		return
	}
	s.say("for example:")
	for _, x := range list {
		for _, line := range strings.Split(x, "\n") {
			s.say("  %s", line)
		}
	}
}

func (s *Shell) helpSignature(sig *starlib.Signature) {
	usage := sig.Usage()
	if sig.Result != "" {
		usage += " -> " + sig.Result
	}
	for i, line := range wrap(usage, s.width-4) {
		if i > 0 {
			line = "    " + line
		}
		s.say("%s", s.outStyle.label.Render(line))
	}
	s.paragraph("  ", strings.ReplaceAll(sig.Doc, "\n", " "))
	for _, p := range sig.Params {
		text := p.Help
		if p.Default != "" {
			text += ", " + p.Default + " if not given"
		}
		for i, line := range wrap(fmt.Sprintf("%s (%s): %s", p.Name, p.Type, text), s.width-4) {
			if i == 0 {
				s.say("    %s", line)
			} else {
				s.say("      %s", line)
			}
		}
	}
	if sig.Example != "" {
		s.examples([]string{sig.Example})
	}
}

// helpNames are all names that help explains.
func helpNames(*Shell) []string {
	names := shellNames()
	for _, sig := range starlib.Signatures() {
		if sig.Receiver != "" {
			names = append(names, sig.Receiver+"."+sig.Name)
		} else {
			names = append(names, sig.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// writeFlagWithin is writeFlag for lines of another width.
func writeFlagWithin(w io.Writer, head, help, def string, values []string, width int) {
	var b strings.Builder
	writeFlag(&b, head, help, def, values)
	if width >= helpWidth {
		fmt.Fprint(w, b.String())
		return
	}
	words := strings.Fields(b.String())
	headWords := len(strings.Fields(head))
	fmt.Fprintf(w, "  %s\n", strings.TrimSpace(head))
	for _, line := range wrap(strings.Join(words[headWords:], " "), width-6) {
		fmt.Fprintf(w, "      %s\n", line)
	}
}
