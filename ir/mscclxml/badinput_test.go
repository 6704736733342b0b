package mscclxml_test

import (
	"fmt"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/ir/mscclxml"
)

// What the plain reading refuses: where, and in which words.
func TestPlainRefusals(t *testing.T) {
	attr := func(old, new string) string { return algoOf(strings.Replace(two, old, new, 1), exchange) }
	body := func(old, new string) string { return algoOf(two, strings.Replace(exchange, old, new, 1)) }
	tbs := func(s string) string { return algoOf(two, gpus2(s)) }
	for _, c := range []struct{ file, code, want string }{
		{"", mscclxml.CodeSyntax, "f.xml:1:1: there is no <algo> element: not an MSCCL XML program"},
		{"\x00\x01\x02<alg\xff", mscclxml.CodeSyntax, "f.xml:1:1: there is no <algo> element"},
		{`{"name": "allreduce"}`, mscclxml.CodeSyntax, "f.xml:1:1: there is no <algo> element"},
		{"<!-- " + algoOf(two, exchange) + "-->", mscclxml.CodeSyntax, "f.xml:1:1: there is no <algo> element"},
		{"<algo " + two, mscclxml.CodeSyntax, "f.xml:1:146: the file ends inside <algo>"},
		{algoOf(two, exchange)[:190], mscclxml.CodeSyntax, "f.xml:2:44: the file ends inside <gpu>"},
		{"<algo " + two + ">\n" + exchange, mscclxml.CodeSyntax, "f.xml:16:1: the file ends inside <algo>"},
		{attr(`name="a" `, `name="a"`), mscclxml.CodeSyntax, "f.xml:1:15: <algo>: got \"p\", want an attribute or the end of the tag"},
		{attr(`ngpus="2"`, `ngpus=2`), mscclxml.CodeSyntax, `f.xml:1:70: <algo>: the value of attribute "ngpus" is not quoted`},
		{attr(`ngpus="2"`, `ngpus`), mscclxml.CodeSyntax, `f.xml:1:70: <algo>: attribute "ngpus" has no value`},
		{attr(`ngpus="2"`, `ngpus="2`), mscclxml.CodeSyntax, `f.xml:1:79: <algo>: got "a", want an attribute or the end of the tag`},
		{attr(`ngpus="2"`, `ngpus="2" ngpus="3"`), mscclxml.CodeSyntax, `f.xml:1:74: <algo>: attribute "ngpus" is there twice`},
		{body("</tb>", ""), mscclxml.CodeSyntax, `f.xml:8:1: got the end of "gpu", want that of <tb>`},
		{body("</tb>", "</tb>what?"), mscclxml.CodeSyntax, `f.xml:7:6: <gpu>: text between its elements: "what?"`},
		{body("<tb ", "<step s=\"0\"/><tb "), mscclxml.CodeSyntax, "f.xml:3:1: <step> inside <gpu>"},
		{body("<tb ", "<!-- <tb "), mscclxml.CodeSyntax, "f.xml:3:1: the comment has no end"},
		{body("<tb ", "< tb "), mscclxml.CodeSyntax, `f.xml:3:1: <gpu>: got "< tb id=\"0\" send=\"1\"", want an element`},

		{attr(`ngpus="2"`, `ngpus="NaN"`), mscclxml.CodeValue, `f.xml:1:64: attribute ngpus: got "NaN", want a whole number`},
		{attr(`ngpus="2"`, `ngpus="1000000000"`), mscclxml.CodeValue, "f.xml:1:1: ngpus is 1000000000, want 1 to 65536"},
		{attr(`ngpus="2"`, `ngpus="99999999999"`), mscclxml.CodeValue, `f.xml:1:64: attribute ngpus: got "99999999999", want a whole number`},
		{attr(`nchunksperloop="2"`, `nchunksperloop="0"`), mscclxml.CodeValue, "f.xml:1:1: nchunksperloop is 0, want 1 or more"},
		{attr(`nchunksperloop="2"`, ``), mscclxml.CodeValue, "f.xml:1:1: there is no nchunksperloop"},
		{attr(`proto="Simple"`, `proto="ll"`), mscclxml.CodeValue, `f.xml:1:16: protocol: got "ll", want Simple, LL or LL128`},
		{attr(`proto="Simple"`, ``), mscclxml.CodeValue, "f.xml:1:1: there is no proto"},
		{attr(`coll="allreduce"`, `coll="alreduce"`), mscclxml.CodeValue, `f.xml:1:74: coll: unknown collective "alreduce"`},
		{attr(`coll="allreduce"`, ``), mscclxml.CodeValue, "f.xml:1:1: the file doesn't say which collective it is, and neither do its names"},
		{attr(`coll="allreduce"`, `coll="alltoallv"`), mscclxml.CodeInvalid, "f.xml:1:74: alltoallv: the file doesn't say how much"},
		{attr(`coll="allreduce"`, `coll="alltoallv" counts="1,2,0"`), mscclxml.CodeValue, "f.xml:1:91: counts: got 3 numbers, want 4: from each of 2 ranks to each"},
		{attr(`coll="allreduce"`, `coll="alltoallv" counts="1,3,0,0"`), mscclxml.CodeValue, `f.xml:1:91: counts: got "3", want 0 to 2 chunks`},
		{attr(`coll="allreduce"`, `coll="broadcast" root="2"`), mscclxml.CodeValue, "f.xml:1:1: root is rank 2, want 0 to 1"},
		{attr(`coll="allreduce"`, `coll="sendrecv" root="1"`), mscclxml.CodeValue, "f.xml:1:74: sendrecv: want the attributes root and peer"},
		{strings.Replace(attr(`coll="allreduce"`, `coll="allgather"`), `nchunksperloop="2"`, `nchunksperloop="3"`, 1), mscclxml.CodeInvalid,
			"f.xml:1:1: allgather: nchunksperloop 3 is not a multiple of the 2 ranks"},
		{attr(`inplace="1"`, `inplace="2"`), mscclxml.CodeValue, "f.xml:1:1: inplace and outofplace: got 2 and 0, want 0 or 1"},
		{attr(`minBytes="0"`, `minBytes="2000"`), mscclxml.CodeValue, "f.xml:1:1: no size is between minBytes 2000 and maxBytes 1024"},
		{attr(`minBytes="0"`, `minBytes="-1"`), mscclxml.CodeValue, `f.xml:1:118: attribute minBytes: got "-1", want a whole number`},
		{attr(`name=`, `target="nccl" name=`), mscclxml.CodeValue, `f.xml:1:7: target: got "nccl"`},
		{attr(`coll="allreduce"`, `coll="custom" nchunksperlop="1"`), "", ""},

		{body(`<gpu id="1"`, `<gpu id="0"`), mscclxml.CodeValue, "f.xml:9:1: a second gpu 0\n    f.xml:2:1: the first one"},
		{body(`<gpu id="1"`, `<gpu id="2"`), mscclxml.CodeValue, "f.xml:9:1: gpu 2, want 0 to 1: ngpus is 2"},
		{attr(`ngpus="2"`, `ngpus="3"`), mscclxml.CodeIncomplete, "f.xml:1:1: ngpus is 3, but there is no gpu 2 (2 elements)"},
		{body(`s_chunks="0"`, `s_chunks="-1"`), mscclxml.CodeValue, "f.xml:2:1: gpu 0: s_chunks is -1, want 0 or more"},
		{body(`<tb id="0"`, `<tb`), mscclxml.CodeValue, "f.xml:3:1: gpu 0: a thread block without id"},
		{body(`send="1"`, `send="2"`), mscclxml.CodeValue, "f.xml:3:1: gpu 0 thread block 0: rank 2 is no peer, want another one up to 1, or -1"},
		{body(`send="1"`, `send="0"`), mscclxml.CodeValue, "f.xml:3:1: gpu 0 thread block 0: rank 0 is no peer"},
		{body(`send="1"`, ``), mscclxml.CodeValue, "f.xml:4:1: s: thread block 0 has no rank to send to"},
		{body(`recv="1"`, ``), mscclxml.CodeValue, "f.xml:5:1: rrcs: thread block 0 has no rank to receive from"},
		{body(`chan="0"`, ``), mscclxml.CodeValue, "f.xml:3:1: gpu 0 thread block 0: it has a peer, but no channel"},
		{body("</gpu>", `<tb id="1" send="1" recv="-1" chan="0"/></gpu>`), mscclxml.CodeInvalid,
			"f.xml:8:1: rank 0: thread block 1 is a second one that sends to rank 1 on channel 0\n    f.xml:3:1: thread block 0 is the first"},
		{body("</gpu>", `<tb id="1" send="-1" recv="1" chan="0"/></gpu>`), mscclxml.CodeInvalid,
			"f.xml:8:1: rank 0: thread block 1 is a second one that receives from rank 1 on channel 0"},
		{body("</gpu>", `<tb id="0" send="-1" recv="-1" chan="0"/></gpu>`), mscclxml.CodeValue, "f.xml:8:1: gpu 0: a second thread block 0"},
		{body(`type="s"`, `type="send"`), mscclxml.CodeValue, "f.xml:4:1: the type of the step is none of nop, s, r, rcs, rrs, rrc, rrcs, cpy, re"},
		{body(`type="s"`, ``), mscclxml.CodeValue, "f.xml:4:1: a step without type"},
		{body(`cnt="1"`, `cnt="0"`), mscclxml.CodeValue, "f.xml:4:1: s: cnt is 0, want 1 or more"},
		{body(`cnt="1"`, `cnt="nan"`), mscclxml.CodeValue, `f.xml:4:66: attribute cnt: got "nan", want a whole number`},
		{body(`srcoff="1"`, `srcoff="-1"`), mscclxml.CodeValue, "f.xml:4:1: s: it has no source"},
		{body(`srcbuf="i"`, `srcbuf="x"`), mscclxml.CodeValue, "f.xml:4:1: s: it has no source"},
		{body(`hasdep="0"`, `hasdep="2"`), mscclxml.CodeValue, "f.xml:4:1: hasdep is 2, want 0 or 1"},
		{tbs(local(0, "cpy i0 s0 1 3 0 0")), mscclxml.CodeInvalid, "f.xml:4:1: waits for thread block 3, which rank 0 doesn't have"},
		{tbs(local(0, "cpy i0 s0 1 1 -1 0") + local(1, "cpy i0 s0 1 -1 -1 1")), mscclxml.CodeValue, "f.xml:4:1: waits for step -1 of thread block 1, want a step"},
		{tbs(local(0, "cpy i0 s0 1 1 0 0") + local(1, "cpy i0 s0 1 -1 -1 0")), mscclxml.CodeHang,
			"f.xml:4:1: waits for step 0 of thread block 1, which has no step from there on with hasdep=\"1\": it never ends"},
		{tbs(local(0, "cpy i0 s0 1 0 1 0; cpy i0 s0 1 -1 -1 1")), mscclxml.CodeHang, "f.xml:4:1: waits for step 1 of its own thread block"},
	} {
		_, err := mscclxml.Read(strings.NewReader(c.file), mscclxml.ReadOptions{File: "f.xml"})
		list := diag.Messages(err)
		if c.want == "" {
			if err != nil {
				t.Errorf("got %v, want no error in %s", err, c.file)
			}
			continue
		}
		if len(list) == 0 || !strings.HasPrefix(list[0].Error(), c.want) || list[0].Code != c.code {
			t.Errorf("got %v %+v\nwant %s (%s) in\n%s", err, list, c.want, c.code, c.file)
		}
	}
}

