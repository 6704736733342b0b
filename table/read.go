package table

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"unicode/utf8"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime/cuda"
)

// maxText is the longest string that a file may hold, in bytes.
const maxText = 1 << 16

// reader validates a file while it takes it apart.
type reader struct {
	data []byte
}

// Decode reads a file. Whatever isn't as mscclsh_table.h has it is an error of one
// sentence: offsets, bounds, counts, the digest, the version.
func Decode(data []byte) (*Table, error) {
	r := &reader{data}
	h, err := r.header()
	if err != nil {
		return nil, err
	}
	if err := h.places(); err != nil {
		return nil, err
	}
	t := &Table{ABI: h.ABI}
	if t.MadeBy, err = r.text(h.MadeBy); err != nil {
		return nil, bad("the version of mscclsh: %v", err)
	}
	programs, err := r.array(h.Programs, int64(h.NPrograms), progBytes)
	if err != nil {
		return nil, bad("the array of programs: %v", err)
	}
	entries, err := r.array(h.Entries, int64(h.NEntries), entryBytes)
	if err != nil {
		return nil, bad("the array of entries: %v", err)
	}
	for i := range int(h.NPrograms) {
		p, err := r.program(programs[i*progBytes:])
		if err != nil {
			return nil, bad("program %d: %v", i, err)
		}
		t.Programs = append(t.Programs, *p)
	}
	for i := range int(h.NEntries) {
		e, err := r.entry(entries[i*entryBytes:])
		if err == nil {
			err = t.fits(e)
		}
		if err != nil {
			return nil, bad("entry %d: %v", i, err)
		}
		t.Entries = append(t.Entries, *e)
	}
	return t, t.ordered()
}

func bad(format string, args ...any) error {
	return fmt.Errorf("this is no valid table of algorithms: "+format, args...)
}

// header reads and checks the first structure.
func (r *reader) header() (*cHeader, error) {
	if len(r.data) < headerBytes {
		return nil, bad("it has %d bytes, the header alone has %d", len(r.data), headerBytes)
	}
	var h cHeader
	r.structure(r.data, &h)
	switch {
	case string(h.Magic[:]) != magic:
		return nil, bad("it doesn't begin with %s", magic)
	case h.Version != version:
		return nil, bad("its format has version %d, want %d", h.Version, version)
	case h.HeaderBytes != headerBytes:
		return nil, bad("its header has %d bytes, want %d", h.HeaderBytes, headerBytes)
	case h.FileBytes != uint64(len(r.data)):
		return nil, bad("it has %d bytes and says it has %d", len(r.data), h.FileBytes)
	case h.Digest != digest(r.data[headerBytes:]):
		return nil, bad("its digest is %016x and says %016x", digest(r.data[headerBytes:]), h.Digest)
	case h.Zero != 0 || h.Zeros != [5]uint64{}:
		return nil, bad("fields of the header that must be 0 are not")
	case h.ABI != cuda.ABI:
		return nil, bad("its programs are laid out for version %d of the runtime's interface, and this mscclsh has version %d: build it anew", h.ABI, cuda.ABI)
	}
	return &h, nil
}

// places checks that entries, programs and the first string follow one another without
// gaps. The digest leaves the header out: this way no count in it can be another one
// unnoticed.
func (h *cHeader) places() error {
	if h.NEntries > math.MaxInt32 || h.NPrograms > math.MaxInt32 {
		return bad("it says it has %d entries and %d programs", h.NEntries, h.NPrograms)
	}
	entries, programs, madeBy := layout(int64(h.NEntries), int64(h.NPrograms))
	if h.Entries != entries || h.Programs != programs || h.MadeBy != madeBy {
		return bad("with %d entries and %d programs they and the version of mscclsh lie at %d, %d and %d, and it says %d, %d and %d",
			h.NEntries, h.NPrograms, entries, programs, madeBy, h.Entries, h.Programs, h.MadeBy)
	}
	return nil
}

