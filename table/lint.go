package table

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime"
)

// Codes of what Lint finds.
const (
	CodeOverlap    = "overlap"            // two entries of one priority match one call
	CodeShadowed   = "shadowed"           // an entry that can never be chosen
	CodeUntaken    = "untaken"            // an entry of a kind that the library leaves alone
	CodeGap        = "gap"                // sizes between ranges that no entry serves
	CodeRanks      = "missing-ranks"      // a number of ranks between others that has no entry
	CodeCollective = "missing-collective" // a collective without an entry
)

// Pos is where the entry stands in the table's source.
func (e *Entry) Pos() diag.Pos {
	i := strings.LastIndexByte(e.Source, ':')
	if i < 0 {
		return diag.Pos{File: e.Source}
	}
	line, err := strconv.ParseInt(e.Source[i+1:], 10, 32)
	if err != nil || line < 1 {
		return diag.Pos{File: e.Source}
	}
	return diag.Pos{File: e.Source[:i], Line: int32(line)}
}

// Lint finds what is probably not meant, entry by entry in their order.
func (t *Table) Lint() diag.List {
	list, live := t.untaken()
	for i := range live.Entries {
		if m := live.shadowed(i); m != nil {
			list = append(list, m)
			continue
		}
		list = append(list, live.overlaps(i)...)
	}
	list = append(list, live.gaps()...)
	list = append(list, live.missingRanks()...)
	return append(list, live.missingCollectives()...)
}

// untaken warns of entries that the library never takes, whatever the call, and returns
// the table without them: they cast no shadow and fill no gap. Those of one line of the
// source are told together.
func (t *Table) untaken() (diag.List, *Table) {
	var list diag.List
	live := *t
	live.Entries = nil
	first := map[string]*diag.Message{}
	for i := range t.Entries {
		e := &t.Entries[i]
		why, instead := e.neverTaken()
		if why == "" {
			live.Entries = append(live.Entries, *e)
			continue
		}
		key := e.Source + "\x00" + why
		if m := first[key]; m != nil {
			m.Note(diag.Pos{}, "likewise %s", e.Name)
			continue
		}
		m := diag.Warningf(e.Pos(), CodeUntaken, "%s can never match: %s", e.Name, why).Suggest("%s", instead)
		first[key] = m
		list = append(list, m)
	}
	return list, &live
}

// neverTaken says why the library takes an entry for no call at all, and what to do
// about it.
func (e *Entry) neverTaken() (why, instead string) {
	switch {
	case e.Collective == SendRecv:
		return "no rank sees what sends and receives others have, so all of sendrecv is left to NCCL", "take it out"
	case e.Memory == Windows && e.Collective.Rooted():
		return fmt.Sprintf("not every rank of a %v passes both buffers, so none can tell whether all of them lie in windows", e.Collective),
			"take protocol LL, LL128 or Simple instead of Direct"
	case e.usable(e.DTypes, e.Ops) == 0:
		return "averages of fp16 and FP8 are left to NCCL, as their sums may overflow", "add other data types or operations, or take it out"
	}
	return "", ""
}

// usable are those of a set of data types for which calls with one of the operations are
// not left to NCCL.
func (e *Entry) usable(types DTypes, ops Ops) DTypes {
	if e.Collective.Reduces() && ops == 1<<runtime.Avg {
		return types &^ narrow
	}
	return types
}

// sameCalls reports whether entries are about the same collective on as many ranks and
// nodes with a root in common.
func sameCalls(a, b *Entry) bool {
	return a.Collective == b.Collective && a.Ranks == b.Ranks && a.Nodes == b.Nodes &&
		(a.Root == b.Root || a.Root == ir.None || b.Root == ir.None)
}

// maxOthers is how many entries a finding names; a table of ten thousand that all overlap
// would have fifty million pairs.
const maxOthers = 3

// overlaps warns of earlier entries of the same priority that match calls of entry i.
func (t *Table) overlaps(i int) diag.List {
	var m *diag.Message
	e, others := &t.Entries[i], 0
	for j := range i {
		f := &t.Entries[j]
		if f.Priority != e.Priority || !sameCalls(e, f) || e.DTypes&f.DTypes == 0 || e.Ops&f.Ops == 0 {
			continue
		}
		low, high := max(e.MinBytes, f.MinBytes), min(e.MaxBytes, f.MaxBytes)
		if low > high || !t.meet(e, f, low, high) {
			continue
		}
		both := Entry{MinBytes: low, MaxBytes: high}
		switch others++; {
		case m == nil:
			m = diag.Warningf(e.Pos(), CodeOverlap, "%s and %s both match %v on %d ranks for %s: %s is taken",
				f.Name, e.Name, e.Collective, e.Ranks, both.Range(), f.Name).
				Note(f.Pos(), "%s, of the same priority %d", f.Name, f.Priority).
				Suggest("give one of them a higher priority, or another range")
		case others <= maxOthers:
			m.Note(f.Pos(), "%s stands before it too, for %s", f.Name, both.Range())
		}
	}
	if m == nil {
		return nil
	}
	if others > maxOthers {
		m.Note(diag.Pos{}, "and %d more", others-maxOthers)
	}
	return diag.List{m}
}

