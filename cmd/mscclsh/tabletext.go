package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/lipgloss"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// tableWidth is the most columns that a line of a table has.
const tableWidth = 120

// column is one column of a table: its head, and a row's text.
type column struct {
	head  string
	right bool
	text  func(row *FilePart) string
}

// writeHuman prints the table: programs that send and receive, then those that put
// and signal, which have other columns.
func (t *tableReport) writeHuman(w io.Writer, st style, verbose bool) error {
	var two, one []*FilePart
	for i := range t.Files {
		row := &t.Files[i]
		if row.oneSided || row.Format == "plan" {
			one = append(one, row)
		} else {
			two = append(two, row)
		}
	}
	var b strings.Builder
	if len(two) > 0 {
		notes := &footnotes{}
		writeRows(&b, st, two, twoSidedColumns(notes), verbose)
		notes.write(&b)
	}
	if len(one) > 0 {
		if len(two) > 0 {
			b.WriteByte('\n')
		}
		writeRows(&b, st, one, oneSidedColumns(), verbose)
	}
	fmt.Fprintf(&b, "\n%s: %s\n", plural(int64(len(t.Files)), "file"), t.counts())
	_, err := io.WriteString(w, b.String())
	return err
}

// counts is "65 pass, 9 fail".
func (t *tableReport) counts() string {
	var parts []string
	for i := len(verdictOrder) - 1; i >= 0; i-- {
		if n := t.Count[verdictOrder[i]]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, verdictOrder[i]))
		}
	}
	return strings.Join(parts, ", ")
}

func commonColumns() []column {
	return []column{
		{"file", false, func(r *FilePart) string { return r.File }},
		{"collective", false, func(r *FilePart) string { return r.Collective }},
		{"ranks", true, func(r *FilePart) string { return numberOr(int64(r.Ranks), "") }},
		{"verdict", false, func(r *FilePart) string { return r.Verdict }},
	}
}

func twoSidedColumns(notes *footnotes) []column {
	return append(commonColumns(),
		column{"slots", true, func(r *FilePart) string {
			if r.Ranks == 0 {
				return ""
			}
			if r.Protocol == ir.Direct.String() && r.SafeMax >= 0 {
				return "0"
			}
			return numberOr(int64(r.MinSlots), "none")
		}},
		column{"safe sizes", false, (*FilePart).sizes},
		column{"runtimes", false, func(r *FilePart) string { return notes.runtimes(r) }},
	)
}

func oneSidedColumns() []column {
	races := func(r *FilePart, n int) string {
		if r.Ranks == 0 {
			return ""
		}
		return fmt.Sprint(n)
	}
	return append(commonColumns(),
		column{"result", false, func(r *FilePart) string { return r.Result }},
		column{"races", true, func(r *FilePart) string { return races(r, r.Races) }},
		column{"across", true, func(r *FilePart) string { return races(r, r.Across) }},
	)
}

func numberOr(n int64, zero string) string {
	if n == 0 {
		return zero
	}
	return fmt.Sprint(n)
}

// sizes are those that are safe, in short.
func (row *FilePart) sizes() string {
	switch {
	case row.Ranks == 0:
		return ""
	case row.SafeMax < 0:
		return "none"
	case row.SafeMax == 0 && row.SafeMin == 0:
		return "all"
	case row.SafeMax == 0:
		return "from " + exactSize(row.SafeMin)
	case row.SafeMin == 0:
		return "to " + exactSize(row.SafeMax)
	}
	return exactSize(row.SafeMin) + "-" + exactSize(row.SafeMax)
}

// writeRows prints a table; what is too wide comes off the names of the files.
func writeRows(b *strings.Builder, st style, rows []*FilePart, columns []column, verbose bool) {
	cells := make([][]string, len(rows))
	width := make([]int, len(columns))
	for c := range columns {
		width[c] = len(columns[c].head)
	}
	for i, row := range rows {
		for c := range columns {
			text := oneLine(columns[c].text(row))
			cells[i] = append(cells[i], text)
			width[c] = max(width[c], utf8.RuneCountInString(text))
		}
	}
	const longest = 14 // of a collective's own name
	width[1] = min(width[1], longest)
	others := 0
	for _, n := range width[1:] {
		others += n + 2
	}
	width[0] = min(width[0], max(tableWidth-others, 8))
	var head []string
	for c := range columns {
		head = append(head, columns[c].head)
	}
	plain := lipgloss.NewStyle()
	writeCells(b, columns, width, head, st.label, st.label)
	for i, row := range rows {
		verdict := st.bad
		if row.Verdict == verdictPass {
			verdict = st.good
		}
		writeCells(b, columns, width, cells[i], plain, verdict)
		row.writeMessages(b, st, verbose)
	}
}

