package table

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/mscclsh/mscclsh/runtime/cuda"
)

// writer lays out a file: the header, the entries, the programs, then strings and
// tables, each once.
type writer struct {
	body []byte // from the end of the header on
	at   map[string]uint64
}

// Encode is the table as a file. Equal tables give equal bytes.
func (t *Table) Encode() ([]byte, error) {
	if len(t.Entries) > math.MaxInt32 || len(t.Programs) > math.MaxInt32 {
		return nil, fmt.Errorf("table: %d entries and %d programs are more than a file holds", len(t.Entries), len(t.Programs))
	}
	var h cHeader
	h.Entries, h.Programs, h.MadeBy = layout(int64(len(t.Entries)), int64(len(t.Programs)))
	w := &writer{body: make([]byte, h.MadeBy-headerBytes), at: map[string]uint64{}}
	h.Version, h.HeaderBytes, h.ABI = version, headerBytes, t.ABI
	h.NEntries, h.NPrograms = uint32(len(t.Entries)), uint32(len(t.Programs))
	copy(h.Magic[:], magic)
	w.text(t.MadeBy)
	for i := range t.Entries {
		w.put(int(h.Entries)-headerBytes+i*entryBytes, w.entry(&t.Entries[i]))
	}
	for i := range t.Programs {
		w.put(int(h.Programs)-headerBytes+i*progBytes, w.program(&t.Programs[i]))
	}
	h.FileBytes, h.Digest = uint64(headerBytes+len(w.body)), digest(w.body)
	return append(encoded(&h), w.body...), nil
}

// layout tells where entries, programs and the first string, the version of mscclsh,
// begin: one after the other. Of none the offset is 0.
func layout(nEntries, nPrograms int64) (entries, programs, madeBy uint64) {
	at := int64(headerBytes)
	if nEntries > 0 {
		entries = uint64(at)
		at = roundUp(at + nEntries*entryBytes)
	}
	if nPrograms > 0 {
		programs = uint64(at)
		at = roundUp(at + nPrograms*progBytes)
	}
	return entries, programs, uint64(at)
}

func roundUp(n int64) int64 { return (n + align - 1) / align * align }

// encoded is a structure as the file has it.
func encoded(structure any) []byte {
	var b bytes.Buffer
	_ = binary.Write(&b, binary.LittleEndian, structure) // all fields have a fixed size, and a buffer takes everything
	return b.Bytes()
}

// put writes a structure into its place in the body.
func (w *writer) put(at int, structure any) { copy(w.body[at:], encoded(structure)) }

// blob adds bytes to the file and tells where they are; no bytes are at 0.
func (w *writer) blob(data []byte) uint64 {
	if len(data) == 0 {
		return 0
	}
	if at, ok := w.at[string(data)]; ok {
		return at
	}
	at := uint64(headerBytes + len(w.body))
	w.at[string(data)] = at
	w.body = append(w.body, data...)
	w.body = append(w.body, make([]byte, roundUp(int64(len(w.body)))-int64(len(w.body)))...)
	return at
}

// text adds a string.
func (w *writer) text(s string) uint64 { return w.blob(append([]byte(s), 0)) }

func (w *writer) entry(e *Entry) *cEntry {
	c := &cEntry{Name: w.text(e.Name), Source: w.text(e.Source), MinBytes: uint64(e.MinBytes), MaxBytes: uint64(e.MaxBytes),
		Multiple: e.Multiple, Alignment: e.Alignment, Collective: int32(e.Collective), Ranks: e.Ranks, Nodes: e.Nodes,
		Priority: e.Priority, Root: e.Root, DTypes: uint32(e.DTypes), Ops: uint32(e.Ops), Memory: int32(e.Memory),
		Threads: e.Threads, MaxBlocks: e.MaxBlocks, InPlace: e.InPlace, OutOfPlace: e.OutOfPlace, Unit: e.Unit}
	if e.Mixable {
		c.Mixable = 1
	}
	return c
}

func (w *writer) program(p *Program) *cProgram {
	c := &cProgram{Title: w.text(p.Title), NSteps: int64(len(p.Tables.Steps) / cuda.StepWords), NDeps: int64(len(p.Tables.Deps) / cuda.DepWords),
		NDivides: int64(len(p.Tables.Divides) / cuda.DivideWords), SlotBytes: p.SlotBytes, CountChunks: p.CountChunks,
		ScratchChunks: p.ScratchChunks, MaxRegime: p.MaxRegime, Ranks: p.Ranks, TBsTotal: int32(len(p.Tables.StepsPerTB)),
		Slots: p.Slots, Protocol: int32(p.Protocol)}
	if p.One != nil {
		c.TBsTotal = int32(len(p.One.Blocks) / cuda.SpanWords)
		c.One = w.blob(encoded(w.one(p.One)))
	}
	for i, words := range p.arrays() {
		c.Tables[i] = w.blob(wordBytes(*words))
	}
	return c
}

func (w *writer) one(o *cuda.OneTables) *cOne {
	c := &cOne{NOps: int64(len(o.Ops) / cuda.OpWords), NOperands: int64(len(o.Operands) / cuda.OperandWords), NRefs: int64(len(o.Refs)),
		AllChannels: int64(len(o.Channels) / cuda.ChannelWords), AllSemaphores: int64(len(o.Semaphores)),
		Alignment: o.Alignment, Threads: o.Threads}
	if o.Packets {
		c.Packets = 1
	}
	if o.DoubleScratch {
		c.DoubleScratch = 1
	}
	for i, words := range oneArrays(o) {
		c.Tables[i] = w.blob(wordBytes(*words))
	}
	return c
}
