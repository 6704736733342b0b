package table

import (
	"encoding/binary"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime/cuda"
)

// small is a table of two entries that share a program of two ranks without steps.
func small() *Table {
	p := Program{Title: "nothing", Ranks: 2, Protocol: ir.LL, Slots: 8, SlotBytes: 4096, CountChunks: 2, ScratchChunks: 1, MaxRegime: 71,
		Tables: cuda.Tables{TBs: []int32{1, 0}, StepsPerTB: []int32{1}, Steps: make([]int32, cuda.StepWords), Chunks: []int32{2, 4, 1, 2, 4, 0},
			BaseBuf: []int32{0, 1, 2, 0, 1, 2}, BaseChunk: make([]int32, 6)}}
	e := Entry{Name: "one", Source: "t.star:3", Collective: AllGather, Ranks: 2, Nodes: 1, Root: ir.None, MaxBytes: OpenEnd, Multiple: 2, Unit: 1, Alignment: 1,
		DTypes: AllDTypes(), Ops: NoOps, MaxBlocks: 1, InPlace: ir.None}
	two := e
	two.Name, two.MinBytes, two.Source = "two", 4096, "t.star:4"
	return &Table{MadeBy: "test", ABI: cuda.ABI, Entries: []Entry{e, two}, Programs: []Program{p}}
}

// smallOne is small with a one-sided program, of one operation that lets threads meet.
func smallOne() *Table {
	x := small()
	p := &x.Programs[0]
	p.Protocol, p.Slots, p.SlotBytes, p.MaxRegime, p.ScratchChunks = ir.Simple, 0, 0, 1, 2
	p.Tables.StepsPerTB, p.Tables.Steps = nil, nil
	op := make([]int32, cuda.OpWords)
	op[13] = 1 // of one part
	p.One = &cuda.OneTables{Blocks: []int32{0, 1}, NChannels: []int32{0, 1}, Channels: []int32{int32(ir.ChannelMemory), 0, ir.None, 0},
		NSemaphores: []int32{1, 0}, Semaphores: []int32{3}, Ops: op, Operands: []int32{1, 2, 0, 1, 0, 0}, DoubleScratch: true, Alignment: 16, Threads: 64}
	for i := range x.Entries {
		x.Entries[i].Unit = 16
	}
	return x
}

