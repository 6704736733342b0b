package table

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime/cuda"
)

// Recipe is an entry to be: a program for each place, at least one, and what the
// programs don't say themselves. Programs were judged to hold at all sizes of the range.
type Recipe struct {
	Name               string
	Pos                diag.Pos // in the table's source
	InPlace            *ir.Program
	OutOfPlace         *ir.Program
	Both               *ir.Program // one-sided, made for calls out of place, that holds in place too: instead of the other two
	Title              string      // of both programs, for people
	MinBytes, MaxBytes int64       // of a call, inclusive; MaxBytes OpenEnd: no upper end
	DTypes             DTypes      // 0: all
	Ops                Ops         // 0: all that the collective has
	Priority           int32
	Threads            int32
	Nodes              int32 // 0: 1
}

// nameShape is what names of entries are made of: nothing that a log line or a list
// would have to quote.
var nameShape = regexp.MustCompile(`^[A-Za-z0-9_.#+-]{1,100}$`)

// The most bytes of a source's name and of a title that a table keeps.
const (
	maxName  = 4096
	maxTitle = 1024
)

// oneLine is text for people as one line of most bytes at most: what is no character
// that can be seen stands as "?", and what is too long ends in "...".
func oneLine(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
	const dots = "..."
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most-len(dots)], "") + dots
	}
	return text
}

// ValidName reports whether an entry can have the name.
func ValidName(name string) bool { return nameShape.MatchString(name) && name != NCCL }

// Build makes a table. Its notes say what became otherwise than asked: of an entry whose
// two programs can't meet, one is left out.
func Build(madeBy string, recipes []Recipe) (*Table, diag.List, error) {
	b := builder{table: &Table{MadeBy: madeBy, ABI: cuda.ABI}, programs: map[string]int32{}, names: map[string]diag.Pos{}}
	var bad diag.List
	for _, r := range recipes {
		if err := b.add(&r); err != nil {
			bad = append(bad, diag.Messages(err)...)
		}
	}
	if len(bad) > 0 {
		return nil, nil, bad
	}
	b.sort()
	return b.table, b.notes, nil
}

type builder struct {
	table    *Table
	programs map[string]int32 // by all that they are
	names    map[string]diag.Pos
	notes    diag.List
}

// add makes an entry of a recipe.
func (b *builder) add(r *Recipe) error {
	bad := func(code, format string, args ...any) *diag.Message {
		return diag.Errorf(r.Pos, code, "algorithm: "+format, args...)
	}
	if first, twice := b.names[r.Name]; twice {
		return bad("name", "another entry is called %q", r.Name).Note(first, "here").Suggest("give one of them another name = \"...\"")
	}
	if !ValidName(r.Name) {
		return bad("name", "name: got %.120q, want letters, digits and _ . # + -, at most 100 of them, and not %q", r.Name, NCCL)
	}
	if r.Both != nil {
		r.InPlace, r.OutOfPlace = nil, r.Both
	}
	p := r.InPlace
	if p == nil {
		p = r.OutOfPlace
	}
	if p == nil {
		return bad("program", "%s has no program", r.Name)
	}
	e, err := b.entry(r, p)
	if err != nil {
		return bad("program", "%v", err)
	}
	if e.Memory == Windows && p.OneSided != nil && r.OutOfPlace != nil && !sparesInputs(r.OutOfPlace) {
		return bad("clobbers-input", "%s: the program out of place overwrites inputs: a call must leave those alone", r.Name)
	}
	if r.Both != nil && writesInput(r.Both.OneSided) {
		return bad("program", "%s: a program for both places must not write inputs", r.Name)
	}
	if r.InPlace != nil && !sparesInputs(r.InPlace) {
		if r.OutOfPlace == nil {
			return bad("clobbers-input", "%s: the program in place overwrites inputs that are nobody's output: a call must leave those alone", r.Name).
				Suggest("inplace = False makes a program that doesn't; calls in place are served by a copy")
		}
		r.InPlace = nil
		b.note(r, "clobbers-input", "%s has no program in place, as that overwrites inputs that are nobody's output; calls in place are served by a copy", r.Name)
	}
	if r.InPlace != nil && r.OutOfPlace != nil && e.Memory == AnyMemory {
		e.Mixable = p.OneSided == nil && mixable(r.InPlace, r.OutOfPlace)
		if !e.Mixable {
			b.dropOne(r, &e)
		}
	}
	for _, x := range []struct {
		prog *ir.Program
		to   *int32
	}{{r.InPlace, &e.InPlace}, {r.OutOfPlace, &e.OutOfPlace}} {
		if x.prog == nil {
			continue
		}
		if *x.to, err = b.program(r, x.prog); err != nil {
			return bad("program", "%v", err)
		}
		e.MaxBlocks = max(e.MaxBlocks, int32(x.prog.Count().MaxTBs))
	}
	if r.Both != nil {
		e.InPlace, e.Mixable = e.OutOfPlace, true
	}
	b.names[r.Name] = r.Pos
	b.table.Entries = append(b.table.Entries, e)
	return nil
}

