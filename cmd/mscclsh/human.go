package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/mscclsh/mscclsh/checker"
	"github.com/mscclsh/mscclsh/internal/diag"
)

// writeHuman prints the report for a person: a line or two a part, the run as
// nccl-tests would print it.
func (r *Report) writeHuman(w io.Writer, st style) {
	if p := r.Program; p != nil {
		fmt.Fprintf(w, "%s: %s on %s, %s, %s%s\n", st.label.Render(printable(p.Name)), p.Collective, plural(int64(p.Ranks), "rank"),
			p.Protocol, modeName(p.InPlace), instancesText(p.Instances))
	}
	switch {
	case r.Compiled == nil:
	case r.Read != nil:
		r.writeRead(w, st)
	default:
		r.Compiled.writeHuman(w, st)
	}
	if c := r.Check; c != nil {
		c.writeHuman(w, st)
	}
	if e := r.Exported; e != nil {
		e.writeHuman(w, st)
	}
	if x := r.Run; x != nil {
		x.writeHuman(w, st, r.Check == nil || r.Check.Demanded)
	}
	if b := r.Bench; b != nil {
		b.writeHuman(w, st)
	}
	if x := r.Timeline; x != nil {
		part(w, st, "timeline", fmt.Sprintf("%s to %s", plural(int64(x.Events), "step"), x.File))
	}
	if e := r.Emitted; e != nil {
		part(w, st, "emitted", fmt.Sprintf("%s to %s", e.Form, e.File))
	}
	for i := range r.More {
		r.More[i].writeHuman(w, st)
	}
}

// part prints one part: its name and its lines, the later ones indented alike.
func part(w io.Writer, st style, name string, lines ...string) {
	for i, line := range lines {
		if i == 0 {
			fmt.Fprintf(w, "  %s%s  %s\n", st.label.Render(name), strings.Repeat(" ", max(0, 8-len(name))), line)
		} else {
			fmt.Fprintf(w, "%s%s\n", strings.Repeat(" ", 12), line)
		}
	}
}

func (c *CompiledPart) writeHuman(w io.Writer, st style) {
	blocks := fmt.Sprintf("%s (at most %d a rank), %s", plural(int64(c.ThreadBlocks), "thread block"),
		c.MaxThreadBlocks, plural(int64(c.Channels), "channel"))
	if c.OneSided {
		part(w, st, "compiled", fmt.Sprintf("for %s: %s (at most %d a rank), at most %s a rank", c.Target,
			plural(int64(c.ThreadBlocks), "thread block"), c.MaxThreadBlocks, plural(int64(c.Channels), "channel")),
			fmt.Sprintf("%s from %s of the script, scratch %s", plural(int64(c.Steps+c.Nops), "operation"), grouped(int64(c.StepsBefore)), scratchText(c)))
		writeWindow(w, st, c.MinBytes, c.MaxBytes)
		writeNotes(w, st, c.Notes)
		return
	}
	part(w, st, "compiled", "for "+c.Target+": "+blocks,
		fmt.Sprintf("%s from %s before fusion, %s of %s kept, %s, scratch %s",
			plural(int64(c.Steps), "step"), grouped(int64(c.StepsBefore)), grouped(int64(c.Dependencies)),
			plural(int64(c.DependenciesFound), "dependency"), plural(int64(c.Nops), "nop"), scratchText(c)))
	writeWindow(w, st, c.MinBytes, c.MaxBytes)
	writeNotes(w, st, c.Notes)
}

// writeRead is about a program that was read: what it is, and who would take it.
func (r *Report) writeRead(w io.Writer, st style) {
	c := r.Compiled
	from := findFormat(r.Read.Format).Title
	if r.Read.Rules != "" {
		from += " (" + r.Read.Rules + ")"
	}
	if r.Check != nil && r.Check.OneSided {
		part(w, st, "read", fmt.Sprintf("%s: %s (at most %d a rank), at most %s a rank", from,
			plural(int64(c.ThreadBlocks), "thread block"), c.MaxThreadBlocks, plural(int64(c.Channels), "channel")),
			fmt.Sprintf("%s, scratch %s", plural(int64(c.Steps+c.Nops), "operation"), scratchText(c)))
	} else {
		part(w, st, "read", fmt.Sprintf("%s: %s (at most %d a rank), %s", from,
			plural(int64(c.ThreadBlocks), "thread block"), c.MaxThreadBlocks, plural(int64(c.Channels), "channel")),
			fmt.Sprintf("%s, %s, %s, scratch %s", plural(int64(c.Steps), "step"), plural(int64(c.Dependencies), "dependency"),
				plural(int64(c.Nops), "nop"), scratchText(c)))
	}
	writeWindow(w, st, c.MinBytes, c.MaxBytes)
	if len(r.Read.Runtimes) > 0 {
		part(w, st, "taken by", strings.Join(r.Read.Runtimes, ", "))
	}
	if len(r.Read.Refusals) > 0 {
		part(w, st, "refused", wrap("by "+refusalText(r.Read.Refusals), tableWidth-12)...)
	}
	writeNotes(w, st, r.Read.Notes)
}

// writeHuman is about the one-sided program that a two-sided one became.
func (e *ExportedPart) writeHuman(w io.Writer, st style) {
	part(w, st, "exported", fmt.Sprintf("as a plan: %s (at most %d a rank), %s, at most %s a rank", plural(int64(e.ThreadBlocks), "thread block"),
		e.MaxThreadBlocks, plural(int64(e.Operations), "operation"), plural(int64(e.Channels), "channel")))
	writeWindow(w, st, e.MinBytes, e.MaxBytes)
	writeNotes(w, st, e.Notes)
	e.Check.writeHuman(w, st)
}

