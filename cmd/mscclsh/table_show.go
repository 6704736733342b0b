package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime"
	"github.com/mscclsh/mscclsh/table"
)

// TableEntry is an entry of a table in JSON. Bytes count as docs/table.md says.
type TableEntry struct {
	Name       string   `json:"name"`
	Source     string   `json:"source"`
	Collective string   `json:"collective"`
	Ranks      int32    `json:"ranks"`
	Nodes      int32    `json:"nodes"`
	Root       *int32   `json:"root"` // null: not rooted, or any
	Priority   int32    `json:"priority"`
	MinBytes   int64    `json:"min_bytes"`
	MaxBytes   *int64   `json:"max_bytes"` // null: no upper end
	Multiple   int64    `json:"multiple"`
	Unit       int32    `json:"unit"` // bytes that a chunk must be a multiple of
	DTypes     []string `json:"dtypes"`
	Ops        []string `json:"ops"`
	Memory     string   `json:"memory"`
	Threads    int32    `json:"threads"`
	MaxBlocks  int32    `json:"max_blocks"`
	Place      string   `json:"place"`
	Mixable    bool     `json:"mixable"`
	Protocol   string   `json:"protocol"`
	OneSided   bool     `json:"one_sided"`
	Program    string   `json:"program"`
	Steps      int      `json:"steps"`
	Reason     string   `json:"reason,omitempty"` // of explain: why it isn't chosen
}

// TableReport is what table show and table explain print with --json.
type TableReport struct {
	MadeBy  string       `json:"made_by,omitempty"`
	ABI     uint32       `json:"abi,omitempty"`
	Bytes   int64        `json:"bytes,omitempty"`  // of explain's call
	Count   int64        `json:"count,omitempty"`  // NCCL's argument of that call
	Chosen  string       `json:"chosen,omitempty"` // the entry that it gets, or nccl
	Entries []TableEntry `json:"entries"`
}

func jsonEntry(t *table.Table, e *table.Entry) TableEntry {
	j := TableEntry{Name: e.Name, Source: e.Source, Collective: e.Collective.String(), Ranks: e.Ranks, Nodes: e.Nodes,
		Priority: e.Priority, MinBytes: e.MinBytes, Multiple: e.Multiple, Unit: e.Unit, DTypes: []string{}, Ops: []string{}, Memory: e.Memory.String(),
		Threads: e.Threads, MaxBlocks: e.MaxBlocks, Place: e.Place(), Mixable: e.Mixable}
	if e.Root != none {
		j.Root = &e.Root
	}
	if e.MaxBytes < table.OpenEnd {
		j.MaxBytes = &e.MaxBytes
	}
	for d, name := range runtime.DTypeNames() {
		if e.DTypes.Has(runtime.DType(d)) {
			j.DTypes = append(j.DTypes, name)
		}
	}
	for o, name := range runtime.ReduceOpNames() {
		if e.Collective.Reduces() && e.Ops.Has(runtime.ReduceOp(o)) {
			j.Ops = append(j.Ops, name)
		}
	}
	p := entryProgram(t, e)
	j.Protocol, j.OneSided, j.Program, j.Steps = p.Protocol.String(), p.One != nil, p.Title, p.Steps()
	return j
}

// entryProgram is the entry's program, that out of place if it has two.
func entryProgram(t *table.Table, e *table.Entry) *table.Program {
	if e.OutOfPlace != ir.None {
		return &t.Programs[e.OutOfPlace]
	}
	return &t.Programs[e.InPlace]
}

