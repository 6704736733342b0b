package mscclxml_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/ir/mscclxml"
)

// chain is a broadcast from rank 2 of three: 2 to 0 to 1, in place; out of place
// it also holds, as the root copies first.
const chain = `<gpu id="0" i_chunks="%d" o_chunks="1" s_chunks="0">
<tb id="0" send="1" recv="2" chan="0"><step s="0" type="rcs" srcbuf="o" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/></tb></gpu>
<gpu id="1" i_chunks="%d" o_chunks="1" s_chunks="0">
<tb id="0" send="-1" recv="0" chan="0"><step s="0" type="r" srcbuf="o" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/></tb></gpu>
<gpu id="2" i_chunks="1" o_chunks="1" s_chunks="0">
<tb id="0" send="0" recv="-1" chan="0"><step s="0" type="cpy" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
<step s="1" type="s" srcbuf="o" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/></tb></gpu>
`

// What a file doesn't say is concluded from its names, its shape and its result,
// in this order, and said.
func TestInference(t *testing.T) {
	everywhere, rootOnly := fmt.Sprintf(chain, 1, 1), fmt.Sprintf(chain, 0, 0)
	const head = `proto="Simple" nchunksperloop="1" ngpus="3" `
	for _, c := range []struct {
		name, file, attrs, body string
		judge                   bool
		want                    string // collective, mode, root
		notes                   string
	}{
		{"said", "f.xml", `coll="broadcast" inplace="0" root="2"`, everywhere, true, "broadcast out 2", ""},
		{"by its name", "f.xml", `name="my_Broad-Cast" inplace="1" root="2"`, everywhere, true, "broadcast in 2",
			"the file doesn't say which collective it is: broadcast, by its name"},
		{"by the file's name", "all_gather/bcast.3.xml", `name="x" inplace="1" root="2"`, everywhere, true, "broadcast in 2",
			"the file doesn't say which collective it is: broadcast, by the file's name"},
		{"the name goes before the file's", "allgather.xml", `name="broadcast" inplace="1" root="2"`, everywhere, true, "broadcast in 2",
			"the file doesn't say which collective it is: broadcast, by its name"},
		{"by its result", "f.xml", `inplace="1"`, everywhere, true, "broadcast in 2",
			"the file doesn't say which collective it is: broadcast, with it the result is right\nthe file doesn't name a root: rank 2, with it the result is right"},
		{"mode by its result", "f.xml", `coll="broadcast" root="2"`, everywhere, true, "broadcast in 2",
			"the file doesn't say whether it runs in place: in place, with it the result is right"},
		{"a wrong root is believed", "f.xml", `coll="broadcast" inplace="1" root="1"`, everywhere, true, "broadcast in 1", ""},
		{"root by its result", "f.xml", `coll="broadcast" inplace="0"`, everywhere, true, "broadcast out 2",
			"the file doesn't name a root: rank 2, with it the result is right"},
		{"root by its buffer", "f.xml", `coll="broadcast" inplace="0"`, rootOnly, false, "broadcast out 2",
			"the file doesn't name a root: rank 2, by its shape"},
		{"root by what it receives", "f.xml", `coll="broadcast" inplace="0"`, everywhere, false, "broadcast out 2",
			"the file doesn't name a root: rank 2, by its shape"},
		{"nothing holds", "f.xml", `coll="reduce"`, everywhere, true, "reduce out 1",
			"the file doesn't say whether it runs in place: out of place, for want of a better one: the result is right with none of those tried\n" +
				"the file doesn't name a root: rank 1, for want of a better one: the result is right with none of those tried"},
		{"without a judge", "f.xml", `coll="broadcast"`, everywhere, false, "broadcast in 2",
			"the file doesn't say whether it runs in place: in place, by its shape\nthe file doesn't name a root: rank 2, by its shape"},
		{"no clue", "f.xml", `inplace="1"`, strings.ReplaceAll(everywhere, `type="cpy" srcbuf="i" srcoff="0"`, `type="re" srcbuf="i" srcoff="0"`), true, "", ""},
	} {
		o := mscclxml.ReadOptions{File: c.file}
		if c.judge {
			o.Holds = holds(t)
		}
		im, err := mscclxml.Read(strings.NewReader(algoOf(head+c.attrs, c.body)), o)
		if c.want == "" {
			const want = "f.xml:1:1: the file doesn't say which collective it is, and its result is that of none"
			if err == nil || err.Error() != want {
				t.Errorf("%s: got %v, want %s", c.name, err, want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		coll := im.Programs[0].Coll
		mode := "out"
		if coll.InPlace {
			mode = "in"
		}
		if got := fmt.Sprintf("%s %s %d", coll, mode, coll.Root); got != c.want {
			t.Errorf("%s: got %s, want %s; notes %v", c.name, got, c.want, im.Notes)
		}
		var notes []string
		for _, n := range im.Notes {
			if n.Severity != diag.Info || n.Code != mscclxml.CodeInferred {
				t.Errorf("%s: got %v", c.name, n)
			}
			notes = append(notes, n.Text)
		}
		if diff := cmp.Diff(c.notes, strings.Join(notes, "\n")); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", c.name, diff)
		}
	}
}

// A name with several collectives in it is the longest of them.
func TestNamedCollectives(t *testing.T) {
	for name, want := range map[string]string{
		"allreduce_ring": "allreduce", "AllReduce.A": "allreduce", "all-reduce": "allreduce", "reduce_scatter": "reduce_scatter",
		"reducescatter.A.n1": "reduce_scatter", "reduce-tree": "reduce", "Allgather(n=16)": "allgather", "all to all": "alltoall",
		"bcast": "broadcast", "gather": "gather", "scatter": "scatter", "alltonext_in": "alltonext",
	} {
		// Two ranks with nothing to do: the collective is all that matters.
		file := algoOf(fmt.Sprintf(`name=%q proto="LL" nchunksperloop="2" ngpus="2" inplace="0" root="0"`, name), `<gpu id="0"/><gpu id="1"/>`)
		if got := read(t, file, mscclxml.Plain).Programs[0].Coll.String(); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// copied is an allgather of two ranks whose own chunks copy elements put in place.
func copied(inplace int, first string) string {
	attrs := strings.Replace(strings.Replace(two, "allreduce", "allgather", 1), `inplace="1"`, fmt.Sprintf(`inplace="%d"`, inplace), 1)
	tb := func(peer int, mine, theirs int) string {
		return fmt.Sprintf(`<tb id="0" send="%d" recv="%d" chan="0">
<step s="0" type="s" srcbuf="o" srcoff="%d" dstbuf="o" dstoff="%d" cnt="1" depid="-1" deps="-1" hasdep="0"/>
<step s="1" type="r" srcbuf="o" srcoff="%d" dstbuf="o" dstoff="%d" cnt="1" depid="-1" deps="-1" hasdep="0"/>
</tb>
`, peer, peer, mine, mine, theirs, theirs)
	}
	return algoOf(strings.Replace(attrs, `outofplace="0"`, fmt.Sprintf(`outofplace="%d"`, 1-inplace), 1),
		`<gpu id="0" i_chunks="1" o_chunks="2" s_chunks="2"><copy i_off="0" o_off="0"/>`+first+tb(1, 0, 1)+"</gpu>\n"+
			`<gpu id="1" i_chunks="1" o_chunks="2" s_chunks="0">`+tb(0, 1, 0)+`<copy i_off="0" o_off="1"/></gpu>`+"\n")
}

// SCCL's copy elements run before the first step that touches what they write.
func TestCopies(t *testing.T) {
	im := read(t, copied(0, ""), mscclxml.Plain)
	const want = "0.0 s o[0] x1 to 1 at o[0] wait 1:0\n0.1 r -> o[1] x1 from 1 at o[1]\n1.0 cpy i[0] -> o[0] x1 post"
	if diff := cmp.Diff(want, steps(im.Programs[0])); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if rep := check(t, im.Programs[0]); !rep.OK {
		t.Errorf("got %v", rep.Messages)
	}
	if got, want := im.Notes.Error(), "f.xml:1:1: info: copy elements: they run as steps, before anything that touches what they write"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}

	// In place they copy onto themselves.
	im = read(t, copied(1, ""), mscclxml.Plain)
	const inPlace = "0.0 s o[0] x1 to 1 at o[0]\n0.1 r -> o[1] x1 from 1 at o[1]"
	if diff := cmp.Diff(inPlace, steps(im.Programs[0])); diff != "" {
		t.Errorf("in place (-want +got):\n%s", diff)
	}

	// A first step that waits already gets a nop before it, and what waits for its
	// thread block counts that; one that touches nothing copied is left alone.
	more := local(1, "cpy o0 s0 1 2 0 0; cpy s0 s1 1 -1 -1 1") + local(2, "cpy s1 s0 1 -1 -1 1; cpy s1 s0 1 1 1 0")
	im = read(t, copied(0, more), mscclxml.Plain)
	const moved = "0.0 s o[0] x1 to 1 at o[0] wait 3:0\n0.1 r -> o[1] x1 from 1 at o[1]" +
		"\n1.0 nop wait 3:0\n1.1 cpy o[0] -> s[0] x1 wait 2:0\n1.2 cpy s[0] -> s[1] x1 post" +
		"\n2.0 cpy s[1] -> s[0] x1 post\n2.1 cpy s[1] -> s[0] x1 wait 1:2\n3.0 cpy i[0] -> o[0] x1 post"
	if diff := cmp.Diff(moved, steps(im.Programs[0])); diff != "" {
		t.Errorf("moved (-want +got):\n%s", diff)
	}

	// The runtimes ignore them, and the result is wrong.
	im = read(t, strings.Replace(copied(0, ""), `></gpu>`, ">\n</gpu>", 1), mscclxml.Executor)
	if rep := check(t, im.Programs[0]); rep.OK || verdict(rep) != "fail" {
		t.Errorf("as executor: got %v, want a wrong result", rep.Messages)
	}

	_, err := mscclxml.Read(strings.NewReader(copied(0, `<copy i_off="1" o_off="0"/>`)), mscclxml.ReadOptions{File: "f.xml"})
	if want := "f.xml:2:79: gpu 0: copy of input 1 to output 0: allgather has 1 and 2 chunks there"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// A custom collective has no known result; all that it leaves in outputs matters.
func TestCustom(t *testing.T) {
	file := algoOf(strings.Replace(two, "allreduce", "custom", 1), exchange)
	p := read(t, file, mscclxml.Plain).Programs[0]
	if p.Coll.Kind != ir.Custom || !p.Coll.Custom.Open || p.GPUs[0].Input != 2 || p.GPUs[1].Output != 2 {
		t.Errorf("got %+v, %+v", p.Coll, p.GPUs)
	}
	if rep := check(t, p); !rep.OK {
		t.Errorf("got %v", rep.Messages)
	}
	// This project's own files keep the lengths.
	file = strings.NewReplacer("<algo ", `<algo target="plain" `, `inplace="1" outofplace="0"`, `inplace="0" outofplace="1"`, `o_chunks="2"`, `o_chunks="3"`).Replace(file)
	p = read(t, file, mscclxml.Plain).Programs[0]
	if p.GPUs[0].Input != 2 || p.GPUs[1].Output != 3 {
		t.Errorf("got %+v", p.GPUs)
	}
}

// Gather and scatter count what one rank gives or gets, except in this project's
// own files.
func TestPerRankSizes(t *testing.T) {
	for name, want := range map[string]string{"": "2/4 window 0-2048", `target="rccl" `: "2/4 window 0-2048", `target="plain" `: "1/2 window 0-1024"} {
		file := algoOf(name+strings.Replace(two, "allreduce", `gather" root="0`, 1), `<gpu id="0" i_chunks="2" o_chunks="4" s_chunks="0"/><gpu id="1" i_chunks="2" o_chunks="0" s_chunks="0"/>`)
		p := read(t, file, mscclxml.Plain).Programs[0]
		if got := fmt.Sprintf("%d/%d window %d-%d", p.Coll.InputChunks(1), p.Coll.OutputChunks(0), p.MinBytes, p.MaxBytes); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}
