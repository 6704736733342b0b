package sim

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/mscclsh/mscclsh/ir"
)

// leastWidth is the narrowest that the printers print; indent is before entries.
const (
	leastWidth = 20
	indent     = 2
)

// cut shortens a line to a width.
func cut(line string, width int) string {
	if width = max(width, leastWidth-indent); utf8.RuneCountInString(line) <= width {
		return line
	}
	return string([]rune(line)[:width-3]) + "..."
}

// WriteBuffers prints what the buffers of a rank hold, in columns where that fits:
// index, mark and content. Marks are = as demanded, . other than that until something
// is written, ! wrong.
func (m *Machine) WriteBuffers(w io.Writer, r ir.Rank, width int) error {
	out := bufio.NewWriter(w)
	for b := ir.Input; b <= ir.FirstScratch; b++ {
		list, err := m.Buffer(r, b)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			continue
		}
		name := [...]string{"input", "output", "scratch"}[b]
		if canon, index := m.p.Coll.Canon(r, b, 0); canon != b {
			at := bufferWord(canon) + fmt.Sprintf("[%d]", index)
			fmt.Fprintln(out, cut(fmt.Sprintf("rank %d %s: the same memory as from %s on", r, name, at), width))
			continue
		}
		fmt.Fprintln(out, cut(fmt.Sprintf("rank %d %s", r, name), width))
		entries := make([]string, len(list))
		for i, c := range list {
			entries[i] = fmt.Sprintf("%s[%d]%c %s", bufferWord(b), i, c.Mark.Symbol(), c)
		}
		writeColumns(out, entries, width)
	}
	return out.Flush()
}

