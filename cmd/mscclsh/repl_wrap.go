package main

import (
	"bytes"
	"io"
	"regexp"
	"strings"

	"github.com/charmbracelet/lipgloss"
)

// wrapper breaks the lines that a terminal would break, between words and with what
// follows set in. Rows of a table that are indented are moved left instead, as far
// as that is enough. It takes whole lines; what is left of one waits for Flush.
type wrapper struct {
	w     io.Writer
	width int
	exact bool // lines go out as they are
	rest  []byte
}

func (x *wrapper) Write(p []byte) (int, error) {
	if x.exact {
		return x.w.Write(p)
	}
	x.rest = append(x.rest, p...)
	var out bytes.Buffer
	for {
		end := bytes.IndexByte(x.rest, '\n')
		if end < 0 {
			break
		}
		out.WriteString(fitLine(string(x.rest[:end]), x.width))
		out.WriteByte('\n')
		x.rest = x.rest[end+1:]
	}
	if out.Len() == 0 {
		return len(p), nil
	}
	if _, err := x.w.Write(out.Bytes()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush writes a line that has no end.
func (x *wrapper) Flush() {
	if len(x.rest) > 0 {
		_, _ = x.w.Write(x.rest) // whoever writes the next line hears of it
		x.rest = nil
	}
}

// A line of a report has a label, and its text from one column on.
var reportLabel = regexp.MustCompile(`^  \S+(?: [a-z]+)?  +`)

const reportColumn = 12

var leading = regexp.MustCompile(`^(?: |\x1b\[[0-9;]*m)*`)

// fitLine breaks a line that is wider than width.
func fitLine(line string, width int) string {
	over := lipgloss.Width(line) - width
	if over <= 0 || width < narrowest {
		return line
	}
	text := strings.TrimLeft(line, " ")
	indent := len(line) - len(text)
	head, hang := line[:indent], min(indent+4, width/2)
	if label := reportLabel.FindString(line); lipgloss.Width(label) == reportColumn {
		head, text, indent, hang = label, line[len(label):], reportColumn, min(reportColumn, width/2)
	}
	if strings.Contains(text, "   ") {
		// Blanks may stand on both sides of a sequence for colors.
		if blank := leading.FindString(line); over <= strings.Count(blank, " ") {
			return strings.Replace(blank, " ", "", over) + line[len(blank):]
		}
		return line // a picture, or a table that is too wide: a break would only hide its columns
	}
	var b strings.Builder
	b.WriteString(head)
	at, first := indent, true
	for _, word := range strings.Split(text, " ") {
		n := lipgloss.Width(word)
		switch {
		case first:
		case at+1+n > width:
			b.WriteString("\n" + strings.Repeat(" ", hang))
			at = hang
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += n
		first = false
	}
	return b.String()
}
