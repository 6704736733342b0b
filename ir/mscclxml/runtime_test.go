package mscclxml_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/ir/mscclxml"
)

// What NCCL's tokenizer takes and what it doesn't; it is the same in all three.
func TestRuntimeTokenizer(t *testing.T) {
	plain := algoOf(two, exchange)
	for _, c := range []struct{ name, file, want string }{
		{"as written", plain, ""},
		{"line ends of Windows", strings.ReplaceAll(plain, "\n", "\r\n"), ""},
		{"spaces and empty lines between elements", strings.ReplaceAll(plain, "<", "\n\n   <"), ""},
		{"comments", "<!-- a b -->\n<!---->" + strings.ReplaceAll(plain, "<gpu", "<!-- tb=\"1\" --><gpu"), ""},
		{"a single quote opens", strings.ReplaceAll(plain, `="`, `='`), ""},
		{"unknown elements", strings.ReplaceAll(plain, "<tb", "<copy i_off=\"0\" o_off=\"0\"/><x><y/></x><tb"), ""},
		{"whatever ends an unknown element", strings.ReplaceAll(plain, "<tb", "<x></y><tb"), ""},
		{"a space before the end", strings.ReplaceAll(plain, `"/>`, `" />`), ""},
		{"junk after numbers", strings.ReplaceAll(plain, `"0"`, `"0k"`), ""},
		{"a name without a value", strings.ReplaceAll(plain, "<tb ", "<tb x "), ""},
		{"sections out of order", algoOf(two, exchange[strings.Index(exchange, `<gpu id="1"`):]+exchange[:strings.Index(exchange, `<gpu id="1"`)]), ""},
		{"a gpu of no rank", strings.ReplaceAll(plain, "</algo>", `<gpu id="7"><tb/></gpu></algo>`), ""},
		{"a second algo", plain + plain, ""},
		{"an attribute twice: the first counts", strings.ReplaceAll(plain, `cnt="1"`, `cnt="1" cnt="99"`), ""},

		{"a prolog", `<?xml version="1.0"?>` + "\n" + plain, "f.xml:1:21: <?xml>: got '?', want a space"},
		{"a tab between elements", strings.Replace(plain, "<gpu", "\t<gpu", 1), `f.xml:2:1: their reader takes no '\t' between elements, only spaces and line ends`},
		{"a tab between attributes", strings.Replace(plain, ` ngpus`, "\tngpus", 1), "f.xml:1:64: <algo>: got '\\t', want a space before an attribute, or '>'"},
		{"a line end between attributes", strings.Replace(plain, ` ngpus`, "\nngpus", 1), "f.xml:2:1: <algo>: got '\\n', want a space"},
		{"spaces around =", strings.Replace(plain, "ngpus=", "ngpus = ", 1), "f.xml:1:71: a value without quotes"},
		{"a single quote closes nothing", strings.ReplaceAll(plain, `"`, "'"), "f.xml:1:13: the file ends inside a value"},
		{"no quotes", strings.Replace(plain, `ngpus="2"`, "ngpus=2", 1), "f.xml:1:70: a value without quotes"},
		{"no space between attributes", strings.Replace(plain, `"a" proto`, `"a"proto`, 1), "f.xml:1:16: <algo>: got 'p', want a space"},
		{"text before", "compiled\n" + plain, "f.xml:1:1: their reader takes no 'c' between elements"},
		{"text after", plain + "ok\n", "f.xml:17:1: their reader takes no 'o' between elements"},
		{"= in a comment's first word", "<!--a=b-->" + plain, "f.xml:1:7: got '=' after \"!--a\", which is no attribute"},
		{"a mismatch", strings.Replace(plain, "</tb>", "</tc>", 1), "f.xml:7:6: </tc> ends <tb>"},
		{"no end", plain[:len(plain)-9], "f.xml:15:7: <algo> has no end"},
		{"empty", "", "f.xml:1:1: there is no <algo> element"},
		{"a long value", strings.Replace(plain, "<algo ", `<algo x="`+strings.Repeat("y", 256)+`" `, 1), "f.xml:1:10: a value of 256 bytes: their reader has room for 255"},
		{"the longest value", strings.Replace(plain, "<algo ", `<algo x="`+strings.Repeat("y", 255)+`" `, 1), ""},
		{"a long name", strings.Replace(plain, "<algo ", "<algo "+strings.Repeat("y", 255)+" ", 1), "f.xml:1:261: a name of 255 bytes or more"},
		// With 7 more, algo has 17: the last is lost, here the one that is required.
		{"too many attributes", strings.Replace(plain, "<algo ", `<algo a="" b="" c="" d="" e="" f="" g="" `, 1), "f.xml:1:1: no maxBytes"},
		{"a second space takes an attribute's place", strings.Replace(plain, "<algo ", "<algo"+strings.Repeat(" ", 7), 1), ""},
		{"too many spaces", strings.Replace(plain, "<algo ", "<algo"+strings.Repeat(" ", 8), 1), "f.xml:1:1: no maxBytes"},
	} {
		want := c.want
		_, err := mscclxml.Read(strings.NewReader(c.file), mscclxml.ReadOptions{File: "f.xml", Runtime: mscclxml.Executor})
		switch list := diag.Messages(err); {
		case want == "" && err != nil:
			t.Errorf("%s: got %v", c.name, err)
		case want != "" && (err == nil || !strings.HasPrefix(err.Error(), want) || list[0].Code != mscclxml.CodeRefused):
			t.Errorf("%s: got %v\nwant %s", c.name, err, want)
		}
	}
}