// meet reports whether a call of some size in the range matches both entries.
func (t *Table) meet(e, f *Entry, low, high int64) bool {
	if e.Memory == Windows && f.Memory == Windows && !(e.InPlace != ir.None && f.InPlace != ir.None) &&
		!(e.OutOfPlace != ir.None && f.OutOfPlace != ir.None) {
		return false // windows see the place, and the entries have none in common
	}
	step := func(d runtime.DType) int64 { return lcm(e.step(d), f.step(d)) }
	return e.hasSize(e.usable(e.DTypes&f.DTypes, e.Ops&f.Ops), step, low, high)
}

// step is what the count of a call of a data type must be a multiple of: of the entry's
// multiple, and such that chunks are multiples of its unit.
func (e *Entry) step(d runtime.DType) int64 {
	size, unit := int64(d.Size()), int64(e.Unit)
	return product(e.Multiple, lcm(size, unit)/size)
}

// hasSize reports whether a call whose count is a multiple of the data type's step has a
// size in the range, with one of the data types.
func (e *Entry) hasSize(types DTypes, step func(runtime.DType) int64, low, high int64) bool {
	for d := range len(runtime.DTypeNames()) {
		if !types.Has(runtime.DType(d)) {
			continue
		}
		unit := e.Collective.Bytes(step(runtime.DType(d)), runtime.DType(d).Size(), e.Ranks)
		first := max((max(low, 1)-1)/unit+1, 1) // of the multiples, the first that is large enough
		if product(first, unit) <= high {
			return true
		}
	}
	return false
}

func lcm(a, b int64) int64 {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return product(a/x, b)
}

// shadowed says why entry i can never be chosen, if so.
func (t *Table) shadowed(i int) *diag.Message {
	e := &t.Entries[i]
	if !e.hasSize(e.usable(e.DTypes, e.Ops), e.step, e.MinBytes, e.MaxBytes) {
		chunks := ""
		if e.Unit > 1 {
			chunks = fmt.Sprintf(" and chunks one of %d bytes", e.Unit)
		}
		return diag.Warningf(e.Pos(), CodeShadowed, "%s can never match: no call whose count is a multiple of %d%s has a size in %s",
			e.Name, e.Multiple, chunks, e.Range())
	}
	var covers []*Entry
	for j := range i {
		if f := &t.Entries[j]; t.dominates(f, e) {
			covers = append(covers, f)
		}
	}
	slices.SortStableFunc(covers, func(a, b *Entry) int { return int(min(max(a.MinBytes-b.MinBytes, -1), 1)) })
	next := e.MinBytes // the first size that isn't known to be taken
	var by []*Entry
	for _, f := range covers {
		if f.MinBytes > next || f.MaxBytes < next {
			continue
		}
		by = append(by, f)
		if f.MaxBytes >= e.MaxBytes {
			m := diag.Warningf(e.Pos(), CodeShadowed, "%s can never match: earlier entries take all its calls", e.Name).
				Suggest("give it a higher priority, or take it out")
			for _, g := range by[:min(len(by), maxOthers)] {
				m.Note(g.Pos(), "%s takes %s, priority %d", g.Name, g.Range(), g.Priority)
			}
			if len(by) > maxOthers {
				m.Note(diag.Pos{}, "and %d more take the rest", len(by)-maxOthers)
			}
			return m
		}
		next = f.MaxBytes + 1
	}
	return nil
}

// dominates reports whether f, tried before e, takes every call of e that has a size in
// f's range.
func (t *Table) dominates(f, e *Entry) bool {
	in := f.InPlace != ir.None || f.Memory == AnyMemory || e.InPlace == ir.None
	out := f.OutOfPlace != ir.None || f.Memory == AnyMemory || e.OutOfPlace == ir.None
	return f.Collective == e.Collective && f.Ranks == e.Ranks && f.Nodes == e.Nodes && (f.Root == ir.None || f.Root == e.Root) &&
		e.usable(e.DTypes, e.Ops)&^f.DTypes == 0 && e.Ops&^f.Ops == 0 && e.stepsBy(f) &&
		(f.Memory == AnyMemory || e.Memory == Windows) && in && out &&
		(f.Memory == AnyMemory || f.Alignment <= e.Alignment) && f.MaxBlocks <= e.MaxBlocks && t.scratchPer(f) <= t.scratchPer(e)
}

