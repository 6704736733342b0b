package trace

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// listed is how many ranks a suggestion names before it only counts them.
const listed = 8

func (b *Builder) errorf(pos ir.PosID, code, format string, args ...any) *diag.Message {
	return diag.Errorf(b.spec.Pos(pos), code, format, args...)
}

// at is " at file:line:col", or nothing for an unknown position.
func (b *Builder) at(pos ir.PosID) string {
	if p := b.spec.Pos(pos); p.IsValid() {
		return " at " + p.String()
	}
	return ""
}

// label is how a message names a buffer: plain where that reads well.
func (b *Builder) label(buf ir.BufferID) string {
	name := b.spec.BufferName(buf)
	if buf < ir.FirstScratch || strings.HasPrefix(name, "(") {
		return name
	}
	for i, c := range name {
		if !unicode.IsLetter(c) && c != '_' && (i == 0 || !unicode.IsDigit(c)) {
			return strconv.Quote(name)
		}
	}
	if name == "" || name == "input" || name == "output" {
		return strconv.Quote(name)
	}
	return name
}

// argument is how a script writes a buffer in a call.
func (b *Builder) argument(buf ir.BufferID) string {
	if name := b.spec.BufferName(buf); strings.HasPrefix(name, "(") {
		return name
	}
	return strconv.Quote(b.spec.BufferName(buf))
}

// place is "rank 2 input[3]" or "rank 2 input[3:6]".
func (b *Builder) place(rank ir.Rank, buf ir.BufferID, index, count int32) string {
	return fmt.Sprintf("rank %d %s", rank, b.span(buf, index, count))
}

func (b *Builder) span(buf ir.BufferID, index, count int32) string {
	if count == 1 {
		return fmt.Sprintf("%s[%d]", b.label(buf), index)
	}
	return fmt.Sprintf("%s[%d:%d]", b.label(buf), index, int64(index)+int64(count))
}

func (b *Builder) placeOf(r Ref) string { return b.place(r.Rank, r.Buf, r.Index, r.Count) }

// chunkCall is the call that takes a reference to a place.
func (b *Builder) chunkCall(rank ir.Rank, buf ir.BufferID, index, count int32) string {
	if count == 1 {
		return fmt.Sprintf("chunk(%d, %s, %d)", rank, b.argument(buf), index)
	}
	return fmt.Sprintf("chunk(%d, %s, %d, %d)", rank, b.argument(buf), index, count)
}

// rankList is "rank 1", "ranks 1, 2 and 5", or "12 ranks" beyond a few.
func rankList(ranks []ir.Rank) string {
	if len(ranks) > listed {
		return fmt.Sprintf("%d ranks", len(ranks))
	}
	if len(ranks) == 1 {
		return fmt.Sprintf("rank %d", ranks[0])
	}
	s := "ranks "
	for i, r := range ranks {
		switch {
		case i == len(ranks)-1:
			s += " and "
		case i > 0:
			s += ", "
		}
		s += strconv.Itoa(int(r))
	}
	return s
}

func (b *Builder) errStale(r Ref, i, writer int32, pos ir.PosID) *diag.Message {
	op := &b.ops[writer-1]
	m := b.errorf(pos, "stale-reference", "stale reference: %s was overwritten by the %s%s",
		b.place(r.Rank, r.Buf, r.Index+i, 1), op.Kind, b.at(op.Pos))
	again := "take it again with " + b.chunkCall(r.Rank, r.Buf, r.Index, r.Count)
	if at := b.at(r.pos); at != "" {
		return m.Suggest("the reference was taken%s; %s", at, again)
	}
	return m.Suggest("%s", again)
}

func (b *Builder) errFinished(call string, pos ir.PosID) *diag.Message {
	return b.errorf(pos, "finished", "%s: the program is already finished", call).
		Suggest("chunks can be moved only while their program is being written")
}

func (b *Builder) errForeign(call string, r Ref, pos ir.PosID) *diag.Message {
	m := b.errorf(pos, "foreign-reference", "%s: the reference belongs to another program", call)
	if r.owner == nil {
		return m.Suggest("take a reference with chunk() first")
	}
	return m.Suggest("take it in this program with %s", r.owner.chunkCall(r.Rank, r.Buf, r.Index, r.Count))
}

func (b *Builder) errRank(call string, rank ir.Rank, pos ir.PosID) *diag.Message {
	if b.spec.Coll.Ranks == 1 {
		return b.errorf(pos, "bad-rank", "%s: rank: got %d, want 0", call, rank).
			Suggest("the program has 1 rank")
	}
	return b.errorf(pos, "bad-rank", "%s: rank: got %d, want 0 to %d", call, rank, b.spec.Coll.Ranks-1).
		Suggest("the program has %d ranks", b.spec.Coll.Ranks)
}

