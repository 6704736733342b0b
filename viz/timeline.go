package viz

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/mscclsh/mscclsh/ir"
)

// Timeline writes the events of a run of p as a trace of Chrome's format, JSON that
// Perfetto opens: a process a rank, a thread a thread block, a slice an event, an
// arrow a message of a two-sided program, from the step that sends it to the one that
// receives it. about says what was run, in pairs of a name and a value. Events come
// thread block by thread block, by time. An event that names no step of p is an
// error.
func Timeline(w io.Writer, p *ir.Program, events []ir.Event, about [][2]string) error {
	if err := p.Validate(); err != nil {
		return err
	}
	t := &timeline{out: bufio.NewWriterSize(w, 64<<10), prog: p}
	t.out.WriteString("{\"displayTimeUnit\":\"ns\",\n\"otherData\":{")
	for i, a := range about {
		if i > 0 {
			t.out.WriteByte(',')
		}
		t.value(a[0])
		t.out.WriteByte(':')
		t.value(a[1])
	}
	t.out.WriteString("},\n\"traceEvents\":[")
	t.names()
	for i := range events {
		if err := t.slice(&events[i]); err != nil {
			return err
		}
	}
	t.arrows(events)
	t.out.WriteString("\n]}\n")
	if err := t.out.Flush(); err != nil {
		return fmt.Errorf("writing a timeline: %w", err)
	}
	return nil
}

// timeline writes a trace; the error of the writer stays in out until its end.
type timeline struct {
	out  *bufio.Writer
	prog *ir.Program
	some bool // there is an entry already
	text bytes.Buffer
}

// entry is one line of a trace. Fields that an entry of its kind hasn't are left out.
type entry struct {
	Phase   string  `json:"ph"`
	Name    string  `json:"name"`
	Cat     string  `json:"cat,omitempty"`
	ID      int     `json:"id,omitempty"`
	Process ir.Rank `json:"pid"`
	Thread  int32   `json:"tid"`
	Begin   *micros `json:"ts,omitempty"`
	Length  *micros `json:"dur,omitempty"`
	Bind    string  `json:"bp,omitempty"`
	Args    any     `json:"args,omitempty"`
}

// micros is a time in nanoseconds, written in microseconds.
type micros int64

// MarshalJSON writes all digits: rounded times would make slices overlap.
func (m micros) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "%d.%03d", m/1000, m%1000), nil
}

// stepArgs tells what a step of a two-sided program does; names in a trace are for
// people.
type stepArgs struct {
	Step        int32    `json:"step"`
	Tile        int32    `json:"tile"`
	Does        string   `json:"does"`
	From        *ir.Rank `json:"from,omitempty"`
	To          *ir.Rank `json:"to,omitempty"`
	Channel     *int32   `json:"channel,omitempty"`
	Source      string   `json:"source,omitempty"`
	Destination string   `json:"destination,omitempty"`
	At          string   `json:"at,omitempty"`
}

func (t *timeline) value(v any) {
	t.text.Reset()
	e := json.NewEncoder(&t.text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // strings and entries have no values that can't be written
	}
	t.out.Write(bytes.TrimRight(t.text.Bytes(), "\n"))
}

func (t *timeline) entry(e entry) {
	if t.some {
		t.out.WriteByte(',')
	}
	t.some = true
	t.out.WriteByte('\n')
	t.value(e)
}

// names calls processes and threads what they are, in their order.
func (t *timeline) names() {
	type name struct {
		Name string `json:"name"`
	}
	type index struct {
		Index int `json:"sort_index"`
	}
	for r := range t.prog.GPUs {
		rank := ir.Rank(r)
		t.entry(entry{Phase: "M", Name: "process_name", Process: rank, Args: name{"rank " + strconv.Itoa(r)}})
		t.entry(entry{Phase: "M", Name: "process_sort_index", Process: rank, Args: index{r}})
		for b := range t.blocks(rank) {
			t.entry(entry{Phase: "M", Name: "thread_name", Process: rank, Thread: int32(b), Args: name{"thread block " + strconv.Itoa(b)}})
			t.entry(entry{Phase: "M", Name: "thread_sort_index", Process: rank, Thread: int32(b), Args: index{b}})
		}
	}
}

