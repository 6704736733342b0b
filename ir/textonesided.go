package ir

import "strconv"

// oneSidedHeader writes what a one-sided program declares instead of the
// connections of a two-sided one.
func (t *textWriter) oneSidedHeader(o *OneSided) {
	flags := oneSidedFlags(o)
	t.threadsLine(o.ThreadsPerBlock, o.Alignment, flags[:])
	words := stepWords()
	for i := range o.Groups {
		t.group(words.of(o.Groups[i].Buf), o.Groups[i].Ranks)
		t.endLine()
	}
}

// threadsLine and group write what the traced and the compiled form have alike: the line
// of threads, alignment and flags, and a switch group, whose line goes on.
func (t *textWriter) threadsLine(threads, alignment int32, flags []specFlag) {
	t.num("one-sided threads ", int64(threads))
	t.num(" align ", int64(alignment))
	for _, f := range flags {
		if *f.value {
			t.str(" " + f.word)
		}
	}
	t.endLine()
}

func (t *textWriter) group(buf string, ranks []Rank) {
	t.str("group " + buf)
	t.str(":")
	for _, r := range ranks {
		t.num(" ", int64(r))
	}
}

// oneSidedFlags are the words of the header, for writer and parser alike.
func oneSidedFlags(o *OneSided) [2]specFlag {
	return [...]specFlag{{"double-scratch", &o.DoubleScratch}, {"reuse-resources", &o.ReuseResources}}
}

// oneSidedGPU writes the channels, semaphores and thread blocks of a rank.
func (t *textWriter) oneSidedGPU(p *Program, rank Rank) {
	gpu := &p.OneSided.GPUs[rank]
	for i, ch := range gpu.Channels {
		if i == 0 || ch.Kind != gpu.Channels[i-1].Kind {
			if i > 0 {
				t.endLine()
			}
			t.str("channels " + ch.Kind.String())
		}
		t.num(" ", int64(ch.Peer))
	}
	if len(gpu.Channels) > 0 {
		t.endLine()
	}
	if len(gpu.Semaphores) > 0 {
		t.str("semaphores")
		t.runs(gpu.Semaphores)
		t.endLine()
	}
	words := stepWords()
	for b, span := range gpu.Blocks {
		t.num("tb ", int64(b))
		t.endLine()
		t.ops(p, words, rank, span, "  ")
	}
}

// ops writes the operations of a thread block or of a pipeline.
func (t *textWriter) ops(p *Program, words bufferWords, rank Rank, span Span, indent string) {
	for i := span.Start; i < span.End; i++ {
		op := &p.OneSided.Ops[i]
		t.num(indent, int64(i-span.Start))
		t.buf = append(t.buf, ' ')
		t.buf = p.appendOp(t.buf, words, rank, op)
		if op.Kind == OpPipeline {
			t.str(" {")
		}
		t.buf = appendPos(t.buf, p.Spec, op.Pos)
		t.endLine()
		if op.Kind == OpPipeline {
			t.ops(p, words, rank, op.Body, indent+"  ")
			t.str(indent + "}")
			t.endLine()
		}
	}
}

// OpString is operation op of a one-sided program, one of rank's, in one line
// without number, position and body: put memory i[0] x1 -> 1.i[0] x1.
func (p *Program) OpString(rank Rank, op int32) string {
	return string(p.appendOp(nil, stepWords(), rank, &p.OneSided.Ops[op]))
}

func (p *Program) appendOp(dst []byte, words bufferWords, rank Rank, op *Op) []byte {
	dst = append(dst, op.Kind.String()...)
	if op.Via != ChannelNone {
		dst = append(dst, ' ')
		dst = append(dst, op.Via.String()...)
	}
	if op.Reduce != ReduceByRun {
		dst = append(dst, ' ')
		dst = append(dst, op.Reduce.String()...)
	}
	if op.Refs.Len() > 0 {
		dst = append(dst, " on"...)
		for _, r := range p.OneSided.RefsOf(op) {
			dst = append(dst, ' ')
			dst = strconv.AppendInt(dst, int64(r), 10)
		}
	}
	dst = appendOperands(dst, " ", words, rank, p.OneSided.Sources(op))
	dst = appendOperands(dst, " -> ", words, rank, p.OneSided.Destinations(op))
	switch {
	case op.Kind == OpBarrier:
		dst = append(dst, " of "...)
		dst = strconv.AppendInt(dst, int64(op.Parts), 10)
	case op.Parts != 1:
		dst = append(dst, " part "...)
		dst = strconv.AppendInt(dst, int64(op.Part), 10)
		dst = append(dst, " of "...)
		dst = strconv.AppendInt(dst, int64(op.Parts), 10)
	}
	if op.Kind == OpPipeline {
		dst = append(dst, " unit "...)
		dst = strconv.AppendInt(dst, op.UnitBytes, 10)
		dst = append(dst, " chunks "...)
		dst = strconv.AppendInt(dst, int64(op.UnitChunks), 10)
	}
	return dst
}

// appendOperands writes i[0] x2, 3.s[1] x2 packets, group 0.o[4] x2: those of
// other ranks and of groups say so.
func appendOperands(dst []byte, before string, words bufferWords, rank Rank, list []Operand) []byte {
	for i := range list {
		a := &list[i]
		if i == 0 {
			dst = append(dst, before...)
		} else {
			dst = append(dst, ", "...)
		}
		switch {
		case a.Group != None:
			dst = append(dst, "group "...)
			dst = strconv.AppendInt(dst, int64(a.Group), 10)
			dst = append(dst, '.')
		case a.Rank != rank:
			dst = strconv.AppendInt(dst, int64(a.Rank), 10)
			dst = append(dst, '.')
		}
		dst = appendPlace(dst, words, Place{a.Buf, a.Index})
		dst = append(dst, " x"...)
		dst = strconv.AppendInt(dst, int64(a.Size), 10)
		if a.Packets {
			dst = append(dst, " packets"...)
		}
	}
	return dst
}