func (b *Builder) errBuffer(call string, buf ir.BufferID, pos ir.PosID) *diag.Message {
	return b.errorf(pos, "bad-buffer", "%s: buffer: got number %d, want 0 to %d", call, buf, len(b.spec.Buffers)-1).
		Suggest("name a scratch buffer before using it")
}

func (b *Builder) errCount(call string, count int32, pos ir.PosID) *diag.Message {
	return b.errorf(pos, "bad-count", "%s: count: got %d, want 1 or more", call, count).
		Suggest("leave out transfers of nothing")
}

func (b *Builder) errNegative(call string, rank ir.Rank, buf ir.BufferID, index int32, pos ir.PosID) *diag.Message {
	m := b.errorf(pos, "negative-index", "%s: index: got %d, want 0 or more", call, index)
	if n := b.LenScratch(buf, rank); n > 0 {
		return m.Suggest("indices count from the front; the last of %s on rank %d is %d", b.label(buf), rank, n-1)
	}
	return m.Suggest("indices count from the front")
}

// NegativeIndex is the message for an explicit negative index, for front ends
// whose default is another value than -1: Builder takes ir.None as "not given".
func (b *Builder) NegativeIndex(call string, rank ir.Rank, buf ir.BufferID, index int32, pos ir.PosID) error {
	return b.errNegative(call, rank, buf, index, pos)
}

func (b *Builder) errPastEnd(call string, rank ir.Rank, buf ir.BufferID, index, count int32, pos ir.PosID) *diag.Message {
	n := b.spec.Buffers[buf].Chunks[rank]
	name := b.label(buf)
	if n == 0 {
		m := b.errorf(pos, "past-end", "%s: %s: rank %d has no %s in this %s", call,
			b.place(rank, buf, index, count), rank, name, b.spec.Coll)
		var have []ir.Rank
		for r, k := range b.spec.Buffers[buf].Chunks {
			if k > 0 {
				have = append(have, ir.Rank(r))
			}
		}
		if len(have) > 0 {
			m.Suggest("only %s of it", haveVerb(have))
		}
		return m
	}
	m := b.errorf(pos, "past-end", "%s: %s is past the end: rank %d has %s", call,
		b.place(rank, buf, index, count), rank, plural(n, name+" chunk"))
	switch {
	case count > n:
		return m.Suggest("a count of %d at most fits", n)
	case count == n:
		return m.Suggest("with a count of %d only index 0 fits", count)
	case count == 1:
		return m.Suggest("indices are 0 to %d", n-1)
	}
	return m.Suggest("with a count of %d, indices 0 to %d fit", count, n-count)
}

// haveVerb is "rank 1 has some" or "ranks 1 and 2 have some".
func haveVerb(ranks []ir.Rank) string {
	if len(ranks) == 1 {
		return rankList(ranks) + " has some"
	}
	return rankList(ranks) + " have some"
}