// dropOne keeps the program that calls of the collective mostly want, where two can't
// meet: all ranks must run one, as no rank sees where the others' buffers are.
func (b *builder) dropOne(r *Recipe, e *Entry) {
	kept, other := "in", "out of"
	if !collectiveTable[e.Collective].wholeMem {
		kept, other = other, kept
		r.InPlace = nil
	} else {
		r.OutOfPlace = nil
	}
	why := "its programs for both don't send the same messages"
	if (cmp.Or(r.InPlace, r.OutOfPlace)).OneSided != nil {
		why = "no program for one place holds for the other too, and two one-sided ones have packets and signals of their own"
	}
	b.note(r, "mixed-places", "%s is for calls %s place alone: %s, so ranks that call differently couldn't meet; calls %s place are served by a copy",
		r.Name, kept, why, other)
}

func (b *builder) note(r *Recipe, code, format string, args ...any) {
	for _, m := range b.notes {
		if m.Pos == r.Pos && m.Code == code { // of another root, say: once is enough, with all names
			m.Note(diag.Pos{}, "likewise %s", r.Name)
			return
		}
	}
	b.notes = append(b.notes, &diag.Message{Pos: r.Pos, Severity: diag.Info, Code: code, Text: "algorithm: " + fmt.Sprintf(format, args...)})
}

// demanded are the places of a rank's memory that it hands back.
func demanded(p *ir.Program, rank ir.Rank) map[ir.Place]bool {
	var want []ir.Contribution
	output := map[ir.Place]bool{}
	for i := range p.Coll.OutputChunks(rank) {
		if _, demanded := p.Coll.Expect(want[:0], rank, i); demanded {
			buf, at := p.Coll.Canon(rank, ir.Output, i)
			output[ir.Place{Buf: buf, Index: at}] = true
		}
	}
	return output
}

// sparesInputs reports whether a program in place writes only what it hands back: an
// application's input that is no output must be what it was.
func sparesInputs(p *ir.Program) bool {
	if p.OneSided != nil {
		return sparesOne(p)
	}
	for r := range p.GPUs {
		rank := ir.Rank(r)
		output := demanded(p, rank)
		for t := range p.GPUs[r].TBs {
			for i := range p.GPUs[r].TBs[t].Steps {
				s := &p.GPUs[r].TBs[t].Steps[i]
				if !s.Kind.WritesDst() || s.Dst.Buf >= ir.FirstScratch {
					continue
				}
				for k := range s.Count {
					if buf, at := p.Coll.Canon(rank, s.Dst.Buf, s.Dst.Index+k); !output[ir.Place{Buf: buf, Index: at}] {
						return false
					}
				}
			}
		}
	}
	return true
}

