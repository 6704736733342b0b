package plan

import (
	"fmt"
	"io"
	"math"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// Options say how a plan is read.
type Options struct {
	File    string // for positions
	Literal bool   // as MSCCL++'s executor runs it, see the package comment
	MaxFile int64  // bytes; 0 is 1 GiB
}

const defaultMaxFile = 1 << 30

// Dialect is one of the three forms that plans have had.
type Dialect uint8

// The dialects, newest first.
const (
	Current  Dialect = iota // v0.8 and later
	Early                   // the first weeks of the present form: switch channels say "buff"
	Original                // v0.5 to v0.7: camelCase, offsets on channels
)

// String is the name for reports.
func (d Dialect) String() string {
	return [...]string{"current", "early (2025-08)", "original (v0.5 to v0.7)"}[d]
}

// Imported is what a plan says.
type Imported struct {
	Program *ir.Program
	Notes   diag.List // infos and warnings: the dialect, sizes that were filled in, quirks that were imitated
	Dialect Dialect
	Bytes   int64 // length of the file
}

// Read reads a plan of any dialect. Errors are *diag.Message or diag.List with
// line and column; their codes are plan-syntax (no JSON, or not of this shape),
// plan-value (a value without meaning), plan-op (an operation that no executor
// runs) and plan-limit (only with Literal, see Refuse).
func Read(r io.Reader, o Options) (*Imported, error) {
	if o.MaxFile == 0 {
		o.MaxFile = defaultMaxFile
	}
	data, err := io.ReadAll(io.LimitReader(r, o.MaxFile+1))
	if err != nil {
		return nil, fmt.Errorf("reading the plan %s: %w", o.File, err)
	}
	if int64(len(data)) > o.MaxFile {
		return nil, diag.Errorf(diag.Pos{File: o.File}, "plan-value", "the file has more than %d bytes", o.MaxFile)
	}
	s := newScanner(data, o.File)
	raw := s.plan()
	if s.err != nil {
		return nil, s.err
	}
	rd := &reader{o: o, raw: raw}
	rd.program()
	if rd.err != nil {
		return nil, rd.err
	}
	if err := rd.p.Validate(); err != nil {
		return nil, diag.Errorf(raw.pos, "plan-value", "%s", err.Error())
	}
	if o.Literal {
		if err := overLimits(rd.p); err != nil {
			return nil, err
		}
	}
	return &Imported{Program: rd.p, Notes: rd.notes, Dialect: rd.dialect, Bytes: int64(len(data))}, nil
}

// reader turns records into a program. Its first error sticks.
type reader struct {
	o       Options
	raw     *rawPlan
	p       *ir.Program
	one     *ir.OneSided
	dialect Dialect
	notes   diag.List
	noted   map[string]bool // notes that are given once
	err     *diag.Message
	tables  []gpuTables
}

func (r *reader) failf(pos diag.Pos, code, format string, args ...any) {
	if r.err == nil {
		r.err = diag.Errorf(pos, code, format, args...)
	}
}

// once gives a note at its first place only.
func (r *reader) once(m *diag.Message) {
	if r.noted == nil {
		r.noted = map[string]bool{}
	}
	if !r.noted[m.Code] {
		r.noted[m.Code] = true
		r.notes = append(r.notes, m)
	}
}

func infof(pos diag.Pos, code, format string, args ...any) *diag.Message {
	m := diag.Warningf(pos, code, format, args...)
	m.Severity = diag.Info
	return m
}

// maxRanks is what ir allows. It is checked before anything is made for each.
const maxRanks = 1 << 16

func (r *reader) program() {
	raw := r.raw
	switch {
	case raw.oldKeys && raw.newKeys:
		r.failf(raw.pos, "plan-value", "GPUs have both %q and %q, which are of different dialects", "inputChunks", "input_chunks")
	case raw.oldKeys:
		r.dialect = Original
	case raw.buff:
		r.dialect = Early
	}
	if n := len(raw.gpus); n < 1 || n > maxRanks {
		r.failf(raw.pos, "plan-value", "got %d GPUs, want 1 to %d", n, maxRanks)
	}
	if r.dialect != Current {
		if r.o.Literal {
			r.failf(raw.pos, "plan-value", "the plan is of dialect %s, which MSCCL++'s present executor cannot load", r.dialect)
		}
		r.notes = append(r.notes, infof(raw.pos, "plan-dialect", "the plan is of dialect %s", r.dialect))
	}
	for g := range raw.gpus {
		if id := raw.gpus[g].id; int(id) != g {
			r.failf(raw.gpus[g].pos, "plan-value", "GPU %d has id %d, want them in order from 0", g, id)
		}
	}
	if r.err != nil {
		return
	}
	r.spec()
	r.declare()
	if r.err != nil {
		return
	}
	for g := range raw.gpus {
		r.blocks(int32(g))
	}
	if r.err == nil && raw.collective == "sendrecv" {
		r.inferSources()
	}
}

// spec makes everything but thread blocks.
func (r *reader) spec() {
	raw := r.raw
	n := int32(len(raw.gpus))
	r.one = &ir.OneSided{Packets: raw.protocol == "LL", ThreadsPerBlock: raw.threads, Alignment: raw.align, ReuseResources: raw.reuse,
		DoubleScratch: raw.double || r.dialect == Original && raw.protocol == "LL" && !raw.doubleSet,
		GPUs:          make([]ir.OneSidedGPU, n)}
	s := &ir.Spec{Name: raw.name, Topo: ir.FullyConnected(n), Instances: 1, Positions: []diag.Pos{{}}}
	if r.one.Packets {
		s.Protocol = ir.LL
	}
	r.p = &ir.Program{Spec: s, OneSided: r.one, GPUs: make([]ir.GPU, n), MinBytes: int64(raw.minBytes)}
	if raw.maxBytes <= math.MaxInt64 {
		r.p.MaxBytes = int64(raw.maxBytes)
		if r.p.MaxBytes < max(r.p.MinBytes, 1) {
			r.failf(raw.pos, "plan-value", "no size is between min_message_size %d and max_message_size %d", raw.minBytes, raw.maxBytes)
		}
	}
	if r.err == nil {
		s.Coll = r.collective()
	}
	if r.err != nil {
		return
	}
	names := [...]string{"input", "output", "scratch"}
	lengths := make([][]int32, len(names))
	for g := range n {
		gpu := &r.p.GPUs[g]
		gpu.Input, gpu.Output, gpu.Scratch = s.Coll.InputChunks(ir.Rank(g)), s.Coll.OutputChunks(ir.Rank(g)), raw.gpus[g].scratch
		for b, k := range [...]int32{gpu.Input, gpu.Output, gpu.Scratch} {
			lengths[b] = append(lengths[b], k)
		}
	}
	for b, name := range names {
		s.Buffers = append(s.Buffers, ir.Buffer{Name: name, Chunks: lengths[b]})
	}
}

// pos gives an operation's place a number. Every operation has its own.
func (r *reader) pos(p diag.Pos) ir.PosID {
	r.p.Positions = append(r.p.Positions, p)
	return ir.PosID(len(r.p.Positions) - 1)
}