func writeWindow(w io.Writer, st style, least, most int64) {
	if least > 0 || most > 0 {
		part(w, st, "sizes", windowText(least, most))
	}
}

func writeNotes(w io.Writer, st style, notes []jsonMessage) {
	for _, n := range notes {
		text := n.Text
		if n.File != "" {
			text = fmt.Sprintf("%s:%d:%d: %s", n.File, n.Line, n.Col, n.Text)
		}
		label := "note"
		if n.Severity == "warning" {
			label = "warning"
		}
		part(w, st, label, text)
	}
}

func scratchText(c *CompiledPart) string {
	if c.ScratchChunks == 0 {
		return "none"
	}
	return fmt.Sprintf("%s (at most %d a rank)", plural(c.ScratchChunks, "chunk"), c.MaxScratchChunks)
}

func (c *CheckPart) writeHuman(w io.Writer, st style) {
	if !c.Holds {
		part(w, st, "check", st.bad.Render("fails: "+plural(int64(countErrors(c.Messages)), "error")))
		return
	}
	right := "every output right"
	if !c.Demanded {
		right = "nothing is demanded of the outputs"
	}
	if c.OneSided && c.Demanded && c.Races > 0 {
		right = "every output right unless the races fall otherwise"
	}
	if c.OneSided {
		text := fmt.Sprintf("%s for one launch: %s, no deadlock; %s within it, %d with the next launch",
			st.good.Render("holds"), right, plural(int64(c.Races), "race"), c.RacesAcross)
		part(w, st, "check", append([]string{text}, c.remarks(st)...)...)
		return
	}
	race := "no race"
	if slices.ContainsFunc(c.list, func(m *diag.Message) bool { return m.Code == checker.CodeRace }) {
		race = "no race that reaches an output"
	}
	if c.Direct {
		text := fmt.Sprintf("%s: %s, %s, no deadlock without slots (Direct)", st.good.Render("holds"), right, race)
		part(w, st, "check", append([]string{text}, c.remarks(st)...)...)
		return
	}
	text := fmt.Sprintf("%s: %s, %s, no deadlock with %s or more", st.good.Render("holds"), right, race,
		plural(int64(c.MinSlots), "slot"))
	part(w, st, "check", append([]string{text + " (" + regimesText(c.Regimes) + ")"}, c.remarks(st)...)...)
}

// remarks are what there is to say besides of a program that holds.
func (c *CheckPart) remarks(st style) []string {
	var lines []string
	if c.GPU != "" {
		who := "a rank"
		if c.GPURanks > 1 {
			who = plural(int64(c.GPURanks), "rank")
		}
		lines = append(lines, fmt.Sprintf("all thread blocks of %s run at once on %s", who, c.GPU))
	}
	if c.OrderDiffers {
		text := "ranks add in different orders: their sums may differ in the last bits"
		if c.advise {
			text += "; --canonical-order may avoid it"
		}
		lines = append(lines, st.dim.Render(text))
	}
	return lines
}

// regimesText tells the message sizes that were judged.
func regimesText(k []int32) string {
	switch len(k) {
	case 0:
		return "no messages"
	case 1:
		return "one size regime"
	}
	return fmt.Sprintf("%d size regimes, %d to %d chunks in a message", len(k), k[0], k[len(k)-1])
}

// writeHuman prints nccl-tests' columns: sizes in bytes, time in microseconds,
// bandwidths in GB/s (10^9).
func (x *RunPart) writeHuman(w io.Writer, st style, demanded bool) {
	columns := fmt.Sprintf("%12s %12s %8s %6s %5s %10s %8s %8s %7s",
		"size(B)", "count", "type", "redop", "root", "time(us)", "algbw", "busbw", "#wrong")
	row := fmt.Sprintf("%12d %12d %8s %6s %5d %10.1f %8.2f %8.2f %7d",
		x.Bytes, x.Elements, x.DType, x.Op, x.Root, float64(x.MedianNS)/1e3, x.AlgBW, x.BusBW, x.Wrong)
	verdict := st.good.Render("every output is right")
	switch {
	case !demanded:
		verdict = "nothing is demanded of the outputs"
	case x.Wrong > 0:
		verdict = st.bad.Render("wrong outputs")
	}
	moved := fmt.Sprintf("moved %s over connections in %s, %.2f GB/s; %s", formatSize(x.Moved),
		time.Duration(x.MedianNS).Round(time.Microsecond), x.MoveRate, verdict)
	if x.Iterations > 1 {
		moved = fmt.Sprintf("median of %d: %s", x.Iterations, moved)
	}
	part(w, st, "run", moved, st.dim.Render(columns), row)
}

func countErrors(list []jsonMessage) int {
	n := 0
	for i := range list {
		if list[i].Severity == "error" {
			n++
		}
	}
	return n
}

func modeName(inPlace bool) string {
	if inPlace {
		return "in place"
	}
	return "out of place"
}

func instancesText(n int32) string {
	if n <= 1 {
		return ""
	}
	return fmt.Sprintf(", %d instances", n)
}

func windowText(least, most int64) string {
	switch {
	case most == 0:
		return "from " + formatSize(least) + " on"
	case least == 0:
		return "up to " + formatSize(most)
	}
	return formatSize(least) + " to " + formatSize(most)
}

// plural is "1 step", "2 steps", "0 dependencies".
func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if stem, ok := strings.CutSuffix(noun, "y"); ok {
		return grouped(n) + " " + stem + "ies"
	}
	return grouped(n) + " " + noun + "s"
}

// grouped is n with a comma after every thousand.
func grouped(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
