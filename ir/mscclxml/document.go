package mscclxml

import (
	"fmt"
	"math"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// document is what stands in a file, element by element, before any meaning.
type document struct {
	found bool // there is an algo element
	algo  attributes
	at    int32 // of the algo element
	gpus  []rawGPU
}

type rawGPU struct {
	at               int32
	id               int32
	in, out, scratch int32
	has              field
	nodes            int32 // elements that a runtime's reader keeps for this rank
	tbs              []rawTB
	copies           []rawCopy
}

type rawTB struct {
	at             int32
	id, send, recv int32
	ch             int32
	has            field
	steps          []rawStep
}

// rawCopy is SCCL's copy element: output off out holds input off in before the
// first step.
type rawCopy struct {
	at      int32
	in, out int32
}

type rawStep struct {
	at                     int32
	s, srcoff, dstoff, cnt int32
	depid, deps, hasdep    int32
	kind                   ir.StepKind
	src, dst               ir.BufferID // None where the name is unknown or missing
	has                    field
	unknown                bool // the type is none of the known ones
}

// field is a set of attributes that an element has.
type field uint16

const (
	fID field = 1 << iota
	fIn
	fOut
	fScratch
	fSend
	fRecv
	fChan
	fS
	fType
	fSrcOff
	fDstOff
	fSrcBuf
	fDstBuf
	fCnt
	fDep
	fHasDep
)

// What a document may hold. A file within these and the limit on its length is
// held in less than 2 GB.
const (
	maxSteps    = 1 << 22 // steps, of all ranks
	maxBlocks   = 1 << 20 // thread blocks, of all ranks
	maxGPUs     = 1 << 16
	maxProblems = 20 // errors before reading stops
)

// collector gathers a document, and what is wrong or worth a note in it.
type collector struct {
	o   ReadOptions
	src *source
	doc document

	steps, tbs int
	stopped    bool // no use in reading on
	list       diag.List
	reasons    map[string]*diag.Message // of a runtime's refusals, by what kind they are
	notes      diag.List
	ignored    [2][]string // names of attributes and elements without effect
}

func (c *collector) failed() bool { return len(c.list) > 0 }

func (c *collector) errors() diag.List { return c.list }

// errorf notes an error; it is nil after too many.
func (c *collector) errorf(at int32, code, format string, args ...any) *diag.Message {
	m := diag.Errorf(c.src.pos(at), code, format, args...)
	if c.stopped {
		return m
	}
	c.list = append(c.list, m)
	if len(c.list) >= maxProblems {
		c.stopped = true
	}
	return m
}

// stop notes an error after which there is nothing to read.
func (c *collector) stop(at int32, code, format string, args ...any) *diag.Message {
	m := c.errorf(at, code, format, args...)
	c.stopped = true
	return m
}

// refuse notes one reason for which a runtime refuses the file; others of the
// same kind are the same reason.
func (c *collector) refuse(at int32, kind, format string, args ...any) {
	if c.reasons[kind] != nil {
		return
	}
	if c.reasons == nil {
		c.reasons = map[string]*diag.Message{}
	}
	m := diag.Errorf(c.src.pos(at), CodeRefused, format, args...)
	c.reasons[kind] = m
	c.list = append(c.list, m)
}

func (c *collector) note(severity diag.Severity, at int32, code, format string, args ...any) {
	m := diag.Errorf(c.src.pos(at), code, format, args...)
	m.Severity = severity
	c.notes = append(c.notes, m)
}

// ignore remembers a name without effect; kind 0 is an attribute of algo, 1 an
// element.
func (c *collector) ignore(kind int, name string) {
	const most = 16
	for _, n := range c.ignored[kind] {
		if n == name {
			return
		}
	}
	if len(c.ignored[kind]) < most {
		c.ignored[kind] = append(c.ignored[kind], name)
	}
}

// number reads an attribute by the reading's rules into *v and reports whether
// it was there.
func (c *collector) number(a attributes, key string, v *int32) bool {
	n, ok := c.number64(a, key, math.MinInt32, math.MaxInt32)
	if ok {
		*v = int32(n) // a runtime's strtol into an int
	}
	return ok
}

func (c *collector) number64(a attributes, key string, least, most int64) (int64, bool) {
	at, ok := a.find(key)
	if !ok {
		return 0, false
	}
	if c.o.Runtime != Plain {
		return strtol(at.value), true
	}
	n, good := decimal(at.value)
	if !good || n < least || n > most {
		c.errorf(at.at, CodeValue, "attribute %s: got %s, want a whole number", key, quote(at.value))
	}
	return n, true
}

// quote is a value from a file for a message, cut where it is long.
func quote(s string) string {
	const most = 40
	if len(s) > most {
		return fmt.Sprintf("%q... (%d bytes)", s[:most], len(s))
	}
	return fmt.Sprintf("%q", s)
}

// openAlgo, openGPU, openTB and step take the elements as they come.
func (c *collector) openAlgo(at int32, a attributes) {
	c.doc.found, c.doc.at = true, at
	c.doc.algo = append(attributes(nil), a...)
}

func (c *collector) openGPU(at int32, a attributes) {
	if len(c.doc.gpus) == maxGPUs {
		c.stop(at, CodeTooLarge, "more than %d gpu elements", maxGPUs)
		return
	}
	g := rawGPU{at: at}
	g.has = c.fields(a, []want{{"id", fID, &g.id}, {"i_chunks", fIn, &g.in}, {"o_chunks", fOut, &g.out},
		{"s_chunks", fScratch, &g.scratch}})
	c.doc.gpus = append(c.doc.gpus, g)
}

func (c *collector) gpu() *rawGPU { return &c.doc.gpus[len(c.doc.gpus)-1] }

func (c *collector) openTB(at int32, a attributes) {
	if c.tbs++; c.tbs > maxBlocks {
		c.stop(at, CodeTooLarge, "more than %d thread blocks", maxBlocks)
		return
	}
	g := c.gpu()
	g.nodes++
	t := rawTB{at: at, send: ir.None, recv: ir.None}
	t.has = c.fields(a, []want{{"id", fID, &t.id}, {"send", fSend, &t.send}, {"recv", fRecv, &t.recv}, {"chan", fChan, &t.ch}})
	g.tbs = append(g.tbs, t)
}

func (c *collector) copyElement(at int32, a attributes) {
	if c.steps++; c.steps > maxSteps {
		c.stop(at, CodeTooLarge, "more than %d steps and copies", maxSteps)
		return
	}
	r := rawCopy{at: at}
	if !c.number(a, "i_off", &r.in) || !c.number(a, "o_off", &r.out) || r.in < 0 || r.out < 0 {
		c.errorf(at, CodeValue, "copy: want i_off and o_off, 0 or more")
	}
	g := c.gpu()
	g.copies = append(g.copies, r)
}

func (c *collector) step(at int32, a attributes) {
	if c.steps++; c.steps > maxSteps {
		c.stop(at, CodeTooLarge, "more than %d steps", maxSteps)
		return
	}
	g := c.gpu()
	g.nodes++
	s := rawStep{at: at, src: ir.None, dst: ir.None, depid: ir.None, deps: ir.None}
	for i := range a {
		s.attribute(c, a[:i+1], &a[i])
	}
	t := &g.tbs[len(g.tbs)-1]
	t.steps = append(t.steps, s)
}

// attribute takes one attribute of a step; seen are those up to it.
func (s *rawStep) attribute(c *collector, seen attributes, a *attribute) {
	one := seen[len(seen)-1:]
	take := func(f field, v *int32) {
		if s.has&f == 0 { // the first of a name counts
			c.number(one, a.key, v)
			s.has |= f
		}
	}
	switch a.key {
	case "s":
		take(fS, &s.s)
	case "srcoff":
		take(fSrcOff, &s.srcoff)
	case "dstoff":
		take(fDstOff, &s.dstoff)
	case "cnt":
		take(fCnt, &s.cnt)
	case "depid":
		take(fID, &s.depid)
	case "deps":
		take(fDep, &s.deps)
	case "hasdep":
		take(fHasDep, &s.hasdep)
	case "srcbuf":
		if s.has&fSrcBuf == 0 {
			s.src = bufferOf(a.value)
			s.has |= fSrcBuf
		}
	case "dstbuf":
		if s.has&fDstBuf == 0 {
			s.dst = bufferOf(a.value)
			s.has |= fDstBuf
		}
	case "type":
		if s.has&fType == 0 {
			s.setKind(a.value)
			s.has |= fType
		}
	}
}

func (s *rawStep) setKind(word string) {
	k, err := ir.ParseStepKind(word)
	s.kind, s.unknown = k, err != nil
}

// bufferOf is the buffer of a letter, None if it is none.
func bufferOf(s string) ir.BufferID {
	switch s {
	case "i":
		return ir.Input
	case "o":
		return ir.Output
	case "s":
		return ir.FirstScratch
	}
	return ir.None
}

// want is an attribute that an element may have.
type want struct {
	key   string
	field field
	value *int32
}

func (c *collector) fields(a attributes, list []want) field {
	var has field
	for _, w := range list {
		if c.number(a, w.key, w.value) {
			has |= w.field
		}
	}
	return has
}
