package ir

import (
	"io"
	"strconv"
)

// oneTraceWord opens the text form of a OneTrace.
const oneTraceWord = "onetrace"

// WriteText writes the program as text: a header, a line for each rank, channel
// and semaphore, then one operation a line. ParseOneTrace reads it back. t must
// be well formed; see Validate.
func (t *OneTrace) WriteText(w io.Writer) error {
	if err := t.Validate(); err != nil {
		return err
	}
	out := newTextWriter(w)
	out.spec(oneTraceWord, t.Spec)
	out.oneTraceHeader(t)
	for g := range t.GPUs {
		out.traceGPU(t, g)
	}
	words := stepWords()
	for i := range t.Ops {
		out.buf = strconv.AppendInt(out.buf, int64(i), 10)
		out.buf = append(out.buf, ' ')
		out.buf = t.appendOp(out.buf, words, &t.Ops[i])
		out.endAt(t.Spec, t.Ops[i].Pos)
	}
	return out.finish("one-sided trace")
}

// traceFlags are the words of the line "one-sided", for writer and parser alike.
func traceFlags(t *OneTrace) [3]specFlag {
	return [...]specFlag{{"auto-sync", &t.AutoSync}, {"double-scratch", &t.DoubleScratch},
		{"reuse-resources", &t.ReuseResources}}
}

// endAt ends a line with a position.
func (t *textWriter) endAt(s *Spec, pos PosID) {
	t.buf = appendPos(t.buf, s, pos)
	t.endLine()
}

func (t *textWriter) oneTraceHeader(o *OneTrace) {
	t.num("window min ", o.MinBytes)
	t.num(" max ", o.MaxBytes)
	t.endLine()
	flags := traceFlags(o)
	t.threadsLine(o.ThreadsPerBlock, o.Alignment, flags[:])
	words := stepWords()
	for i := range o.Groups {
		t.group(words.of(o.Groups[i].Buf), o.Groups[i].Ranks)
		t.endAt(o.Spec, o.Groups[i].Pos)
	}
	for i := range o.Loops {
		t.num("loop unit ", o.Loops[i].UnitBytes)
		t.num(" chunks ", int64(o.Loops[i].Chunks))
		t.endAt(o.Spec, o.Loops[i].Pos)
	}
}

func (t *textWriter) traceGPU(o *OneTrace, g int) {
	gpu := &o.GPUs[g]
	t.num("gpu ", int64(g))
	t.num(" scratch=", int64(gpu.Scratch))
	t.endLine()
	for _, c := range gpu.Channels {
		t.str("channel " + c.Kind.String())
		t.num(" ", int64(c.Peer))
		t.endAt(o.Spec, c.Pos)
	}
	for _, s := range gpu.Semaphores {
		t.num("semaphore ", int64(s.Initial))
		t.endAt(o.Spec, s.Pos)
	}
}

// OpString is operation i in one line, without number and position:
// rank 0 put memory on 0 i[0] x1 -> 1.s[0] x1 tb 0.
func (t *OneTrace) OpString(i int32) string {
	return string(t.appendOp(nil, stepWords(), &t.Ops[i]))
}

func (t *OneTrace) appendOp(dst []byte, words bufferWords, op *TraceOp) []byte {
	dst = append(dst, "rank "...)
	dst = strconv.AppendInt(dst, int64(op.Rank), 10)
	dst = append(dst, ' ')
	dst = append(dst, op.Kind.String()...)
	if op.Via != ChannelNone {
		dst = append(dst, ' ')
		dst = append(dst, op.Via.String()...)
	}
	if op.Reduce != ReduceByRun {
		dst = append(dst, ' ')
		dst = append(dst, op.Reduce.String()...)
	}
	dst = appendOpt(dst, " on ", op.Ref, None)
	dst = appendOperands(dst, " ", words, op.Rank, t.Sources(op))
	dst = appendOperands(dst, " -> ", words, op.Rank, t.Destinations(op))
	for i, b := range t.BlocksOf(op) {
		if i == 0 {
			dst = append(dst, " tb"...)
		}
		dst = append(dst, ' ')
		dst = strconv.AppendInt(dst, int64(b), 10)
	}
	if op.Kind.Syncs() {
		dst = append(dst, " sync "...)
		dst = append(dst, op.Sync.String()...)
	}
	return appendOpt(dst, " loop ", op.Loop, None)
}