// measure runs f and returns what it took, garbage included.
func measure(f func()) (time.Duration, uint64) {
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	start := time.Now()
	f()
	took := time.Since(start)
	goruntime.ReadMemStats(&after)
	return took, after.TotalAlloc - before.TotalAlloc
}

// Whatever a file declares, time and memory follow its length.
func TestHostileFiles(t *testing.T) {
	header := "<algo " + strings.NewReplacer(`ngpus="2"`, `ngpus="1"`, `nchunksperloop="2"`, `nchunksperloop="2147483647"`, `"allreduce"`, `"%s"`).Replace(two) + ">\n"
	gpu := `<gpu id="0" i_chunks="1" o_chunks="1" s_chunks="2147483647">`
	for name, file := range map[string]string{
		"a billion ranks":             algoOf(strings.Replace(two, `ngpus="2"`, `ngpus="1000000000"`, 1), exchange),
		"no gpu of 65,536":            algoOf(strings.Replace(two, `ngpus="2"`, `ngpus="65536"`, 1), ""),
		"huge chunk counts":           fmt.Sprintf(header, "allreduce") + gpu + "</gpu></algo>",
		"a huge custom collective":    fmt.Sprintf(header, "custom") + gpu + "</gpu></algo>",
		"a huge gather":               strings.Replace(fmt.Sprintf(header, "gather"), `ngpus="1"`, `ngpus="2" root="0"`, 1) + gpu + `</gpu><gpu id="1"/></algo>`,
		"a huge value":                algoOf(two+` x="`+strings.Repeat("y", 1<<20)+`"`, exchange),
		"a value without end":         "<algo " + two + ` x="` + strings.Repeat("y", 1<<20),
		"a huge name":                 algoOf(two+" "+strings.Repeat("y", 1<<20)+`="1"`, exchange),
		"a huge element name":         algoOf(two, "<"+strings.Repeat("y", 1<<20)+"/>"+exchange),
		"a million attributes":        algoOf(two+strings.Repeat(` y="1"`, 1<<20), exchange),
		"deep nesting":                algoOf(two, strings.Repeat("<x>", 1<<20)),
		"many unknown elements":       algoOf(two, manyNames(1<<16)),
		"nothing but <":               "<algo " + two + ">" + strings.Repeat("<", 1<<20),
		"many comments":               strings.Repeat("<!--", 1<<18),
		"many algos":                  strings.Repeat("<algo ", 1<<18),
		"too many bad steps":          algoOf(two, gpus2("<tb id=\"0\">"+strings.Repeat("<step/>", 1<<18)+"</tb>")),
		"many thread blocks":          algoOf(two, gpus2(strings.Repeat("<tb id=\"0\"/>", 1<<18))),
		"too many gpus":               algoOf(two, strings.Repeat("<gpu/>", 1<<17)),
		"one rank with many copies":   algoOf(two, gpus2(strings.Repeat(`<copy i_off="1" o_off="0"/>`, 1<<16)+manyTBs(1<<10))),
		"every step waits for a far":  algoOf(two, gpus2(manyWaits(1<<14))),
		"numbers beyond what C holds": algoOf(strings.ReplaceAll(two, `"2"`, `"99999999999999999999999999"`), exchange),
	} {
		for r := mscclxml.Plain; r <= mscclxml.RCCL; r++ {
			var err error
			took, bytes := measure(func() {
				_, err = mscclxml.Read(strings.NewReader(file), mscclxml.ReadOptions{File: "f.xml", Runtime: r, Holds: func(*ir.Program) bool { return false }})
			})
			if limit := uint64(64<<20 + 64*len(file)); took > 3*time.Second || bytes > limit {
				t.Errorf("%s as %s: %v and %d bytes for a file of %d", name, r, took, bytes, len(file))
			}
			if err != nil && len(err.Error()) > 64<<10 {
				t.Errorf("%s as %s: an error of %d bytes", name, r, len(err.Error()))
			}
		}
	}
}

func manyNames(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "<x%d/>", i)
	}
	return b.String()
}

func manyTBs(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(local(i, "cpy o1 s0 1 -1 -1 0; cpy i1 s1 1 -1 -1 0"))
	}
	return b.String()
}

func manyWaits(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, ";cpy i0 s0 1 1 %d 1", i)
	}
	list := b.String()[1:]
	return local(0, list) + local(1, list)
}
