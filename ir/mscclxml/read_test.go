package mscclxml_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/ir/mscclxml"
)

// The attributes of an allreduce in place of two ranks and two chunks.
const two = `name="a" proto="Simple" nchannels="1" nchunksperloop="2" ngpus="2" coll="allreduce" inplace="1" outofplace="0" minBytes="0" maxBytes="1024"`

// exchange is a correct body for it.
const exchange = `<gpu id="0" i_chunks="2" o_chunks="2" s_chunks="0">
<tb id="0" send="1" recv="1" chan="0">
<step s="0" type="s" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
<step s="1" type="rrcs" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
<step s="2" type="r" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
</tb>
</gpu>
<gpu id="1" i_chunks="2" o_chunks="2" s_chunks="0">
<tb id="0" send="0" recv="0" chan="0">
<step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
<step s="1" type="rrcs" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
<step s="2" type="r" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
</tb>
</gpu>
`

func algoOf(attrs, body string) string { return "<algo " + attrs + ">\n" + body + "</algo>\n" }

func read(t testing.TB, text string, r mscclxml.Reading) *mscclxml.Imported {
	t.Helper()
	im, err := mscclxml.Read(strings.NewReader(text), mscclxml.ReadOptions{File: "f.xml", Runtime: r})
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return im
}

// steps is the steps of rank 0, thread blocks apart, without positions.
func steps(p *ir.Program) string {
	var out []string
	for b := range p.GPUs[0].TBs {
		for s := range p.GPUs[0].TBs[b].Steps {
			out = append(out, fmt.Sprintf("%d.%d %s", b, s, p.StepString(0, int32(b), int32(s))))
		}
	}
	return strings.Join(out, "\n")
}

// gpus2 is two gpu elements, the first with the given thread blocks.
func gpus2(tbs string) string {
	return `<gpu id="0" i_chunks="2" o_chunks="2" s_chunks="2">` + "\n" + tbs + "</gpu>\n" + `<gpu id="1" i_chunks="2" o_chunks="2" s_chunks="0"/>` + "\n"
}

// local is a thread block without peers: kind src dst cnt depid deps hasdep,
// one step after another, apart by ";".
func local(id int, list string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<tb id=\"%d\" send=\"-1\" recv=\"-1\" chan=\"0\">\n", id)
	for s, line := range strings.Split(list, ";") {
		var kind, src, dst string
		var cnt, depid, deps, hasdep int
		if _, err := fmt.Sscan(line, &kind, &src, &dst, &cnt, &depid, &deps, &hasdep); err != nil {
			panic(fmt.Sprintf("step %q: %v", line, err))
		}
		fmt.Fprintf(&b, "<step s=\"%d\" type=\"%s\" srcbuf=\"%s\" srcoff=\"%s\" dstbuf=\"%s\" dstoff=\"%s\" cnt=\"%d\" depid=\"%d\" deps=\"%d\" hasdep=\"%d\"/>\n",
			s, kind, src[:1], src[1:], dst[:1], dst[1:], cnt, depid, deps, hasdep)
	}
	return b.String() + "</tb>\n"
}

func TestReadProgram(t *testing.T) {
	im := read(t, algoOf(two, exchange), mscclxml.Plain)
	if len(im.Programs) != 1 || len(im.Notes) != 0 || im.Coll != "allreduce" {
		t.Fatalf("got %d programs, notes %v, collective %q", len(im.Programs), im.Notes, im.Coll)
	}
	const want = `program "a"
collective allreduce ranks 2 factor 2 split 1 in-place
topology "FullyConnected" ranks 2
protocol Simple
policy auto instances 1
transport slots 2 bytes 2097152
window min 0 max 1024
gpu 0 input=2 output=2 scratch=0
tb 0 send=1 recv=1 ch=0
  0 s i[1] x1 to 1 at i[1]
  1 rrcs i[0] -> i[0] x1 from 1 to 1
  2 r -> i[1] x1 from 1 at i[1]
gpu 1 input=2 output=2 scratch=0
tb 0 send=0 recv=0 ch=0
  0 s i[0] x1 to 0 at i[0]
  1 rrcs i[1] -> i[1] x1 from 0 to 0
  2 r -> i[0] x1 from 0 at i[0]
`
	if diff := cmp.Diff(want, text(t, im.Programs[0])); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := im.Programs[0].Pos(im.Programs[0].GPUs[1].TBs[0].Steps[2].Pos); got != (diag.Pos{File: "f.xml", Line: 13, Col: 1}) {
		t.Errorf("the last step stands at %v", got)
	}
}