// file is a table as bytes.
func file(t rapid.TB, x *Table) []byte {
	data, err := x.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// reseal makes the digest right again, and the size.
func reseal(data []byte) []byte {
	binary.LittleEndian.PutUint64(data[16:], uint64(len(data)))
	binary.LittleEndian.PutUint64(data[24:], digest(data[headerBytes:]))
	return data
}

// Offsets in the file of small: the header has 112 bytes, two entries 112 each, one
// program 152, rounded up to 160.
const (
	entry0   = headerBytes
	entry1   = headerBytes + entryBytes
	program0 = headerBytes + 2*entryBytes
)

// Every field that can be wrong is found, and said in one sentence.
func TestCorrupt(t *testing.T) {
	put32 := func(at int, v int32) func([]byte) []byte {
		return func(b []byte) []byte {
			binary.LittleEndian.PutUint32(b[at:], uint32(v))
			return reseal(b)
		}
	}
	put64 := func(at int, v int64) func([]byte) []byte {
		return func(b []byte) []byte {
			binary.LittleEndian.PutUint64(b[at:], uint64(v))
			return reseal(b)
		}
	}
	for _, c := range []struct {
		name   string
		change func([]byte) []byte
		want   string
	}{
		{"empty", func([]byte) []byte { return nil }, "it has 0 bytes, the header alone has 112"},
		{"cut", func(b []byte) []byte { return b[:len(b)-1] }, "says it has"},
		{"longer", func(b []byte) []byte { return append(b, 0) }, "says it has"},
		{"magic", put32(0, 0), "it doesn't begin with MSCCLTAB"},
		{"version", put32(8, 1), "its format has version 1, want 2"},
		{"header", put32(12, 96), "its header has 96 bytes, want 112"},
		{"digest", func(b []byte) []byte { b[len(b)-1] ^= 1; return b }, "its digest is"},
		{"header's zero", put32(60, 1), "fields of the header that must be 0 are not"},
		{"header's zeros", put64(72, 1), "fields of the header that must be 0 are not"},
		{"maker", put64(64, 8), "lie at 112, 336 and 496, and it says 112, 336 and 8"},
		{"interface", put32(56, 99), "its programs are laid out for version 99 of the runtime's interface, and this mscclsh has version"},
		{"an entry less", put32(48, 1), "with 1 entries and 1 programs they and the version of mscclsh lie at 112, 224 and 384, and it says 112, 336 and 496"},
		{"no entries", put32(48, 0), "with 0 entries and 1 programs"},
		{"a program more", put32(52, 2), "with 2 entries and 2 programs they and the version of mscclsh lie at 112, 336 and 640, and"},
		{"entries beyond", put64(32, 1<<40), "and it says 1099511627776, 336"},
		{"entries in the header", put64(32, 16), "and it says 16, 336"},
		{"entries unaligned", put64(32, 113), "and it says 113, 336"},
		{"too many entries", put32(48, -1), "it says it has 4294967295 entries"},
		{"programs beyond", put64(40, 1<<62), "and it says 112, 4611686018427387904 and 496"},
		{"name", put64(entry0, 1<<20), "entry 0: a string at offset 1048576"},
		{"name that is none", put64(entry0, program0), "entry 0: the "},
		{"source", put64(entry0+8, 3), "entry 0: a string at offset 3"},
		{"bytes", put64(entry0+16, -1), "entry 0: from 18446744073709551615"},
		{"empty range", put64(entry1+24, 5), "entry 1: from 4096 to 5 bytes"},
		{"multiple", put64(entry0+32, 0), "entry 0: counts in multiples of 0"},
		{"another multiple", put64(entry0+32, 4), "entry 0: counts in multiples of 4, its program cuts them into 2"},
		{"alignment", put64(entry0+40, 24), "at an alignment of 24 bytes"},
		{"collective", put32(entry0+48, 9), "entry 0: collective 9 is not known"},
		{"ranks", put32(entry0+52, 3), "entry 0: 3 ranks, its program has 2"},
		{"nodes", put32(entry0+56, 3), "entry 0: 2 ranks on 3 nodes"},
		{"priority", put32(entry1+60, 1), "entries 0 and 1 are not in their order"},
		{"root", put32(entry0+64, 0), "entry 0: root 0 of a allgather on 2 ranks"},
		{"dtypes", put32(entry0+68, 1<<12), "entry 0: data types 0x1000"},
		{"no dtypes", put32(entry0+68, 0), "entry 0: data types 0x0"},
		{"ops", put32(entry0+72, 1), "entry 0: operations 0x1 of a allgather"},
		{"memory", put32(entry0+76, 2), "entry 0: memory 2 is not known"},
		{"windows for LL", put32(entry0+76, 1), "entry 0: memory windows with a program of protocol LL"},
		{"threads", put32(entry0+80, 4096), "entry 0: 1 thread blocks of 4096 threads"},
		{"blocks", put32(entry0+84, 7), "entry 0: 7 thread blocks, its programs have 1"},
		{"program index", put32(entry0+92, 1), "entry 0: program 1 of 1"},
		{"no program", put32(entry0+92, -1), "entry 0: it has no program"},
		{"two that can't meet", put32(entry0+88, 0), "entry 0: it has two programs that can't meet"},
		{"mixable", put32(entry0+96, 1), "entry 0: it mixes places and has no two programs"},
		{"mixable 2", put32(entry0+96, 2), "entry 0: fields that must be 0 are not"},
		{"unit", put32(entry0+100, 0), "entry 0: chunks in multiples of 0 bytes"},
		{"another unit", put32(entry0+100, 16), "entry 0: chunks in multiples of 16 bytes, of its program in multiples of 1"},
		{"entry's zero", put32(entry0+108, 1), "entry 0: fields that must be 0 are not"},
		{"same name", func(b []byte) []byte { copy(b[entry1:entry1+8], b[entry0:entry0+8]); return reseal(b) }, `two entries are called "one"`},
		{"table beyond", put64(program0+16, 1<<30), "program 0: table 2: 1 elements of 48 bytes"},
		{"title", put64(program0+64, 1), "program 0: a string at offset 1"},
		{"steps", put64(program0+72, 2), "program 0: "},
		{"huge steps", put64(program0+72, 1<<60), "program 0: table 2"},
		{"negative deps", put64(program0+80, -1), "program 0: table 3: -1 elements"},
		{"deps that there are none of", put64(program0+24, 112), "program 0: table 3: no elements at offset 112, want offset 0"},
		{"many entries beyond", func(b []byte) []byte {
			binary.LittleEndian.PutUint32(b[48:], 1000) // with offsets to match: 112000 bytes of entries, 160 of programs
			binary.LittleEndian.PutUint64(b[40:], 112+112000)
			binary.LittleEndian.PutUint64(b[64:], 112+112000+160)
			return reseal(b)
		}, "lie inside the file"},
		{"slot bytes", put64(program0+96, 0), "program 0: 8 slots of 0 bytes"},
		{"count chunks", put64(program0+104, 0), "program 0: 0 chunks of the count"},
		{"scratch", put64(program0+112, 5), "program 0: 5 chunks of scratch, its tables have 1"},
		{"regime", put64(program0+120, 0), "program 0: 2 chunks of the count, 1 of scratch, 0 in a message"},
		{"program's ranks", put32(program0+128, 0), "program 0: 0 ranks"},
		{"thread blocks", put32(program0+132, 2), "program 0: 2 thread blocks and 1 steps, its tables have 1 and 1"}, // the second is padding: no steps
		{"no thread blocks", put32(program0+132, 0), "program 0: table 1: no elements at offset"},
		{"slots", put32(program0+136, 0), "program 0: 0 slots of 4096 bytes"},
		{"protocol", put32(program0+140, 4), "program 0: protocol 4 is not known"},
		{"Direct with slots", put32(program0+140, 3), "program 0: protocol Direct has no slots"},
		{"one-sided with slots", put32(program0+144, 112), "program 0: it is one-sided, and has 8 slots of 4096 bytes, 71 chunks in a message, 1 steps and 0 dependencies"},
	} {
		_, err := Decode(c.change(slices.Clone(file(t, small()))))
		if err == nil || !strings.HasPrefix(err.Error(), "this is no valid table of algorithms: ") || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

// No byte can change without being noticed, whatever it changes to: the digest is of what
// follows the header, and the header has no field that isn't settled by others.
func TestEveryByteCounts(t *testing.T) {
	none := small()
	none.Entries, none.Programs = nil, nil
	for _, x := range []*Table{small(), smallOne(), none} {
		data := file(t, x)
		for i := range data {
			right := data[i]
			for v := range 256 {
				if data[i] = byte(v); byte(v) == right {
					continue
				}
				if _, err := Decode(data); err == nil {
					t.Errorf("byte %d of a table of %d entries can be %d instead of %d", i, len(x.Entries), v, right)
				}
			}
			data[i] = right
		}
		for n := range data {
			if _, err := Decode(data[:n]); err == nil {
				t.Errorf("%d bytes of %d are a table", n, len(data))
			}
		}
	}
}

// What is written is read as it was, and the same tables give the same bytes.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawTable(t)
		if rapid.Bool().Draw(t, "one-sided") {
			x = smallOne()
			x.Programs[0].One.Threads = rapid.Int32Range(1, 1024).Draw(t, "threads")
			x.Programs[0].One.Semaphores[0] = rapid.Int32().Draw(t, "semaphore")
		}
		data := file(t, x)
		got, err := Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, x) {
			t.Fatalf("got %+v, want %+v", got, x)
		}
		if again := file(t, got); !slices.Equal(again, data) {
			t.Fatal("the same table has other bytes")
		}
	})
}