// structure reads a structure; data is long enough.
func (r *reader) structure(data []byte, to any) {
	_ = binary.Read(bytes.NewReader(data), binary.LittleEndian, to)
}

// array is n elements of size bytes each.
func (r *reader) array(at uint64, n, size int64) ([]byte, error) {
	if n < 0 {
		return nil, fmt.Errorf("%d elements", n)
	}
	if n == 0 {
		if at != 0 {
			return nil, fmt.Errorf("no elements at offset %d, want offset 0", at)
		}
		return nil, nil
	}
	hi, need := bits.Mul64(uint64(n), uint64(size))
	if at%align != 0 || at < headerBytes || hi != 0 || at > uint64(len(r.data)) || need > uint64(len(r.data))-at {
		return nil, fmt.Errorf("%d elements of %d bytes at offset %d don't lie inside the file at a multiple of %d", n, size, at, align)
	}
	return r.data[at : at+need], nil
}

// text is the string at an offset.
func (r *reader) text(at uint64) (string, error) {
	if at%align != 0 || at < headerBytes || at >= uint64(len(r.data)) {
		return "", fmt.Errorf("a string at offset %d doesn't lie inside the file at a multiple of %d", at, align)
	}
	rest := r.data[at:min(at+maxText+1, uint64(len(r.data)))]
	end := bytes.IndexByte(rest, 0)
	switch {
	case end < 0:
		return "", fmt.Errorf("the string at offset %d has no end", at)
	case !utf8.Valid(rest[:end]):
		return "", fmt.Errorf("the string at offset %d is not UTF-8", at)
	}
	return string(rest[:end]), nil
}