// stepsBy reports whether every count of e, of whatever data type, is one of f.
func (e *Entry) stepsBy(f *Entry) bool {
	for d := range runtime.DType(len(runtime.DTypeNames())) {
		if e.DTypes.Has(d) && e.step(d)%f.step(d) != 0 {
			return false
		}
	}
	return true
}

// scratchPer compares the scratch of entries (ScratchOf): how many times the count it is.
func (t *Table) scratchPer(e *Entry) float64 {
	most := float64(e.stagedBlocks())
	for _, i := range []int32{e.InPlace, e.OutOfPlace} {
		if i != ir.None {
			most = max(most, float64(t.Programs[i].ScratchChunks)/float64(t.Programs[i].CountChunks))
		}
	}
	return most
}

// family is what entries with one line of ranges have in common.
type family struct {
	collective   Collective
	ranks, nodes int32
	root         int32
	registered   bool // calls with registered buffers: entries of both kinds count
}

// String names the calls.
func (f family) String() string {
	s := fmt.Sprintf("%v on %d ranks", f.collective, f.ranks)
	if f.nodes > 1 {
		s += fmt.Sprintf(" of %d hosts", f.nodes)
	}
	if f.root != ir.None {
		s += fmt.Sprintf(" with root %d", f.root)
	}
	if f.registered {
		s += " with registered buffers"
	}
	return s
}

// gaps warns of sizes between ranges, for calls with and without registered buffers.
func (t *Table) gaps() diag.List {
	var order []family
	members := map[family][]*Entry{}
	for i := range t.Entries {
		e := &t.Entries[i]
		for _, registered := range []bool{false, true} {
			if e.Memory == Windows && !registered {
				continue
			}
			f := family{e.Collective, e.Ranks, e.Nodes, e.Root, registered}
			if members[f] == nil {
				order = append(order, f)
			}
			members[f] = append(members[f], e)
		}
	}
	var list diag.List
	for _, f := range order {
		plain := f
		plain.registered = false
		if f.registered && len(members[f]) == len(members[plain]) {
			continue // no entry for registered buffers alone: the same gaps
		}
		list = append(list, gapsOf(f, members[f])...)
	}
	return list
}

// gapsOf warns of gaps in one family.
func gapsOf(f family, members []*Entry) diag.List {
	var list diag.List
	sorted := slices.Clone(members)
	slices.SortStableFunc(sorted, func(a, b *Entry) int { return int(min(max(a.MinBytes-b.MinBytes, -1), 1)) })
	last := sorted[0]
	for _, e := range sorted[1:] {
		if last.MaxBytes < OpenEnd && e.MinBytes > last.MaxBytes+1 {
			gap := Entry{MinBytes: last.MaxBytes + 1, MaxBytes: e.MinBytes - 1}
			list = append(list, diag.Warningf(e.Pos(), CodeGap, "no entry serves %v for %s", f, gap.Range()).
				Note(last.Pos(), "%s ends before", last.Name))
		}
		if e.MaxBytes > last.MaxBytes {
			last = e
		}
	}
	return list
}

// missingRanks warns of powers of two between the numbers of ranks that a collective has.
func (t *Table) missingRanks() diag.List {
	var list diag.List
	for _, c := range Collectives() {
		var have []int32
		var first *Entry
		for i := range t.Entries {
			if e := &t.Entries[i]; e.Collective == c && e.Nodes == 1 {
				have = append(have, e.Ranks)
				if first == nil {
					first = e
				}
			}
		}
		if first == nil {
			continue
		}
		for n := int64(2); n < int64(slices.Max(have)); n *= 2 {
			if n > int64(slices.Min(have)) && !slices.Contains(have, int32(n)) {
				list = append(list, diag.Warningf(first.Pos(), CodeRanks, "%v has entries for %d and for %d ranks, and none for %d",
					c, slices.Min(have), slices.Max(have), n))
			}
		}
	}
	return list
}

// missingCollectives warns of collectives that are left to NCCL altogether, but for
// sendrecv, which always is.
func (t *Table) missingCollectives() diag.List {
	var list diag.List
	for _, c := range Collectives() {
		if c != SendRecv && !slices.ContainsFunc(t.Entries, func(e Entry) bool { return e.Collective == c }) {
			list = append(list, diag.Warningf(diag.Pos{}, CodeCollective, "%v has no entry: all its calls go to NCCL", c))
		}
	}
	return list
}