func (s *Session) writeTableJSON(value any) error {
	enc := json.NewEncoder(s.Out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(value); err != nil {
		return cannot("writing the report: %w", err)
	}
	return nil
}

// tableShow lists the entries of a table.
func (s *Session) tableShow(ctx context.Context, file string) error {
	t, _, err := s.openTable(ctx, file)
	if err != nil {
		return err
	}
	s.begin("")
	if s.Set.JSON {
		rep := TableReport{MadeBy: t.MadeBy, ABI: t.ABI, Entries: []TableEntry{}}
		for i := range t.Entries {
			rep.Entries = append(rep.Entries, jsonEntry(t, &t.Entries[i]))
		}
		return s.writeTableJSON(rep)
	}
	_, err = io.WriteString(s.Out, tableText(t))
	return err
}

// tableText is the list of a table's entries for people, which is written beside it too.
func tableText(t *table.Table) string {
	rows := [][]string{{"collective", "ranks", "root", "bytes", "memory", "priority", "count", "dtypes", "ops", "place", "blocks", "protocol", "name", "source"}}
	for i := range t.Entries {
		e := &t.Entries[i]
		root, ranks := "", fmt.Sprint(e.Ranks)
		if e.Root != none {
			root = fmt.Sprint(e.Root)
		}
		if e.Nodes > 1 {
			ranks += fmt.Sprintf("/%d", e.Nodes)
		}
		count, protocol := fmt.Sprintf("*%d", e.Multiple), entryProgram(t, e).Protocol.String()
		if e.Unit > 1 {
			count += fmt.Sprintf("/%dB", e.Unit)
		}
		if entryProgram(t, e).One != nil {
			protocol = "one-sided " + protocol
		}
		rows = append(rows, []string{e.Collective.String(), ranks, root, e.Range(), e.Memory.String(), fmt.Sprint(e.Priority),
			count, e.DTypes.String(), e.Ops.String(), e.Place(), fmt.Sprint(e.MaxBlocks),
			protocol, e.Name, e.Source})
	}
	var b strings.Builder
	writeAligned(&b, rows)
	fmt.Fprintf(&b, "\n%s, %s, interface %d, made by mscclsh %s\n", plural(int64(len(t.Entries)), "entry"),
		plural(int64(len(t.Programs)), "program"), t.ABI, t.MadeBy)
	return b.String()
}

// writeAligned prints rows in columns, two blanks between them.
func writeAligned(b *strings.Builder, rows [][]string) {
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], len(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			fmt.Fprintf(&line, "%-*s  ", width[i], cell)
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// tableExplain tells which entry a call gets, and why it gets none of the others.
func (s *Session) tableExplain(ctx context.Context, file string) error {
	q, err := s.tableQuery()
	if err != nil {
		return err
	}
	t, _, err := s.openTable(ctx, file)
	if err != nil {
		return err
	}
	s.begin("")
	chosen, reasons := t.Choose(q)
	rep := TableReport{Bytes: q.Bytes(), Count: q.Count, Chosen: table.NCCL, Entries: []TableEntry{}}
	if chosen != nil {
		rep.Chosen = chosen.Name
	}
	for i := range t.Entries {
		if reasons[i] == table.ByCollective {
			continue
		}
		j := jsonEntry(t, &t.Entries[i])
		j.Reason = string(reasons[i])
		rep.Entries = append(rep.Entries, j)
	}
	if s.Set.JSON {
		return s.writeTableJSON(rep)
	}
	return rep.writeExplanation(s.Out, t, chosen, q.InPlace)
}

// writeExplanation prints the entry that is chosen, then the others with a reason each.
func (r *TableReport) writeExplanation(w io.Writer, t *table.Table, chosen *table.Entry, inPlace bool) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", r.Chosen)
	if chosen != nil {
		p, copied := entryProgram(t, chosen), ""
		switch {
		case inPlace && chosen.InPlace != none:
			p = &t.Programs[chosen.InPlace]
		case inPlace || chosen.OutOfPlace == none:
			copied = ", after a copy"
		}
		fmt.Fprintf(&b, "  %s, priority %d, %s\n  %s%s\n", chosen.Range(), chosen.Priority, chosen.Source, p.Title, copied)
	}
	var rows [][]string
	for i := range r.Entries {
		if j := &r.Entries[i]; j.Reason != "" {
			high := int64(math.MaxInt64)
			if j.MaxBytes != nil {
				high = *j.MaxBytes
			}
			sizes := table.Entry{MinBytes: j.MinBytes, MaxBytes: high}
			rows = append(rows, []string{"not " + j.Name, j.Reason, sizes.Range(), j.Source})
		}
	}
	if len(rows) > 0 {
		writeAligned(&b, rows)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// tableQuery is the call that the flags describe.
func (s *Session) tableQuery() (table.Query, error) {
	set := &s.Set.Table
	q := table.Query{Collective: set.coll, DType: s.Set.DType, Op: s.Set.Op, Root: none, Ranks: set.ranks, Nodes: max(set.nodes, 1),
		InPlace: s.Set.InPlace, Registered: set.registered, MaxCTAs: set.maxCTAs, Scratch: -1}
	for _, name := range []string{"coll", "bytes", "ranks"} {
		if !set.has(name) {
			return q, badCallHint("missing-argument", "mscclsh table explain --coll allreduce --bytes 64KiB --ranks 8",
				"table explain: --%s is missing", name)
		}
	}
	if set.scratchSet {
		q.Scratch = set.scratch
	}
	unit := q.Collective.Bytes(1, q.DType.Size(), q.Ranks)
	switch {
	case q.Collective.Rooted() && set.root >= q.Ranks:
		return q, badCall("flag-value", "--root: got %d, and there are %d ranks", set.root, q.Ranks)
	case !q.Collective.Rooted() && set.has("root"):
		return q, badCall("flag-unused", "--root: %v has no root", q.Collective)
	case !q.Collective.Reduces() && s.Set.Op != 0:
		return q, badCall("flag-unused", "--op: %v reduces nothing", q.Collective)
	case q.Ranks%q.Nodes != 0:
		return q, badCall("flag-value", "--nodes: %d ranks don't lie on %d hosts alike", q.Ranks, q.Nodes)
	case set.bytes%unit != 0:
		return q, badCallHint("flag-value", fmt.Sprintf("take a multiple of %d", unit),
			"--bytes: %d bytes are no %v of whole %v elements on %d ranks", set.bytes, q.Collective, q.DType, q.Ranks)
	}
	if q.Collective.Rooted() {
		q.Root = set.root
	}
	q.Count = set.bytes / unit
	return q, nil
}