// writeCells prints one line; the verdict has a look of its own.
func writeCells(b *strings.Builder, columns []column, width []int, cells []string, look, verdict lipgloss.Style) {
	var line strings.Builder
	for c, text := range cells {
		if c == 0 {
			text = cutLeft(text, width[c])
		} else {
			text = cutRight(text, width[c])
		}
		pad := strings.Repeat(" ", width[c]-utf8.RuneCountInString(text))
		style := look
		if columns[c].head == "verdict" {
			style = verdict
		}
		if text != "" {
			text = style.Render(text)
		}
		if columns[c].right {
			text = pad + text
		} else {
			text += pad
		}
		if c > 0 {
			line.WriteString("  ")
		}
		line.WriteString(text)
	}
	b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
}

// writeMessages prints below a row what is wrong: the first error in one line, or
// everything.
func (row *FilePart) writeMessages(b *strings.Builder, st style, verbose bool) {
	const indent = "    "
	list := row.list
	if row.Verdict == verdictWarning { // which may stand among the notes
		list = row.messages()
	}
	for _, m := range list {
		switch {
		case verbose:
			var text strings.Builder
			writeMessages(&text, st, diag.List{m})
			for _, line := range strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n") {
				b.WriteString(indent + line + "\n")
			}
		case m.Severity == diag.Error, m.Severity == diag.Warning && row.Verdict == verdictWarning:
			b.WriteString(indent + st.dim.Render(cutRight(oneLine(m.Text), tableWidth-len(indent))) + "\n")
			return
		}
	}
}

// cutLeft keeps the end of a text that is too long, where names differ.
func cutLeft(text string, width int) string {
	if n := utf8.RuneCountInString(text); n > width {
		r := []rune(text)
		return "…" + string(r[n-width+1:])
	}
	return text
}

func cutRight(text string, width int) string {
	if utf8.RuneCountInString(text) > width {
		return string([]rune(text)[:width-1]) + "…"
	}
	return text
}

// oneLine keeps a name or a message from breaking the table.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return '?'
		}
		return r
	}, text)
}

// footnotes collects why runtimes refuse files, each set of reasons once.
type footnotes struct{ texts []string }

// runtimes is which runtimes take a file, and the number of the note on why others
// don't.
func (f *footnotes) runtimes(row *FilePart) string {
	words := append([]string(nil), row.Runtimes...)
	if len(row.Refusals) == 0 {
		return strings.Join(words, " ")
	}
	text := refusalText(row.Refusals)
	at := 0
	for at < len(f.texts) && f.texts[at] != text {
		at++
	}
	if at == len(f.texts) {
		f.texts = append(f.texts, text)
	}
	return strings.Join(append(words, fmt.Sprintf("[%d]", at+1)), " ")
}

// refusalText is "executor, rccl: no outofplace; rccl: no kernel for rcs": each
// reason once, in the order of the runtimes, kernels by name.
func refusalText(list []RefusalPart) string {
	const kernel = "no kernel for "
	var reasons []string
	by := make(map[string][]string)
	for _, r := range list {
		for _, reason := range strings.Split(r.Reason, "; ") {
			if by[reason] == nil {
				reasons = append(reasons, reason)
			}
			by[reason] = append(by[reason], r.Runtime)
		}
	}
	slices.SortStableFunc(reasons, func(a, b string) int {
		if strings.HasPrefix(a, kernel) && strings.HasPrefix(b, kernel) {
			return strings.Compare(a, b)
		}
		return len(by[b]) - len(by[a])
	})
	var parts []string
	for i, reason := range reasons {
		who := strings.Join(by[reason], ", ")
		same := i > 0 && who == strings.Join(by[reasons[i-1]], ", ")
		switch {
		case same && strings.HasPrefix(reason, kernel) && strings.HasPrefix(reasons[i-1], kernel):
			parts[len(parts)-1] += ", " + strings.TrimPrefix(reason, kernel)
		case same:
			parts[len(parts)-1] += ", " + reason
		default:
			parts = append(parts, who+": "+reason)
		}
	}
	return strings.Join(parts, "; ")
}

func (f *footnotes) write(b *strings.Builder) {
	if len(f.texts) == 0 {
		return
	}
	b.WriteString("\nrefused by:\n")
	for i, text := range f.texts {
		mark := fmt.Sprintf("[%d]", i+1)
		for n, line := range wrap(text, tableWidth-6) {
			if n > 0 {
				mark = ""
			}
			fmt.Fprintf(b, "%5s %s\n", mark, line)
		}
	}
}