// writeColumns prints entries row by row in as many columns as fit.
func writeColumns(w io.Writer, entries []string, width int) {
	const gap = 2
	width = max(width, leastWidth)
	longest := 0
	for i := range entries {
		entries[i] = cut(entries[i], width-indent)
		longest = max(longest, utf8.RuneCountInString(entries[i]))
	}
	columns := max((width-indent+gap)/(longest+gap), 1)
	for i := 0; i < len(entries); i += columns {
		var line strings.Builder
		line.WriteString(strings.Repeat(" ", indent))
		for j, e := range entries[i:min(i+columns, len(entries))] {
			if j > 0 {
				line.WriteString(strings.Repeat(" ", gap))
			}
			fmt.Fprintf(&line, "%-*s", longest, e)
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
}

// WriteSlots prints the messages in flight, a line each, or the signals of a one-sided
// program.
func (m *Machine) WriteSlots(w io.Writer, width int) error {
	out := bufio.NewWriter(w)
	n := 0
	line := func(format string, args ...any) {
		n++
		fmt.Fprintln(out, cut(fmt.Sprintf(format, args...), width))
	}
	for _, s := range m.Slots() {
		var chunks []string
		for _, c := range s.Chunks {
			chunks = append(chunks, c.String())
		}
		line("%s #%d from tb %d:%d for tb %d:%d: %s", s.Conn, s.Number, s.From.TB, s.From.Step, s.To.TB, s.To.Step, strings.Join(chunks, ", "))
	}
	for _, s := range m.Signals() {
		if s.Semaphore {
			line("rank %d semaphore %d: %d", s.Rank, s.Number, s.Count)
		} else {
			line("%d -> %d channel %d: %s", s.Rank, s.Peer, s.Number, plural(s.Count, "signal"))
		}
	}
	if n == 0 {
		line("nothing is in flight")
	}
	return out.Flush()
}

func plural(n int32, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// WriteBlocked prints who waits for what, and who waits for whom in a circle.
func (m *Machine) WriteBlocked(w io.Writer, width int) error {
	out := bufio.NewWriter(w)
	list := m.Blocked()
	for _, b := range list {
		for _, l := range wrap(fmt.Sprintf("%s waits for %s", m.stepName(b.Who), b.Text), width) {
			fmt.Fprintln(out, l)
		}
	}
	if len(list) == 0 {
		fmt.Fprintln(out, "nobody waits")
	}
	if circle := m.Cycle(); circle != nil {
		fmt.Fprintln(out, cut("these wait for one another, each for the next and the last for the first:", width))
		for _, b := range circle {
			for _, l := range wrap(fmt.Sprintf("  %s for a %s", m.stepName(b.Who), b.Kind), width) {
				fmt.Fprintln(out, l)
			}
		}
	}
	return out.Flush()
}

// stepName is a step with its kind: rank 0 tb 1 step 2 (rrc).
func (m *Machine) stepName(a At) string {
	text := m.p.StepString(a.Rank, a.TB, a.Step)
	kind, _, _ := strings.Cut(text, " ")
	return fmt.Sprintf("%s (%s)", a, kind)
}

// wrap breaks a line at spaces; further lines are set in.
func wrap(text string, width int) []string {
	width = max(width, leastWidth)
	lead := text[:len(text)-len(strings.TrimLeft(text, " "))]
	var out []string
	line := lead
	for _, word := range strings.Fields(text) {
		switch {
		case strings.TrimSpace(line) == "":
			line += word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			out = append(out, cut(line, width))
			line = lead + "    " + word
		}
	}
	return append(out, cut(line, width))
}

// WriteWhere prints where the thread blocks stand, a line each: which can move (>),
// which wait (.), and which have ended (blank). None as rank prints all of them.
func (m *Machine) WriteWhere(w io.Writer, r ir.Rank, width int) error {
	out := bufio.NewWriter(w)
	for _, p := range m.Where() {
		if r != None && p.At.Rank != r {
			continue
		}
		head := fmt.Sprintf("%c %d:%d:%d", [...]byte{'>', '.', ' '}[p.Status], p.At.Rank, p.At.TB, p.At.Step)
		if p.Status == Ended {
			fmt.Fprintln(out, cut(fmt.Sprintf("%-12s ended", head), width))
			continue
		}
		line := fmt.Sprintf("%-12s %s", head, p.Text)
		switch {
		case p.Messages > 1:
			line += fmt.Sprintf(" (%d of %d messages)", p.Message, p.Messages)
		case p.Arrived:
			line += " (has arrived)"
		}
		if p.Pos.IsValid() {
			line += " ; " + p.Pos.String()
		}
		fmt.Fprintln(out, cut(line, width))
	}
	return out.Flush()
}

// WriteMove prints a move: its number and step on one line, then what it wrote.
func (m *Machine) WriteMove(w io.Writer, mv Move, width int) error {
	out := bufio.NewWriter(w)
	what := ""
	switch mv.Kind {
	case MoveMessage:
		if p, err := m.messages(mv.At); err == nil && p > 1 {
			what = fmt.Sprintf(" message %d of %d", mv.Message+1, p)
		}
	case MoveArrive, MoveTransfer, MoveEnd, MovePart:
		what = " " + mv.Kind.String()
	}
	fmt.Fprintln(out, cut(fmt.Sprintf("#%d %s%s: %s", mv.Number, mv.At, what, m.p.StepString(mv.At.Rank, mv.At.TB, mv.At.Step)), width))
	for _, x := range mv.Writes {
		fmt.Fprintln(out, cut(fmt.Sprintf("  %s%c %s, was %s", locName(x.Loc), x.Now.Mark.Symbol(), x.Now, x.Before), width))
	}
	return out.Flush()
}

// messages is the number of messages of a step.
func (m *Machine) messages(a At) (int32, error) {
	t := m.find(a.Rank, a.TB)
	if t == ir.None || m.slots == 0 || a.Step < 0 || a.Step >= m.steps32(t) {
		return 0, fmt.Errorf("there is no %s", a)
	}
	return ir.Messages(m.steps[m.tbs[t].first+a.Step].count, m.k), nil
}