// Files that say the same in other ways: all give the program of TestReadProgram.
func TestPlainReadingIsTolerant(t *testing.T) {
	plain := algoOf(two, exchange)
	want := text(t, read(t, plain, mscclxml.Plain).Programs[0])
	gpu1 := strings.Index(exchange, `<gpu id="1"`)
	steps0 := strings.SplitAfter(exchange, "\n")
	for name, file := range map[string]string{
		"CRLF":                    strings.ReplaceAll(plain, "\n", "\r\n"),
		"tabs":                    strings.ReplaceAll(plain, " ", "\t"),
		"single quotes":           strings.ReplaceAll(plain, `"`, "'"),
		"one line":                strings.ReplaceAll(plain, "\n", ""),
		"spaces around =":         strings.ReplaceAll(plain, "=", " = "),
		"a prolog":                "<?xml version=\"1.0\"?>\n" + plain,
		"a byte order mark":       "\ufeff" + plain,
		"compiler output around":  "compiling... 3 < 4\n<done>\n" + plain + "\nCheck: ok <algorithm>\n",
		"a comment before":        "<!-- <algo name='no'> -->\n" + plain,
		"comments inside":         strings.ReplaceAll(plain, "<gpu", "<!-- a > b -- c --><gpu"),
		"sections out of order":   algoOf(two, exchange[gpu1:]+exchange[:gpu1]),
		"attributes out of order": algoOf(strings.Replace(two, `name="a" proto="Simple"`, `proto="Simple" name="a"`, 1), exchange),
		"long ends of elements":   strings.ReplaceAll(plain, `hasdep="0"/>`, `hasdep="0"></step>`),
		"unknown elements":        strings.ReplaceAll(plain, "<tb", "<what><is/><this a='1'>\n</this></what><tb"),
		"unknown attributes":      strings.ReplaceAll(algoOf(two+` redop="sum" maxcount="3"`, exchange), "<tb", `<tb rate="3"`),
		"chunks that don't fit":   strings.ReplaceAll(plain, `i_chunks="2" o_chunks="2"`, `i_chunks="0" o_chunks="7"`),
		"steps without s":         strings.NewReplacer(`step s="0" `, "step ", `step s="1" `, "step ", `step s="2" `, "step ").Replace(plain),
		"steps numbered from 5":   strings.NewReplacer(`step s="0"`, `step s="5"`, `step s="1"`, `step s="6"`, `step s="2"`, `step s="7"`).Replace(plain),
		"no dependencies":         strings.ReplaceAll(plain, ` depid="-1" deps="-1" hasdep="0"`, ""),
		"a post for no one":       strings.ReplaceAll(plain, `hasdep="0"`, `hasdep="1"`),
		"no outofplace":           strings.ReplaceAll(plain, ` outofplace="0"`, ""),
		"no ngpus":                strings.ReplaceAll(plain, ` ngpus="2"`, ""),
		"sparse ids":              strings.ReplaceAll(plain, `<tb id="0"`, `<tb id="17"`),
		"a wait for oneself":      strings.Join(steps0[:2], "") + strings.Replace(steps0[2], `hasdep="0"`, `hasdep="1"`, 1) + strings.Replace(steps0[3], `depid="-1" deps="-1"`, `depid="0" deps="0"`, 1) + strings.Join(steps0[4:], ""),
	} {
		if name == "a wait for oneself" {
			file = algoOf(two, file)
		}
		im, err := mscclxml.Read(strings.NewReader(file), mscclxml.ReadOptions{File: "f.xml"})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, text(t, im.Programs[0])); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// What has effect on no runtime is named once; a second program is a warning.
func TestNotes(t *testing.T) {
	for _, c := range []struct{ name, file, want string }{
		{"ignored", algoOf(two+` redop="nop" x="1"`, "<y/>"+exchange), "f.xml:1:1: info: attributes of algo without effect: redop, x\nf.xml:1:1: info: elements without effect: y"},
		{"second algo", algoOf(two, exchange) + algoOf(two, exchange), "f.xml:17:1: warning: a second <algo> element: only the first is read, as by the runtimes"},
		{"no mode", algoOf(strings.Replace(two, `inplace="1"`, `inplace="0"`, 1), exchange),
			"f.xml:1:1: warning: inplace and outofplace are both 0: taken as out of place, as by msccl; executor and rccl never select it"},
		{"other numbers", algoOf(two, gpus2(local(0, "cpy i0 s0 1 -1 -1 1")+strings.NewReplacer(`step s="0"`, `step s="3"`).Replace(local(1, "cpy s0 s1 1 0 0 1"))+
			local(2, "cpy s1 i1 1 1 0 0"))),
			"f.xml:10:1: warning: gpu 0: steps of thread block 1 are not numbered by their position; deps counts positions, as in the runtimes"},
	} {
		if got := read(t, c.file, mscclxml.Plain).Notes.Error(); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

// Waits are for the first step that posts from the named one on.
func TestWaits(t *testing.T) {
	for _, c := range []struct{ name, tbs, want string }{
		{"a step that posts", local(0, "cpy i0 s0 1 -1 -1 1; cpy i1 s1 1 -1 -1 1") + local(1, "cpy s0 i1 1 0 0 0"),
			"0.0 cpy i[0] -> s[0] x1 post\n0.1 cpy i[1] -> s[1] x1\n1.0 cpy s[0] -> i[1] x1 wait 0:0"},
		{"a later one", local(0, "cpy i0 s0 1 -1 -1 0; cpy i1 s1 1 -1 -1 1") + local(1, "cpy s0 i1 1 0 0 0"),
			"0.0 cpy i[0] -> s[0] x1\n0.1 cpy i[1] -> s[1] x1 post\n1.0 cpy s[0] -> i[1] x1 wait 0:1"},
		{"a nop never posts", local(0, "nop i-1 o-1 0 1 0 1; cpy i1 s1 1 1 1 1") + local(1, "cpy i0 s0 1 -1 -1 1; cpy i0 s0 1 -1 -1 1; cpy s0 i1 1 0 0 0"),
			"0.0 nop wait 1:0\n0.1 cpy i[1] -> s[1] x1 wait 1:1 post\n1.0 cpy i[0] -> s[0] x1 post\n1.1 cpy i[0] -> s[0] x1 post\n1.2 cpy s[0] -> i[1] x1 wait 0:1"},
		{"ids in any order", local(1, "cpy s0 i1 1 0 0 0") + local(0, "cpy i0 s0 1 -1 -1 1"),
			"0.0 cpy i[0] -> s[0] x1 post\n1.0 cpy s[0] -> i[1] x1 wait 0:0"},
	} {
		if diff := cmp.Diff(c.want, steps(read(t, algoOf(two, gpus2(c.tbs)), mscclxml.Plain).Programs[0])); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// Windows and modes.
func TestDeclarations(t *testing.T) {
	with := func(old, new string) string { return algoOf(strings.Replace(two, old, new, 1), exchange) }
	for _, c := range []struct {
		name, file string
		reading    mscclxml.Reading
		window     string // min-max, 0 is no limit
		modes      string
	}{
		{"inclusive", with("", ""), mscclxml.Plain, "0-1024", "in"},
		{"as msccl", with("", ""), mscclxml.MSCCL, "0-1023", "in"},
		{"as executor", with("", ""), mscclxml.Executor, "0-1024", "in"},
		{"written for msccl", with("name=", `target="msccl" name=`), mscclxml.Plain, "0-1023", "in"},
		{"written for rccl", with("name=", `target="rccl" name=`), mscclxml.Plain, "0-1024", "in"},
		{"no maxBytes", with(`maxBytes="1024"`, ""), mscclxml.Plain, "0-134217728", "in"},
		{"no maxBytes, as msccl", strings.Replace(with(` maxBytes="1024"`, ""), "  ", " ", 1), mscclxml.MSCCL, "0-134217727", "in"},
		{"no limit", with(`maxBytes="1024"`, `maxBytes="0"`), mscclxml.Plain, "0-0", "in"},
		{"no limit, as executor", with(`maxBytes="1024"`, `maxBytes="0"`), mscclxml.Executor, "0-0", "in"},
		{"no limit in msccl's way", with(`maxBytes="1024"`, `maxBytes="9223372036854775807"`), mscclxml.MSCCL, "0-0", "in"},
		{"never selected by msccl", with(`maxBytes="1024"`, `maxBytes="0"`), mscclxml.MSCCL, "0-0", "in"},
		{"both modes", with(`outofplace="0"`, `outofplace="1"`), mscclxml.Plain, "0-1024", "in out"},
		{"msccl knows no outofplace", with(`outofplace="0"`, `outofplace="1"`), mscclxml.MSCCL, "0-1023", "in"},
		{"both modes, as rccl's sibling", with(`outofplace="0"`, `outofplace="1"`), mscclxml.Executor, "0-1024", "in out"},
		{"out of place", with(`inplace="1" outofplace="0"`, `inplace="0" outofplace="1"`), mscclxml.Plain, "0-1024", "out"},
		{"octal", with(`maxBytes="1024"`, `maxBytes="010"`), mscclxml.Executor, "0-8", "in"},
		{"hexadecimal and junk", with(`maxBytes="1024"`, `maxBytes=" 0x20KB"`), mscclxml.Executor, "0-32", "in"},
		{"no octal in the plain reading", with(`maxBytes="1024"`, `maxBytes="010"`), mscclxml.Plain, "0-10", "in"},
	} {
		im, err := mscclxml.Read(strings.NewReader(c.file), mscclxml.ReadOptions{Runtime: c.reading})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var modes []string
		for _, p := range im.Programs {
			mode := "out"
			if p.Coll.InPlace {
				mode = "in"
			}
			modes = append(modes, mode)
			if got := fmt.Sprintf("%d-%d", p.MinBytes, p.MaxBytes); got != c.window {
				t.Errorf("%s: got window %s, want %s", c.name, got, c.window)
			}
		}
		if got := strings.Join(modes, " "); got != c.modes {
			t.Errorf("%s: got modes %s, want %s", c.name, got, c.modes)
		}
	}
}

func TestReadingNames(t *testing.T) {
	for i, name := range mscclxml.ReadingNames() {
		if r, err := mscclxml.ParseReading(name); err != nil || int(r) != i || r.String() != name {
			t.Errorf("%s: got %v, %v", name, r, err)
		}
	}
	if _, err := mscclxml.ParseReading("nccl"); err == nil {
		t.Error("nccl: want an error")
	}
	if _, err := mscclxml.Read(strings.NewReader(""), mscclxml.ReadOptions{Runtime: 9}); err == nil {
		t.Error("reading 9: want an error")
	}
}

func TestReadFails(t *testing.T) {
	broken := errors.New("the disk is gone")
	if _, err := mscclxml.Read(iotest.ErrReader(broken), mscclxml.ReadOptions{}); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	_, err := mscclxml.Read(io.LimitReader(zeros{}, 2000), mscclxml.ReadOptions{File: "f.xml", MaxFile: 1999})
	if err == nil || err.Error() != "f.xml: the file is longer than 1999 bytes" {
		t.Errorf("got %v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// A step that waits for an earlier one of its own thread block waits for a flag;
// if nothing from there on posts before it, it never comes, on any runtime.
func TestWaitForOneselfNeedsAPost(t *testing.T) {
	steps0 := strings.SplitAfter(exchange, "\n")
	file := algoOf(two, strings.Join(steps0[:3], "")+strings.Replace(steps0[3], `depid="-1" deps="-1"`, `depid="0" deps="0"`, 1)+strings.Join(steps0[4:], ""))
	for _, r := range []mscclxml.Reading{mscclxml.Plain, mscclxml.MSCCL, mscclxml.Executor} {
		_, err := mscclxml.Read(strings.NewReader(file), mscclxml.ReadOptions{File: "f.xml", Runtime: r})
		if err == nil || !strings.Contains(err.Error(), "it never ends") {
			t.Errorf("%v: got %v, want a refusal", r, err)
		}
	}
}
