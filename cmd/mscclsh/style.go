package main

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/charmbracelet/lipgloss"

	"github.com/mscclsh/mscclsh/internal/diag"
)

// style holds the looks of what one writer gets. A writer that isn't a terminal
// gets plain text; so does any when NO_COLOR is set or TERM is dumb.
type style struct {
	label, dim, good, bad, warn lipgloss.Style
}

// newStyle asks w what it can show. Colors are the 16 of every terminal, so that
// they read on a light and on a dark background.
func newStyle(w io.Writer) style {
	r := lipgloss.NewRenderer(w)
	color := func(c string) lipgloss.Style { return r.NewStyle().Foreground(lipgloss.Color(c)) }
	return style{
		label: r.NewStyle().Bold(true),
		dim:   r.NewStyle().Faint(true),
		good:  color("2"),
		bad:   color("1").Bold(true),
		warn:  color("3"),
	}
}

// writeMessages prints messages as diag does, with the position set apart.
func writeMessages(w io.Writer, st style, list diag.List) {
	for _, m := range list {
		text := m.Error()
		pos := ""
		if m.Pos.IsValid() {
			pos = m.Pos.String() + ":"
			text = strings.TrimPrefix(text, pos+" ")
		} else {
			pos = "mscclsh:"
		}
		switch m.Severity {
		case diag.Error:
			first, rest, more := strings.Cut(text, "\n")
			text = st.bad.Render(first)
			if more {
				text += "\n" + rest
			}
		case diag.Warning:
			text = st.warn.Render("warning:") + strings.TrimPrefix(text, "warning:")
		default:
			text = strings.TrimPrefix(text, "info: ")
		}
		fmt.Fprintf(w, "%s %s\n", st.label.Render(pos), text)
	}
}

// printable is a name without what would move a terminal's cursor or change its
// colors: names in files are anybody's.
func printable(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '?'
		}
		return r
	}, name)
}
