package main

import (
	"strings"
)

// unitKind says what a unit of input is.
type unitKind uint8

const (
	unitStatement unitKind = iota
	unitCommand            // a line for the table of commands
	unitHead               // with EXPR: alone on its line; the block follows
	unitClose              // the block of a with ends here
)

// unit is what is carried out at once: a command or a whole statement, with the
// comments and empty lines before it.
type unit struct {
	kind   unitKind
	text   string // lines, each with its end
	prefix int    // lines of comments that text begins with
	inside []bool // by line: it begins within a string
}

// splitter cuts lines into units as they come. A block ends where a line is
// indented less; what is typed ends with an empty line too.
type splitter struct {
	typed     bool
	isCommand func(line string) bool
	goesOn    func(line string) bool // a command's line that may have open brackets
	open      func() bool            // a program is open: with is a statement like others

	block    bool // within the block of a head
	skipping bool // within the block of a head that failed

	lines    []string
	inside   []bool
	prefix   int
	lex      lexer
	compound bool
	command  bool
	indent   int
	bodyless bool // no line of a compound statement's block has come yet
}

// pending reports whether a statement has begun and not ended.
func (p *splitter) pending() bool { return len(p.lines) > p.prefix }

// feed takes one line without its end.
func (p *splitter) feed(line string) []unit {
	line = strings.TrimSuffix(line, "\r")
	if p.pending() {
		if out, taken := p.goOn(line); taken {
			return out
		}
		out := p.finish()
		return append(out, p.begin(line)...)
	}
	return p.begin(line)
}

// flush ends what is pending.
func (p *splitter) flush() []unit {
	if !p.pending() {
		p.reset()
		return nil
	}
	return p.finish()
}

// reset forgets what is pending.
func (p *splitter) reset() {
	p.lines, p.inside, p.prefix, p.lex, p.compound, p.command = nil, nil, 0, lexer{}, false, false
}

// begin takes a line that no statement is waiting for.
func (p *splitter) begin(line string) []unit {
	text := strings.TrimSpace(line)
	if text == "" || text[0] == '#' {
		if text == "" && p.typed {
			if p.block || p.skipping {
				p.skipping = false
				return p.close()
			}
			return nil
		}
		p.add(line)
		p.prefix++
		return nil
	}
	if p.isCommand(text) {
		p.add(line)
		p.command = true
		if p.goesOn == nil || !p.goesOn(text) {
			p.lex = lexer{}
		}
		return p.complete()
	}
	indent := width(line)
	if p.skipping {
		if indent > 0 {
			p.reset()
			return nil
		}
		p.skipping = false
	}
	var out []unit
	if p.block && indent == 0 {
		out = p.close()
	}
	p.indent, p.bodyless = indent, true
	switch firstWord(text) {
	case "def", "for", "while", "if", "with":
		p.compound = true
	}
	p.add(line)
	return append(out, p.complete()...)
}

// close ends the block of a head. Comments that wait belong to what follows.
func (p *splitter) close() []unit {
	if !p.block {
		return nil
	}
	p.block = false
	return []unit{{kind: unitClose}}
}

// goOn takes a line into the statement that is pending, if it belongs there.
func (p *splitter) goOn(line string) ([]unit, bool) {
	text := strings.TrimSpace(line)
	if p.lex.open() {
		p.add(line)
		return p.complete(), true
	}
	switch {
	case text == "" && p.typed:
		return p.finish(), true
	case text == "" || text[0] == '#':
		p.add(line)
		return nil, true
	case width(line) > p.indent:
		p.bodyless = false
	case width(line) == p.indent && (firstWord(text) == "else" || firstWord(text) == "elif"):
	default:
		return nil, false
	}
	p.add(line)
	return p.complete(), true
}

// complete gives the statement that the last line completed, if it did.
func (p *splitter) complete() []unit {
	switch {
	case p.lex.open():
		return nil
	case p.command:
		return []unit{p.take(unitCommand)}
	case !p.compound:
		return p.finish()
	case p.bodyless && p.indent == 0 && !p.block && p.lex.last == ':' && !p.open() &&
		firstWord(strings.TrimSpace(p.lines[p.prefix])) == "with":
		return []unit{p.take(unitHead)}
	}
	return nil
}

// finish gives the pending statement. Empty lines and comments at its end belong
// to what follows.
func (p *splitter) finish() []unit {
	last := len(p.lines)
	for last > p.prefix+1 && !p.inside[last-1] {
		if text := strings.TrimSpace(p.lines[last-1]); text != "" && text[0] != '#' {
			break
		}
		last--
	}
	rest, inside := p.lines[last:], p.inside[last:]
	p.lines, p.inside = p.lines[:last], p.inside[:last]
	u := p.take(unitStatement)
	if !p.typed {
		p.lines, p.inside, p.prefix = append(p.lines, rest...), append(p.inside, inside...), len(rest)
	}
	return []unit{u}
}

func (p *splitter) take(kind unitKind) unit {
	u := unit{kind: kind, text: strings.Join(p.lines, "\n") + "\n", prefix: p.prefix, inside: p.inside}
	p.reset()
	return u
}

func (p *splitter) add(line string) {
	p.lines = append(p.lines, line)
	p.inside = append(p.inside, p.lex.quote != "")
	p.lex.line(line)
}

// width is the indentation of a line, with tabs to every eighth column as
// Starlark counts them.
func width(line string) int {
	n := 0
	for _, c := range line {
		switch c {
		case ' ':
			n++
		case '\t':
			n += 8 - n%8
		default:
			return n
		}
	}
	return n
}

// firstWord is the identifier that a text begins with.
func firstWord(text string) string {
	i := 0
	for i < len(text) && isNameByte(text[i]) {
		i++
	}
	return text[:i]
}

func isNameByte(c byte) bool {
	return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// lexer knows, line by line, whether brackets or strings are open.
type lexer struct {
	depth  int
	quote  string // that an open string ends with; "" outside of strings
	joined bool   // the line ended with a backslash
	last   byte   // the last byte of code that isn't blank
}

// open reports whether the next line belongs to the same logical line.
func (x *lexer) open() bool { return x.depth > 0 || x.quote != "" || x.joined }

func (x *lexer) line(s string) {
	x.joined = false
	for i := 0; i < len(s); {
		if x.quote != "" {
			i += x.inString(s[i:])
			continue
		}
		c := s[i]
		switch c {
		case '#':
			i = len(s)
			continue
		case '(', '[', '{':
			x.depth++
		case ')', ']', '}':
			x.depth = max(x.depth-1, 0)
		case '"', '\'':
			x.quote = string(c)
			if strings.HasPrefix(s[i:], strings.Repeat(x.quote, 3)) {
				x.quote = strings.Repeat(x.quote, 3)
			}
			i += len(x.quote) - 1
		case '\\':
			x.joined = i == len(s)-1
		}
		if c != ' ' && c != '\t' {
			x.last = c
		}
		i++
	}
	if len(x.quote) == 1 && !x.joined { // never closed: an error that the parser explains
		x.quote = ""
	}
}

// inString consumes a part of a string.
func (x *lexer) inString(s string) int {
	switch {
	case s[0] == '\\':
		x.joined = len(s) == 1
		return min(2, len(s))
	case strings.HasPrefix(s, x.quote):
		n := len(x.quote)
		x.quote = ""
		return n
	}
	return 1
}