// entry fills in what a program says.
func (b *builder) entry(r *Recipe, p *ir.Program) (Entry, error) {
	c := p.Coll
	coll, known := OfKind(c.Kind)
	if !known {
		return Entry{}, fmt.Errorf("NCCL's interface has no call for the collective %v, want one of %v", c, CollectiveNames())
	}
	e := Entry{Name: r.Name, Source: fmt.Sprintf("%s:%d", oneLine(r.Pos.File, maxName), r.Pos.Line), Collective: coll, Ranks: c.Ranks, Nodes: max(r.Nodes, 1),
		Root: ir.None, Priority: r.Priority, MinBytes: max(r.MinBytes, 0), MaxBytes: r.MaxBytes, Multiple: int64(c.Segment()),
		Unit: 1, Alignment: 1, DTypes: r.DTypes, Ops: r.Ops, Threads: r.Threads, InPlace: ir.None, OutOfPlace: ir.None}
	if coll.Rooted() {
		e.Root = int32(c.Root)
	}
	if e.DTypes == 0 {
		e.DTypes = AllDTypes()
	}
	switch {
	case !coll.Reduces():
		e.Ops = NoOps
	case e.Ops == 0:
		e.Ops = AllOps()
	}
	if p.Protocol == ir.Direct || p.OneSided != nil && cuda.Reaches(p) {
		e.Memory = Windows
	}
	if p.OneSided != nil {
		if err := e.restrict(r, p); err != nil {
			return e, err
		}
	}
	if coll == SendRecv && int32(c.Peer) != (int32(c.Root)+1)%c.Ranks {
		return e, fmt.Errorf("rank %d sends to rank %d: sendrecv of a table goes to the next rank, %d", c.Root, c.Peer, (int32(c.Root)+1)%c.Ranks)
	}
	if e.MinBytes > e.MaxBytes {
		return e, fmt.Errorf("no size lies between %d and %d bytes", e.MinBytes, e.MaxBytes)
	}
	for _, q := range []*ir.Program{r.InPlace, r.OutOfPlace} {
		if q == nil {
			continue
		}
		if q.Coll.Kind != c.Kind || q.Coll.Ranks != c.Ranks || q.Coll.Root != c.Root || q.Coll.Peer != c.Peer ||
			q.Coll.Segment() != c.Segment() || (q.Protocol == ir.Direct) != (p.Protocol == ir.Direct) || !alike(q, p) {
			if (q.OneSided == nil) == (p.OneSided == nil) && !alike(q, p) {
				return e, fmt.Errorf("the program for calls in place and that for others want other memory or other chunks: make an entry of each, with inplace = True and inplace = False")
			}
			return e, fmt.Errorf("the programs for calls in and out of place differ in more than that")
		}
		if q.Coll.InPlace != (q == r.InPlace) {
			return e, fmt.Errorf("a program for one place stands where one for the other belongs")
		}
	}
	return e, nil
}

// alike reports whether two programs are of one kind, and want the same of sizes and memory.
func alike(a, b *ir.Program) bool {
	if (a.OneSided == nil) != (b.OneSided == nil) {
		return false
	}
	return a.OneSided == nil || a.OneSided.Alignment == b.OneSided.Alignment && cuda.Reaches(a) == cuda.Reaches(b)
}

// restrict takes out what a one-sided program can't do, unless that was asked for.
func (e *Entry) restrict(r *Recipe, p *ir.Program) error {
	e.Unit = p.OneSided.Alignment
	types, ops := dtypesOf(p.OneSided), opsOf(p.OneSided)
	if bad := r.DTypes &^ types; r.DTypes != 0 && bad != 0 {
		return fmt.Errorf("data types %v: the program cuts such elements, as it is cut at multiples of %d bytes", bad, e.Unit)
	}
	if e.DTypes &= types; e.DTypes == 0 {
		return fmt.Errorf("the program cuts the elements of every data type")
	}
	if !e.Collective.Reduces() {
		return nil
	}
	if bad := r.Ops &^ ops; r.Ops != 0 && bad != 0 {
		return fmt.Errorf("operations %v: the program fixes what it reduces by, which is %v", bad, ops)
	}
	if e.Ops &= ops; e.Ops == 0 {
		return fmt.Errorf("the program reduces by several operations at once, which no call asks for")
	}
	return nil
}