// What each parser refuses in a file that its tokenizer takes: msccl, executor,
// rccl; "" is taken.
func TestRuntimeRefusals(t *testing.T) {
	attr := func(old, new string) string { return algoOf(strings.Replace(two, old, new, 1), exchange) }
	body := func(old, new string) string { return algoOf(two, strings.Replace(exchange, old, new, 1)) }
	unfused := strings.NewReplacer(`type="rrcs"`, `type="r"`).Replace
	all := func(s string) [3]string { return [3]string{s, s, s} }
	others := func(s string) [3]string { return [3]string{"", s, s} }
	for _, c := range []struct {
		name, file string
		want       [3]string
	}{
		{"nothing", algoOf(two, exchange), [3]string{}},
		{"name", attr(`name="a" `, ""), [3]string{"no name", "", ""}},
		{"proto", attr(`proto="Simple" `, ""), all("no proto")},
		{"proto", attr(`proto="Simple"`, `proto="simple"`), all(`proto "simple", want Simple, LL or LL128`)},
		{"nchannels", attr(` nchannels="1"`, ""), all("no nchannels")},
		{"inplace", attr(` inplace="1"`, ""), all("no inplace")},
		{"outofplace", attr(` outofplace="0"`, ""), others("no outofplace")},
		{"window", attr(` minBytes="0" maxBytes="1024"`, ""), others("no minBytes; no maxBytes")},
		{"negative window", attr(`minBytes="0"`, `minBytes="-5"`), [3]string{"minBytes -5 or maxBytes 1024 is negative", "", ""}},
		{"empty window", attr(`minBytes="0"`, `minBytes="5000"`), [3]string{"minBytes 5000 is beyond maxBytes 1024", "", ""}},
		{"nthreads", attr(`name=`, `nthreads="100" name=`), [3]string{"nthreads 100 is not a multiple of 32", "", ""}},
		{"coll", attr(` coll="allreduce"`, ""), all("no coll")},
		{"reduce_scatter", attr("allreduce", "reduce_scatter"), [3]string{
			"gpu 0: i_chunks 2 and o_chunks 2 don't fit nchunksperloop 2", `no collective "reduce_scatter"`, `no collective "reduce_scatter"`}},
		{"reducescatter", attr("allreduce", "reducescatter"), [3]string{`no collective "reducescatter"`, "", ""}},
		{"custom", attr("allreduce", "custom"), others(`no collective "custom"`)},
		{"gather", attr("allreduce", "gather"), [3]string{`no collective "gather"`, "", ""}},
		{"i_chunks", body(`i_chunks="2" `, ""), all("no i_chunks; gpu 0 thread block 0 step 0: an offset beyond i_chunks, o_chunks or s_chunks")},
		{"chunks", body(`o_chunks="2"`, `o_chunks="3"`), [3]string{"gpu 0: i_chunks 2 and o_chunks 3 don't fit nchunksperloop 2", "", ""}},
		{"no chunks", body(`o_chunks="2"`, `o_chunks="0"`), [3]string{}},
		{"scratch", body(`s_chunks="0"`, `s_chunks="-1"`), all("s_chunks -1 is negative")},
		{"thread blocks", body(`<tb id="0"`, `<tb id="64"`), [3]string{"gpu 0: thread block 0 is missing", "gpu 0: thread block 0 is missing",
			"gpu 0: thread block 64, want at most 64 of them; gpu 0: thread block 0 is missing"}},
		{"a thread block twice", body("</gpu>", `<tb id="0" send="-1" recv="-1" chan="0"/></gpu>`), all("gpu 0: a second thread block 0")},
		{"chan", body(` chan="0"`, ""), all("a thread block without chan")},
		{"channel", body(`chan="0"`, `chan="40"`), [3]string{"gpu 0 thread block 0: channel 40, want 0 to 31", "gpu 0 thread block 0: channel 40, want 0 to 31", ""}},
		{"itself", body(`send="1"`, `send="0"`), all("gpu 0 thread block 0: peers 0 and 1")},
		{"no such peer", body(`send="1"`, `send="5"`), [3]string{"gpu 0 thread block 0: peers 5 and 1", "", ""}},
		{"no peer", body(`send="1"`, `send="-1"`), all("gpu 0 thread block 0: a s step, but peers -1 and 1")},
		{"s", body(`step s="0" `, "step "), all("a step without s")},
		{"step numbers", body(`step s="2"`, `step s="64"`), others("gpu 0 thread block 0: step 64, want at most 64 of them")},
		{"step numbers", body(`step s="2"`, `step s="256"`), all("")},
		{"type", body(`type="r"`, `type="ra"`), all("a type of step that it doesn't know")},
		{"buffers of no use", body(`dstbuf="i"`, `dstbuf="x"`), all("a buffer that is none of i, o and s")},
		{"cnt", body(`cnt="1"`, `cnt="72"`), all("cnt 72, want at most 71")},
		{"offsets", body(`srcoff="1"`, `srcoff="2"`), all("gpu 0 thread block 0 step 0: an offset beyond i_chunks, o_chunks or s_chunks")},
		{"hasdep", body(`hasdep="0"`, `hasdep="3"`), all("hasdep 3, want 0 or 1")},
	} {
		if c.name == "step numbers" && strings.Contains(c.file, `s="256"`) {
			c.want = [3]string{"gpu 0 thread block 0: step 256, want at most 256 of them",
				"gpu 0 thread block 0: step 256, want at most 64 of them", "gpu 0 thread block 0: step 256, want at most 64 of them"}
		}
		got := [3]string{}
		for _, r := range mscclxml.Refusals([]byte(unfused(c.file)), "f.xml") {
			got[r.Runtime-mscclxml.MSCCL] = r.Reason
			if !r.Pos.IsValid() {
				t.Errorf("%s: %s: no position", c.name, r.Runtime)
			}
		}
		if got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, strings.Join(got[:], "\n"), strings.Join(c.want[:], "\n"))
		}
	}
}