// drawTable makes a sound table of programs without meaning.
func drawTable(t *rapid.T) *Table {
	x := &Table{MadeBy: rapid.StringMatching(`[ -~]{0,20}`).Draw(t, "made by"), ABI: cuda.ABI}
	words := func(n int, name string) []int32 {
		if n == 0 {
			return nil
		}
		return rapid.SliceOfN(rapid.Int32(), n, n).Draw(t, name)
	}
	for range rapid.IntRange(1, 4).Draw(t, "programs") {
		ranks := rapid.IntRange(1, 4).Draw(t, "ranks")
		p := Program{Title: rapid.StringMatching(`[a-zä ]{0,9}`).Draw(t, "title"), Ranks: int32(ranks), Protocol: rapid.SampledFrom([]ir.Protocol{ir.Simple, ir.LL, ir.LL128, ir.Direct}).Draw(t, "protocol"),
			CountChunks: int64(rapid.IntRange(1, 9).Draw(t, "chunks")), MaxRegime: 71}
		if p.Protocol != ir.Direct {
			p.Slots, p.SlotBytes = int32(rapid.IntRange(1, 9).Draw(t, "slots")), 4096
		}
		steps := 0
		for range ranks {
			n := rapid.IntRange(0, 2).Draw(t, "blocks")
			p.Tables.TBs = append(p.Tables.TBs, int32(n))
			for range n {
				k := rapid.IntRange(0, 2).Draw(t, "steps")
				p.Tables.StepsPerTB = append(p.Tables.StepsPerTB, int32(k))
				steps += k
			}
		}
		p.Tables.Steps = words(steps*cuda.StepWords, "step")
		p.Tables.Deps = words(rapid.IntRange(0, 2).Draw(t, "deps")*cuda.DepWords, "dep")
		p.Tables.Divides = words(rapid.IntRange(0, 2).Draw(t, "divides")*cuda.DivideWords, "divide")
		p.Tables.Chunks, p.Tables.BaseBuf, p.Tables.BaseChunk = words(3*ranks, "sizes"), words(3*ranks, "bases"), words(3*ranks, "places")
		for r := range ranks {
			p.Tables.Chunks[3*r+2] = int32(rapid.IntRange(0, 9).Draw(t, "scratch"))
			p.ScratchChunks = max(p.ScratchChunks, int64(p.Tables.Chunks[3*r+2]))
		}
		x.Programs = append(x.Programs, p)
	}
	for i := range rapid.IntRange(0, 6).Draw(t, "entries") {
		x.Entries = append(x.Entries, drawEntry(t, x, i))
	}
	slices.SortFunc(x.Entries, before)
	return x
}