// flatten makes a program's tables.
func flatten(p *ir.Program) (*cuda.Tables, *cuda.OneTables, error) {
	if p.OneSided != nil {
		return cuda.FlattenOne(p)
	}
	t, err := cuda.Flatten(p)
	return t, nil, err
}

// program finds or adds a program of the table.
func (b *builder) program(r *Recipe, p *ir.Program) (int32, error) {
	t, one, err := flatten(p)
	if err != nil {
		return 0, err
	}
	place := "out of place"
	switch {
	case p == r.Both:
		place = "in place or not"
	case p.Coll.InPlace:
		place = "in place"
	}
	q := Program{Title: oneLine(r.Title, maxTitle) + ", " + place, Tables: *t, One: one, Ranks: p.Coll.Ranks, Protocol: p.Protocol, Slots: p.Transport.Slots,
		SlotBytes: p.Transport.SlotBytes, CountChunks: int64(p.Coll.Segment()), MaxRegime: ir.MaxRegime}
	if p.Protocol == ir.Direct {
		q.Slots, q.SlotBytes, q.MaxRegime = 0, 0, math.MaxInt32
	}
	if one != nil {
		q.MaxRegime = 1
	}
	for g := range p.GPUs {
		q.ScratchChunks = max(q.ScratchChunks, int64(p.GPUs[g].Scratch)*q.scratchTimes())
	}
	key := q.key()
	if i, ok := b.programs[key]; ok {
		return i, nil
	}
	i := int32(len(b.table.Programs))
	b.programs[key] = i
	b.table.Programs = append(b.table.Programs, q)
	return i, nil
}

// key is all that a program is, as one string.
func (p *Program) key() string {
	var b bytes.Buffer
	fmt.Fprintln(&b, p.Title, p.Ranks, p.Protocol, p.Slots, p.SlotBytes, p.CountChunks, p.ScratchChunks, p.MaxRegime)
	for _, words := range p.arrays() {
		b.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(*words))))
		b.Write(wordBytes(*words))
	}
	if p.One != nil {
		fmt.Fprintln(&b, p.One.Packets, p.One.DoubleScratch, p.One.Alignment, p.One.Threads)
		for _, words := range oneArrays(p.One) {
			b.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(*words))))
			b.Write(wordBytes(*words))
		}
	}
	return b.String()
}

// sort puts entries in the order in which they are tried, and programs in the order in
// which entries name them.
func (b *builder) sort() {
	t := b.table
	slices.SortFunc(t.Entries, before)
	moved := make(map[int32]int32, len(t.Programs))
	programs := make([]Program, 0, len(t.Programs))
	for i := range t.Entries {
		for _, at := range []*int32{&t.Entries[i].InPlace, &t.Entries[i].OutOfPlace} {
			if *at == ir.None {
				continue
			}
			to, known := moved[*at]
			if !known {
				to = int32(len(programs))
				moved[*at] = to
				programs = append(programs, t.Programs[*at])
			}
			*at = to
		}
	}
	t.Programs = programs
}

// before orders entries: by collective, ranks, priority from high to low, least bytes,
// name.
func before(a, b Entry) int {
	return cmp.Or(cmp.Compare(a.Collective, b.Collective), cmp.Compare(a.Ranks, b.Ranks), cmp.Compare(b.Priority, a.Priority),
		cmp.Compare(a.MinBytes, b.MinBytes), cmp.Compare(a.Name, b.Name))
}