// Fused steps load in rccl, and every call that selects the file fails.
func TestRCCLHasNoKernelsForFusedSteps(t *testing.T) {
	got := mscclxml.Refusals([]byte(algoOf(two, exchange)), "f.xml")
	if len(got) != 1 || got[0].Runtime != mscclxml.RCCL || got[0].Reason != "no kernel for rrcs" || got[0].Pos.Line != 5 {
		t.Errorf("got %+v", got)
	}
}

// How the runtimes lower steps: the numbers on the left are those by which others
// wait.
func TestRuntimeLowering(t *testing.T) {
	post3 := local(1, "cpy i0 s0 1 -1 -1 1; cpy i0 s0 1 -1 -1 1; cpy i0 s0 1 -1 -1 1")
	const post = "\n1.0 cpy i[0] -> s[0] x1"
	for _, c := range []struct{ name, tbs, want string }{
		{"nops wait with the next step", local(0, "nop i-1 o-1 0 1 0 0; nop i-1 o-1 0 1 1 0; cpy i0 s1 1 1 2 0") + post3,
			"0.0 nop wait 1:0\n0.1 nop wait 1:1\n0.2 cpy i[0] -> s[1] x1 wait 1:2" +
				"\n1.0 cpy i[0] -> s[0] x1 post\n1.1 cpy i[0] -> s[0] x1 post\n1.2 cpy i[0] -> s[0] x1 post"},
		{"a nop without a dependency has no number", local(0, "nop i-1 o-1 0 -1 -1 0; cpy i0 s0 1 -1 -1 1; cpy i1 s1 1 -1 -1 1") + local(1, "cpy s0 i1 1 0 1 0"),
			"0.0 cpy i[0] -> s[0] x1\n0.1 cpy i[1] -> s[1] x1 post\n1.0 cpy s[0] -> i[1] x1 wait 0:1"},
		{"nops at the end are lost", local(0, "cpy i0 s1 1 -1 -1 0; nop i-1 o-1 0 1 0 0") + local(1, "cpy i0 s0 1 -1 -1 1"),
			"0.0 cpy i[0] -> s[1] x1" + post},
		{"reduces merge, the last count is all's", local(0, "re s0 i0 2 -1 -1 0; re s1 i0 1 -1 -1 1") + local(1, "cpy s0 s1 1 0 0 0"),
			"0.0 re s[0] -> i[0] x1\n0.1 re s[1] -> i[0] x1 post\n1.0 cpy s[0] -> s[1] x1 wait 0:1"},
		{"a reduce that waits does not join", local(0, "re s0 i0 2 -1 -1 0; re s1 i0 1 1 0 0") + local(1, "cpy i0 s0 1 -1 -1 1"),
			"0.0 re s[0] -> i[0] x2\n0.1 re s[1] -> i[0] x1 wait 1:0" + post + " post"},
		{"a reduce that posts ends the group", local(0, "re s0 i0 2 -1 -1 1; re s1 i0 1 -1 -1 0"),
			"0.0 re s[0] -> i[0] x2\n0.1 re s[1] -> i[0] x1"},
		{"other buffers don't join", local(0, "re s0 i0 2 -1 -1 0; re o1 i0 1 -1 -1 0; re o1 i1 1 -1 -1 0"),
			"0.0 re s[0] -> i[0] x2\n0.1 re o[1] -> i[0] x1\n0.2 re o[1] -> i[1] x1"},
		{"a nop between merged reduces waits after them", local(0, "re s0 i0 1 -1 -1 0; nop i-1 o-1 0 1 0 0; re s1 i0 1 -1 -1 0; cpy i0 o0 1 1 1 0") + post3,
			"0.0 re s[0] -> i[0] x1\n0.1 re s[1] -> i[0] x1\n0.2 nop wait 1:0\n0.3 cpy i[0] -> o[0] x1 wait 1:1" +
				"\n1.0 cpy i[0] -> s[0] x1 post\n1.1 cpy i[0] -> s[0] x1 post\n1.2 cpy i[0] -> s[0] x1"},
	} {
		for r := mscclxml.MSCCL; r <= mscclxml.RCCL; r++ {
			if diff := cmp.Diff(c.want, steps(read(t, algoOf(two, gpus2(c.tbs)), r).Programs[0])); diff != "" {
				t.Errorf("%s as %s (-want +got):\n%s", c.name, r, diff)
			}
		}
	}
}