// blocks is the number of a rank's thread blocks.
func (t *timeline) blocks(r ir.Rank) int {
	if one := t.prog.OneSided; one != nil {
		return len(one.GPUs[r].Blocks)
	}
	return len(t.prog.GPUs[r].TBs)
}

// slice writes an event.
func (t *timeline) slice(e *ir.Event) error {
	if e.Rank < 0 || int(e.Rank) >= len(t.prog.GPUs) || e.TB < 0 || int(e.TB) >= t.blocks(e.Rank) {
		return fmt.Errorf("timeline: no thread block %d of rank %d", e.TB, e.Rank)
	}
	begin, length := micros(e.Begin), micros(e.End-e.Begin)
	line := entry{Phase: "X", Process: e.Rank, Thread: e.TB, Begin: &begin, Length: &length}
	if one := t.prog.OneSided; one != nil {
		// Operations count through all blocks, those in pipelines too.
		if e.Step < 0 || int(e.Step) >= len(one.Ops) {
			return fmt.Errorf("timeline: no operation %d", e.Step)
		}
		op := &one.Ops[e.Step]
		line.Name = op.Kind.String()
		line.Args = stepArgs{Step: e.Step, Tile: e.Tile, Does: t.prog.OpString(e.Rank, e.Step), At: t.at(op.Pos)}
		t.entry(line)
		return nil
	}
	steps := t.prog.GPUs[e.Rank].TBs[e.TB].Steps
	if e.Step < 0 || int(e.Step) >= len(steps) {
		return fmt.Errorf("timeline: no step %d in thread block %d of rank %d", e.Step, e.TB, e.Rank)
	}
	s := &steps[e.Step]
	line.Name = s.Kind.String()
	args := stepArgs{Step: e.Step, Tile: e.Tile, Does: t.prog.StepString(e.Rank, e.TB, e.Step), At: t.at(s.Pos)}
	if s.Kind.Receives() {
		args.From, args.Channel = &s.RecvPeer, &s.Chan
	}
	if s.Kind.Sends() {
		args.To, args.Channel = &s.SendPeer, &s.Chan
	}
	if s.Kind.ReadsSrc() {
		args.Source = t.place(s.Src, s.Count)
	}
	if s.Kind.WritesDst() {
		args.Destination = t.place(s.Dst, s.Count)
	}
	line.Args = args
	t.entry(line)
	return nil
}

func (t *timeline) at(pos ir.PosID) string {
	if p := t.prog.Pos(pos); p.IsValid() {
		return p.String()
	}
	return ""
}

func (t *timeline) place(p ir.Place, count int32) string {
	name := "scratch" // one, whatever buffers of the script lie in it
	if p.Buf < ir.FirstScratch {
		name = t.prog.BufferName(p.Buf)
	}
	return fmt.Sprintf("%s[%d:%d]", name, p.Index, p.Index+count)
}

// arrows joins what was sent to what was received. An arrow begins where the
// sending step does and ends with the receiving one.
func (t *timeline) arrows(events []ir.Event) {
	if t.prog.OneSided != nil {
		return
	}
	type key struct {
		stepAt
		tile int32
	}
	at := make(map[key]*ir.Event, len(events))
	tiles := int32(0)
	for i := range events {
		e := &events[i]
		at[key{stepAt{e.Rank, e.TB, e.Step}, e.Tile}] = e
		tiles = max(tiles, e.Tile+1)
	}
	id := 0
	s := newSchedule(t.prog)
	messages, _ := s.messages()
	for _, m := range messages {
		for tile := range tiles {
			from, to := at[key{s.at[m[0]], tile}], at[key{s.at[m[1]], tile}]
			if from == nil || to == nil {
				continue
			}
			id++
			begin, end := micros(from.Begin), micros(max(to.End-1, to.Begin))
			line := entry{Phase: "s", Name: "message", Cat: "message", ID: id, Process: from.Rank, Thread: from.TB, Begin: &begin}
			t.entry(line)
			line.Phase, line.Process, line.Thread, line.Begin, line.Bind = "f", to.Rank, to.TB, &end, "e"
			t.entry(line)
		}
	}
}