// words reads n elements of w words each.
func (r *reader) words(at uint64, n, w int64) ([]int32, error) {
	data, err := r.array(at, n, 4*w)
	if err != nil || len(data) == 0 {
		return nil, err
	}
	out := make([]int32, len(data)/4)
	for i := range out {
		out[i] = int32(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return out, nil
}

// program reads one program. What its steps refer to is checked where it is loaded or
// judged.
func (r *reader) program(data []byte) (*Program, error) {
	var c cProgram
	r.structure(data, &c)
	p := &Program{Ranks: c.Ranks, Slots: c.Slots, SlotBytes: c.SlotBytes, CountChunks: c.CountChunks, ScratchChunks: c.ScratchChunks,
		MaxRegime: c.MaxRegime}
	direct, one := c.Protocol == int32(ir.Direct), c.One != 0
	switch {
	case c.Ranks < 1 || c.TBsTotal < 0:
		return nil, fmt.Errorf("%d ranks with %d thread blocks", c.Ranks, c.TBsTotal)
	case c.Protocol < 0 || c.Protocol > int32(ir.Direct):
		return nil, fmt.Errorf("protocol %d is not known", c.Protocol)
	case one && (c.Slots != 0 || c.SlotBytes != 0 || c.MaxRegime != 1 || c.NSteps != 0 || c.NDeps != 0):
		return nil, fmt.Errorf("it is one-sided, and has %d slots of %d bytes, %d chunks in a message, %d steps and %d dependencies",
			c.Slots, c.SlotBytes, c.MaxRegime, c.NSteps, c.NDeps)
	case direct && (c.Slots != 0 || c.SlotBytes != 0):
		return nil, fmt.Errorf("protocol Direct has no slots, and this program has %d of %d bytes", c.Slots, c.SlotBytes)
	case !direct && !one && (c.Slots < 1 || c.Slots > cuda.MaxSlots || c.SlotBytes < 1 || c.SlotBytes > cuda.MaxSlotBytes):
		return nil, fmt.Errorf("%d slots of %d bytes", c.Slots, c.SlotBytes)
	case c.CountChunks < 1 || c.CountChunks > math.MaxInt32 || c.ScratchChunks < 0 || c.ScratchChunks > math.MaxInt32 ||
		c.MaxRegime < 1 || c.MaxRegime > math.MaxInt32:
		return nil, fmt.Errorf("%d chunks of the count, %d of scratch, %d in a message", c.CountChunks, c.ScratchChunks, c.MaxRegime)
	}
	p.Protocol = ir.Protocol(c.Protocol)
	var err error
	if p.Title, err = r.text(c.Title); err != nil {
		return nil, err
	}
	ranks, tbs := int64(c.Ranks), int64(c.TBsTotal)
	perTB := tbs
	if one {
		perTB = 0
	}
	counts := [8]int64{ranks, perTB, c.NSteps, c.NDeps, 3 * ranks, 3 * ranks, 3 * ranks, c.NDivides}
	sizes := [8]int64{1, 1, int64(cuda.StepWords), int64(cuda.DepWords), 1, 1, 1, int64(cuda.DivideWords)}
	for i, to := range p.arrays() {
		if *to, err = r.words(c.Tables[i], counts[i], sizes[i]); err != nil {
			return nil, fmt.Errorf("table %d: %v", i, err)
		}
	}
	if one {
		if err := r.one(p, c.One, tbs); err != nil {
			return nil, err
		}
	}
	return p, p.adds(tbs, c.NSteps)
}

// adds checks that thread blocks and steps add up.
func (p *Program) adds(tbs, steps int64) error {
	haveTBs, haveSteps := int64(0), int64(0)
	for _, n := range p.Tables.TBs {
		if n < 0 {
			return fmt.Errorf("a rank has %d thread blocks", n)
		}
		haveTBs += int64(n)
	}
	for _, n := range p.Tables.StepsPerTB {
		if n < 0 {
			return fmt.Errorf("a thread block has %d steps", n)
		}
		haveSteps += int64(n)
	}
	if haveTBs != tbs || haveSteps != steps {
		return fmt.Errorf("%d thread blocks and %d steps, its tables have %d and %d", tbs, steps, haveTBs, haveSteps)
	}
	most := int32(0)
	for r := range p.Ranks {
		most = max(most, p.Tables.Chunks[3*r+2])
	}
	if int64(most)*p.scratchTimes() != p.ScratchChunks {
		return fmt.Errorf("%d chunks of scratch, its tables have %d", p.ScratchChunks, int64(most)*p.scratchTimes())
	}
	return nil
}

// entry reads one entry.
func (r *reader) entry(data []byte) (*Entry, error) {
	var c cEntry
	r.structure(data, &c)
	e := &Entry{MinBytes: int64(c.MinBytes), MaxBytes: int64(c.MaxBytes), Multiple: c.Multiple, Alignment: c.Alignment,
		Collective: Collective(c.Collective), Ranks: c.Ranks, Nodes: c.Nodes, Priority: c.Priority, Root: c.Root,
		DTypes: DTypes(c.DTypes), Ops: Ops(c.Ops), Memory: Memory(c.Memory), Threads: c.Threads, MaxBlocks: c.MaxBlocks,
		InPlace: c.InPlace, OutOfPlace: c.OutOfPlace, Mixable: c.Mixable == 1, Unit: c.Unit}
	var err error
	if e.Name, err = r.text(c.Name); err != nil {
		return nil, err
	}
	if e.Source, err = r.text(c.Source); err != nil {
		return nil, err
	}
	switch {
	case !ValidName(e.Name):
		return nil, fmt.Errorf("the name %q", e.Name)
	case c.Mixable != 0 && c.Mixable != 1 || c.Zero != [2]int32{}:
		return nil, fmt.Errorf("fields that must be 0 are not")
	}
	return e, e.sound()
}

// sound checks what can be said of an entry alone.
func (e *Entry) sound() error {
	switch {
	case !e.Collective.valid():
		return fmt.Errorf("collective %d is not known", int32(e.Collective))
	case e.Ranks < 1 || e.Nodes < 1 || e.Nodes > e.Ranks:
		return fmt.Errorf("%d ranks on %d nodes", e.Ranks, e.Nodes)
	case e.MinBytes < 0 || e.MaxBytes < 0 || e.MinBytes > e.MaxBytes:
		return fmt.Errorf("from %d to %d bytes", uint64(e.MinBytes), uint64(e.MaxBytes))
	case e.Unit < 1:
		return fmt.Errorf("chunks in multiples of %d bytes", e.Unit)
	case e.Multiple < 1 || e.Alignment < 1 || e.Alignment&(e.Alignment-1) != 0:
		return fmt.Errorf("counts in multiples of %d at an alignment of %d bytes", e.Multiple, e.Alignment)
	case e.Root < ir.None || e.Root >= e.Ranks || e.Root != ir.None && !e.Collective.Rooted():
		return fmt.Errorf("root %d of a %v on %d ranks", e.Root, e.Collective, e.Ranks)
	case e.DTypes == 0 || e.DTypes&^AllDTypes() != 0:
		return fmt.Errorf("data types %#x", uint32(e.DTypes))
	case e.Collective.Reduces() && (e.Ops == 0 || e.Ops&^AllOps() != 0) || !e.Collective.Reduces() && e.Ops != NoOps:
		return fmt.Errorf("operations %#x of a %v", uint32(e.Ops), e.Collective)
	case e.Memory != AnyMemory && e.Memory != Windows:
		return fmt.Errorf("memory %d is not known", int32(e.Memory))
	case e.Threads < 0 || e.Threads > cuda.MaxThreads || e.MaxBlocks < 0:
		return fmt.Errorf("%d thread blocks of %d threads", e.MaxBlocks, e.Threads)
	case e.InPlace == ir.None && e.OutOfPlace == ir.None:
		return fmt.Errorf("it has no program")
	case e.Memory == AnyMemory && e.InPlace != ir.None && e.OutOfPlace != ir.None && !e.Mixable:
		return fmt.Errorf("it has two programs that can't meet")
	case e.Mixable && (e.InPlace == ir.None || e.OutOfPlace == ir.None || e.Memory != AnyMemory):
		return fmt.Errorf("it mixes places and has no two programs to mix")
	}
	return nil
}

// fits checks an entry against its programs.
func (t *Table) fits(e *Entry) error {
	most := int32(0)
	for _, i := range []int32{e.InPlace, e.OutOfPlace} {
		if i == ir.None {
			continue
		}
		if i < 0 || int(i) >= len(t.Programs) {
			return fmt.Errorf("program %d of %d", i, len(t.Programs))
		}
		p := &t.Programs[i]
		switch {
		case p.Ranks != e.Ranks:
			return fmt.Errorf("%d ranks, its program has %d", e.Ranks, p.Ranks)
		case p.CountChunks != e.Multiple:
			return fmt.Errorf("counts in multiples of %d, its program cuts them into %d chunks", e.Multiple, p.CountChunks)
		case p.unit() != e.Unit:
			return fmt.Errorf("chunks in multiples of %d bytes, of its program in multiples of %d", e.Unit, p.unit())
		case p.One == nil && (p.Protocol == ir.Direct) != (e.Memory == Windows):
			return fmt.Errorf("memory %v with a program of protocol %v", e.Memory, p.Protocol)
		}
		if p.One != nil {
			if err := e.fitsOne(p); err != nil {
				return err
			}
		}
		for _, n := range p.Tables.TBs {
			most = max(most, n)
		}
	}
	if most != e.MaxBlocks {
		return fmt.Errorf("%d thread blocks, its programs have %d", e.MaxBlocks, most)
	}
	return nil
}

// ordered checks the order of the entries, which is that of choosing, and their names.
func (t *Table) ordered() error {
	names := make(map[string]bool, len(t.Entries))
	for i := range t.Entries {
		e := &t.Entries[i]
		if names[e.Name] {
			return bad("two entries are called %q", e.Name)
		}
		names[e.Name] = true
		if i > 0 && before(t.Entries[i-1], *e) >= 0 {
			return bad("entries %d and %d are not in their order", i-1, i)
		}
	}
	return nil
}