// What a runtime takes and then does something undefined with, or hangs in.
func TestRuntimeUndefined(t *testing.T) {
	reduces := func(n int) string { return strings.Repeat("re s0 i0 1 -1 -1 0;", n-1) + "re s0 i0 1 -1 -1 0" }
	for _, c := range []struct{ name, tbs, code, want string }{
		{"fifteen fit", local(0, reduces(15)), "", ""},
		{"sixteen in Simple", local(0, reduces(16)), mscclxml.CodeUndefined, "f.xml:19:1: gpu 0 thread block 0 step 15: more than 15 reduces are merged"},
		{"merged reduces that overlap", local(0, "re s0 s0 1 -1 -1 0; re s1 s0 1 -1 -1 0"), mscclxml.CodeUndefined, "f.xml:5:1: gpu 0 thread block 0 step 1: merged reduces read what they write"},
		{"no count", local(0, "cpy i0 s0 0 -1 -1 0"), mscclxml.CodeUndefined, "f.xml:4:1: cpy: cnt 0"},
		{"no offset", local(0, "cpy i-1 s0 1 -1 -1 0"), mscclxml.CodeUndefined, "f.xml:4:1: cpy: source offset -1"},
		{"the first channel beyond", strings.Replace(local(0, "cpy i0 s0 1 -1 -1 0"), `chan="0"`, `chan="32"`, 1), mscclxml.CodeUndefined,
			"f.xml:3:1: gpu 0 thread block 0: channel 32 is the first beyond the runtime's table"},
		{"a number moved down", local(0, "nop i-1 o-1 0 -1 -1 0; cpy i0 s0 1 -1 -1 1") + local(1, "cpy s0 i1 1 0 1 0"), mscclxml.CodeHang,
			"f.xml:8:1: waits for step 1 of thread block 0, which has no step from there on"},
		{"no thread block", local(0, "cpy i0 s0 1 5 0 0"), mscclxml.CodeHang, "f.xml:4:1: waits for thread block 5, which rank 0 doesn't have"},
		{"a nop and a step that waits for nothing", local(0, "nop i-1 o-1 0 1 0 0; cpy i0 s0 1 -1 -1 1") + local(1, "cpy s0 i1 1 -1 -1 1"), mscclxml.CodeRefused,
			"f.xml:5:1: gpu 0 thread block 0 step 1: after a nop it waits for nothing itself"},
	} {
		_, err := mscclxml.Read(strings.NewReader(algoOf(two, gpus2(c.tbs))), mscclxml.ReadOptions{File: "f.xml", Runtime: mscclxml.MSCCL})
		list := diag.Messages(err)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: got %v", c.name, err)
		case c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want) || list[0].Code != c.code):
			t.Errorf("%s: got %v %v\nwant %s (%s)", c.name, err, list, c.want, c.code)
		}
	}
}

// The connections of each reading are the runtime's.
func TestReadingsTransport(t *testing.T) {
	file := algoOf(strings.Replace(two, `"Simple"`, `"LL"`, 1), gpus2(local(0, "cpy i0 s0 1 -1 -1 0")))
	for r, bytes := range map[mscclxml.Reading]int64{mscclxml.Plain: 32 << 10, mscclxml.MSCCL: 32 << 10, mscclxml.Executor: 32 << 10, mscclxml.RCCL: 16 << 10} {
		if got := read(t, file, r).Programs[0].Transport; got != (ir.Transport{Slots: 8, SlotBytes: bytes}) {
			t.Errorf("%s: got %+v", r, got)
		}
	}
	file = strings.Replace(file, "<algo ", `<algo target="plain" slots="5" slotbytes="77" `, 1)
	if got := read(t, file, mscclxml.Plain).Programs[0].Transport; got != (ir.Transport{Slots: 5, SlotBytes: 77}) {
		t.Errorf("own: got %+v", got)
	}
}