func plural(n int32, what string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (b *Builder) errScratchEnd(call string, rank ir.Rank, buf ir.BufferID, index, count int32, pos ir.PosID) *diag.Message {
	return b.errorf(pos, "past-end", "%s: %s is past the end: scratch holds %d chunks at most", call,
		b.place(rank, buf, index, count), maxScratch).
		Suggest("leave the index out to append")
}

func (b *Builder) errEmpty(call string, rank ir.Rank, buf ir.BufferID, index int32, pos ir.PosID) *diag.Message {
	m := b.errorf(pos, "empty-location", "%s: %s holds nothing", call, b.place(rank, buf, index, 1))
	var have []ir.Rank
	if buf >= ir.FirstScratch {
		for r, n := range b.spec.Buffers[buf].Chunks {
			if n > 0 && ir.Rank(r) != rank {
				have = append(have, ir.Rank(r))
			}
		}
	}
	if len(have) > 0 && b.LenScratch(buf, rank) == 0 {
		return m.Suggest("copy a chunk there first; of %s, only %s", b.label(buf), haveVerb(have))
	}
	return m.Suggest("copy a chunk there first")
}

func (b *Builder) errCopyOverlap(src Ref, buf ir.BufferID, index int32, same bool, pos ir.PosID) *diag.Message {
	if same {
		m := b.errorf(pos, "overlap", "copy: %s is copied onto itself", b.placeOf(src))
		if buf != src.Buf {
			return m.Suggest("%s is the same memory: this %s is in place", b.span(buf, index, src.Count), b.spec.Coll)
		}
		return m.Suggest("give another rank, or another buffer and index")
	}
	m := b.errorf(pos, "overlap", "copy: %s overlaps its destination %s", b.placeOf(src), b.span(buf, index, src.Count))
	return m.Suggest("copy to scratch first, then from there")
}

func (b *Builder) errReduceOverlap(dst, src Ref, same bool, pos ir.PosID) *diag.Message {
	if same {
		m := b.errorf(pos, "self-reduce", "reduce: %s is reduced with itself", b.placeOf(dst))
		if dst.Buf != src.Buf {
			return m.Suggest("%s is the same memory: this %s is in place", b.span(src.Buf, src.Index, src.Count), b.spec.Coll)
		}
		return m.Suggest("to double a value, copy it to scratch and reduce with the copy")
	}
	return b.errorf(pos, "self-reduce", "reduce: %s overlaps its operand %s", b.placeOf(dst),
		b.span(src.Buf, src.Index, src.Count)).
		Suggest("copy the operand to scratch first")
}

func (b *Builder) errCounts(dst, src Ref, pos ir.PosID) *diag.Message {
	return b.errorf(pos, "count-mismatch", "reduce: counts differ: %s has %s, %s has %d",
		b.placeOf(dst), plural(dst.Count, "chunk"), b.placeOf(src), src.Count).
		Suggest("take both references with the same count")
}

func (b *Builder) errTooManyTerms(dst Ref, i int32, pos ir.PosID) *diag.Message {
	return b.errorf(pos, "sum-too-large", "reduce: %s would sum more than %d chunks",
		b.place(dst.Rank, dst.Buf, dst.Index+i, 1), maxTerms).
		Suggest("each pass over the same data adds it again; look for a loop that reduces its own result")
}

func (b *Builder) errHint(call string, h Hints, pos ir.PosID) *diag.Message {
	name, got := "ch", h.Chan
	switch {
	case h.SendTB < ir.None:
		name, got = "sendtb", h.SendTB
	case h.RecvTB < ir.None:
		name, got = "recvtb", h.RecvTB
	}
	return b.errorf(pos, "bad-hint", "%s: %s: got %d, want 0 or more", call, name, got).
		Suggest("leave %s out to let the compiler choose", name)
}

func (b *Builder) errNoLink(call string, src, dst ir.Rank, pos ir.PosID) *diag.Message {
	t := b.spec.Topo
	m := b.errorf(pos, "no-link", "%s: no link from rank %d to rank %d in topology %s", call, src, dst, t.Name)
	var linked []ir.Rank
	for r := range ir.Rank(t.Ranks) {
		if r != src && t.Linked(src, r) {
			linked = append(linked, r)
		}
	}
	switch {
	case len(linked) == 0:
		return m.Suggest("rank %d can send to no rank", src)
	case len(linked) == 1:
		return m.Suggest("rank %d can send to rank %d only", src, linked[0])
	}
	return m.Suggest("rank %d can send to %s", src, rankList(linked))
}

func (b *Builder) errNoBuffer(src Ref, dst ir.Rank, index int32, pos ir.PosID) *diag.Message {
	return b.errorf(pos, "missing-buffer", "copy: index %d without a buffer", index).
		Suggest("name the buffer too, as in copy(%d, %s, %d)", dst, b.argument(src.Buf), index)
}

func (b *Builder) errNoIndex(src Ref, dst ir.Rank, buf ir.BufferID, pos ir.PosID) *diag.Message {
	return b.errorf(pos, "missing-index", "copy: buffer %s without an index", b.label(buf)).
		Suggest("give the index too, as in copy(%d, %s, %d); only scratch can be appended to", dst, b.argument(buf), src.Index)
}

func (b *Builder) errSplit(r Ref, n int32, pos ir.PosID) *diag.Message {
	if n < 1 {
		return b.errorf(pos, "bad-split", "split: got %d parts, want 1 or more", n).
			Suggest("%s has %s", b.placeOf(r), plural(r.Count, "chunk"))
	}
	var divisors []string
	for d := int32(1); d <= r.Count && len(divisors) < listed; d++ {
		if r.Count%d == 0 {
			divisors = append(divisors, strconv.Itoa(int(d)))
		}
	}
	m := b.errorf(pos, "bad-split", "split: %s can't be cut into %d equal parts: it has %s", b.placeOf(r), n, plural(r.Count, "chunk"))
	if len(divisors) == 1 {
		return m.Suggest("only 1 part is possible")
	}
	return m.Suggest("%s or %s parts are possible", strings.Join(divisors[:len(divisors)-1], ", "), divisors[len(divisors)-1])
}

func (b *Builder) errGroupPlaces(x, y Ref, pos ir.PosID) *diag.Message {
	what := "different buffers"
	if x.Rank != y.Rank {
		what = "different ranks"
	}
	return b.errorf(pos, "bad-group", "group: %s and %s are on %s", b.placeOf(x), b.placeOf(y), what).
		Suggest("only neighbors in one buffer of one rank can be grouped")
}

func (b *Builder) errGroupGap(x, y Ref, overlap bool, pos ir.PosID) *diag.Message {
	what := "leave a gap"
	if overlap {
		what = "overlap"
	}
	return b.errorf(pos, "bad-group", "group: %s and %s %s", b.placeOf(x), b.placeOf(y), what).
		Suggest("one must begin where the other ends")
}