func drawEntry(t *rapid.T, x *Table, i int) Entry {
	at := rapid.IntRange(0, len(x.Programs)-1).Draw(t, "program")
	p := &x.Programs[at]
	e := Entry{Name: "e" + strings.Repeat("x", i), Source: "ä.star:" + strings.Repeat("1", i+1), Collective: rapid.SampledFrom(Collectives()).Draw(t, "collective"),
		Ranks: p.Ranks, Nodes: 1, Root: ir.None, Priority: int32(rapid.IntRange(-2, 2).Draw(t, "priority")), MinBytes: rapid.Int64Range(0, 1<<20).Draw(t, "from"),
		MaxBytes: OpenEnd, Multiple: p.CountChunks, Unit: 1, Alignment: 1 << rapid.IntRange(0, 8).Draw(t, "alignment"), DTypes: DTypes(rapid.IntRange(1, 1<<12-1).Draw(t, "dtypes")),
		Ops: NoOps, Threads: int32(32 * rapid.IntRange(0, 16).Draw(t, "threads")), InPlace: ir.None, OutOfPlace: int32(at)}
	if p.Protocol == ir.Direct {
		e.Memory = Windows
	}
	if e.Collective.Reduces() {
		e.Ops = Ops(rapid.IntRange(1, 1<<5-1).Draw(t, "ops"))
	}
	if e.Collective.Rooted() {
		e.Root = int32(rapid.IntRange(-1, int(p.Ranks)-1).Draw(t, "root"))
	}
	if rapid.Bool().Draw(t, "in place") {
		e.InPlace, e.OutOfPlace = e.OutOfPlace, ir.None
		if rapid.Bool().Draw(t, "both") {
			e.OutOfPlace, e.Mixable = e.InPlace, e.Memory == AnyMemory
		}
	}
	for _, n := range p.Tables.TBs {
		e.MaxBlocks = max(e.MaxBlocks, n)
	}
	return e
}

// Whatever the bytes are, reading them gives a table or a sentence; a table that was read
// can be written, chosen from, linted and taken apart.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(magic))
	for _, x := range []*Table{small(), smallOne()} {
		data := file(f, x)
		f.Add(data)
		for at := headerBytes; at < len(data); at += 4 {
			changed := slices.Clone(data)
			binary.LittleEndian.PutUint32(changed[at:], 0xffffffff)
			f.Add(reseal(changed))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) >= headerBytes {
			data = reseal(slices.Clone(data)) // or nothing would get past the digest
		}
		x, err := Decode(data)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than a sentence: %v", err)
			}
			return
		}
		again, err := Decode(file(t, x))
		if err != nil || !reflect.DeepEqual(again, x) {
			t.Errorf("written and read again: %v", err)
		}
		_, _ = x.Choose(Query{Collective: AllGather, Count: 2048, Ranks: 2, Nodes: 1, Scratch: 1})
		_ = x.Lint()
		for i := range x.Entries {
			for _, inPlace := range []bool{false, true} {
				_, _ = x.Program(&x.Entries[i], inPlace) // a program that makes no sense is refused
			}
		}
	})
}
