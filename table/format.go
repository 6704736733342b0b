package table

import (
	"encoding/binary"
	"hash/fnv"
	"unsafe"

	"github.com/mscclsh/mscclsh/runtime/cuda"
)

// What runtime/nccl/include/mscclsh_table.h says of the file.
const (
	magic   = "MSCCLTAB"
	version = 2

	align       = 16  // of all offsets
	headerBytes = 112 // mscclsh_table_header
	entryBytes  = 112 // mscclsh_table_entry
	progBytes   = 152 // mscclsh_table_program
	oneBytes    = 120 // mscclsh_table_one
)

// The structures of mscclsh_table.h, field by field.
type (
	cHeader struct {
		Magic                [8]byte
		Version, HeaderBytes uint32
		FileBytes, Digest    uint64
		Entries, Programs    uint64
		NEntries, NPrograms  uint32
		ABI, Zero            uint32
		MadeBy               uint64
		Zeros                [5]uint64
	}
	cEntry struct {
		Name, Source               uint64
		MinBytes, MaxBytes         uint64
		Multiple, Alignment        int64
		Collective, Ranks, Nodes   int32
		Priority, Root             int32
		DTypes, Ops                uint32
		Memory, Threads, MaxBlocks int32
		InPlace, OutOfPlace        int32
		Mixable, Unit              int32
		Zero                       [2]int32
	}
	cProgram struct {
		Tables                     [8]uint64 // tbs, steps_per_tb, steps, deps, chunks, base_buf, base_chunk, divides
		Title                      uint64
		NSteps, NDeps, NDivides    int64
		SlotBytes                  int64
		CountChunks, ScratchChunks int64
		MaxRegime                  int64
		Ranks, TBsTotal            int32
		Slots, Protocol            int32
		One                        uint64
	}
	cOne struct {
		Tables                     [8]uint64 // blocks, n_channels, channels, n_semaphores, semaphores, ops, operands, refs
		NOps, NOperands, NRefs     int64
		AllChannels, AllSemaphores int64
		Packets, DoubleScratch     int32
		Alignment, Threads         int32
	}
)

// arrays are a program's tables in the order of the file.
func (p *Program) arrays() [8]*[]int32 {
	t := &p.Tables
	return [8]*[]int32{&t.TBs, &t.StepsPerTB, &t.Steps, &t.Deps, &t.Chunks, &t.BaseBuf, &t.BaseChunk, &t.Divides}
}

// oneArrays are the tables of a one-sided program in the order of the file.
func oneArrays(o *cuda.OneTables) [8]*[]int32 {
	return [8]*[]int32{&o.Blocks, &o.NChannels, &o.Channels, &o.NSemaphores, &o.Semaphores, &o.Ops, &o.Operands, &o.Refs}
}

// digest is that of a file's bytes after the header.
func digest(body []byte) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(body) // a hash takes everything
	return h.Sum64()
}

// littleEndian says that memory holds words as the file does.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// wordBytes are words as the file has them.
func wordBytes(words []int32) []byte {
	if len(words) == 0 {
		return nil
	}
	if littleEndian {
		return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 4*len(words))
	}
	b := make([]byte, 0, 4*len(words))
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, uint32(w))
	}
	return b
}
