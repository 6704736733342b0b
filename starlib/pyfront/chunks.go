package pyfront

import (
	"fmt"
	"slices"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/mscclsh/mscclsh/starlib"
)

// chunkValue is msccl-tools' Chunk: which input it is, and where it is wanted.
type chunkValue struct{ o starlib.Origin }

var (
	_ starlark.HasAttrs   = (*chunkValue)(nil)
	_ starlark.Comparable = (*chunkValue)(nil)
)

func (c *chunkValue) String() string {
	return fmt.Sprintf("Chunk(origin_rank=%d, origin_index=%d, dst_rank=%d, dst_index=%d)",
		c.o.Rank, c.o.Index, c.o.DstRank, c.o.DstIndex)
}
func (c *chunkValue) Type() string         { return "Chunk" }
func (c *chunkValue) Freeze()              {}
func (c *chunkValue) Truth() starlark.Bool { return true }
func (c *chunkValue) Hash() (uint32, error) {
	return uint32(c.o.Rank)*0x9E3779B1 + uint32(c.o.Index), nil
}

// CompareSameType compares origins, as msccl-tools does.
func (c *chunkValue) CompareSameType(op syntax.Token, y starlark.Value, _ int) (bool, error) {
	n := compareOrigins(c.o, y.(*chunkValue).o)
	switch op {
	case syntax.EQL:
		return n == 0, nil
	case syntax.NEQ:
		return n != 0, nil
	case syntax.LT:
		return n < 0, nil
	case syntax.GT:
		return n > 0, nil
	}
	return false, fmt.Errorf("chunks can't be compared by %s", op)
}

func compareOrigins(x, y starlib.Origin) int {
	if x.Rank != y.Rank {
		return int(x.Rank) - int(y.Rank)
	}
	return int(x.Index) - int(y.Index)
}

func (c *chunkValue) AttrNames() []string {
	return []string{"dst_index", "dst_rank", "origin_index", "origin_rank", "reduce"}
}

func (c *chunkValue) Attr(name string) (starlark.Value, error) {
	switch name {
	case "origin_rank":
		return starlark.MakeInt(int(c.o.Rank)), nil
	case "origin_index":
		return starlark.MakeInt(int(c.o.Index)), nil
	case "dst_rank":
		return starlark.MakeInt(int(c.o.DstRank)), nil
	case "dst_index":
		return starlark.MakeInt(int(c.o.DstIndex)), nil
	case "reduce":
		return reduceMethod([]*chunkValue{c}, nil), nil
	}
	return nil, nil
}

// sumValue is msccl-tools' ReduceChunk: several chunks added up.
type sumValue struct {
	creation starlark.Value // creation_rank: where it was made, if a script said so
	chunks   []*chunkValue  // sorted
}

var (
	_ starlark.HasAttrs   = (*sumValue)(nil)
	_ starlark.Comparable = (*sumValue)(nil)
)

// shownChunks is how many chunks of a sum are written out.
const shownChunks = 16

func (s *sumValue) String() string {
	list, more := s.chunks, ""
	if len(list) > shownChunks {
		list, more = list[:shownChunks], fmt.Sprintf(", %d more", len(s.chunks)-shownChunks)
	}
	text := ""
	for i, c := range list {
		if i > 0 {
			text += ", "
		}
		text += c.String()
	}
	return fmt.Sprintf("ReduceChunk(creation_rank=%s, chunks=[%s%s])", s.creation, text, more)
}
func (s *sumValue) Type() string         { return "ReduceChunk" }
func (s *sumValue) Freeze()              {}
func (s *sumValue) Truth() starlark.Bool { return true }
func (s *sumValue) Hash() (uint32, error) {
	h := uint32(len(s.chunks))
	for _, c := range s.chunks {
		x, _ := c.Hash() // never fails
		h = h*31 + x
	}
	return h, nil
}

// CompareSameType compares what is added up; where it was made doesn't matter.
func (s *sumValue) CompareSameType(op syntax.Token, y starlark.Value, _ int) (bool, error) {
	same := slices.EqualFunc(s.chunks, y.(*sumValue).chunks, func(a, b *chunkValue) bool { return compareOrigins(a.o, b.o) == 0 })
	switch op {
	case syntax.EQL:
		return same, nil
	case syntax.NEQ:
		return !same, nil
	}
	return false, fmt.Errorf("sums of chunks can't be compared by %s", op)
}

func (s *sumValue) AttrNames() []string { return []string{"chunks", "creation_rank", "reduce", "sort"} }

func (s *sumValue) Attr(name string) (starlark.Value, error) {
	switch name {
	case "creation_rank":
		return s.creation, nil
	case "chunks":
		list := make([]starlark.Value, len(s.chunks))
		for i, c := range s.chunks {
			list[i] = c
		}
		return starlark.NewList(list), nil
	case "reduce":
		return reduceMethod(s.chunks, s.creation), nil
	case "sort":
		return nativeMethod("sort", func(starlark.Tuple, []starlark.Tuple) (starlark.Value, error) { return starlark.None, nil }), nil
	}
	return nil, nil
}

func newSum(creation starlark.Value, chunks []*chunkValue) *sumValue {
	sorted := slices.Clone(chunks)
	slices.SortStableFunc(sorted, func(a, b *chunkValue) int { return compareOrigins(a.o, b.o) })
	return &sumValue{creation, sorted}
}

// reduceMethod is reduce of a chunk or of a sum. As in msccl-tools, a sum keeps
// its creation rank, and a chunk takes on that of a sum.
func reduceMethod(chunks []*chunkValue, creation starlark.Value) starlark.Value {
	return nativeMethod("reduce", func(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		var dst, other starlark.Value
		if err := starlark.UnpackArgs("reduce", args, kwargs, "dst", &dst, "chunk", &other); err != nil {
			return nil, err
		}
		at := creation
		if at == nil {
			at = dst
		}
		all := slices.Clone(chunks)
		switch o := other.(type) {
		case *chunkValue:
			all = append(all, o)
		case *sumValue:
			if creation == nil {
				at = o.creation
			}
			all = append(all, o.chunks...)
		default:
			return nil, fmt.Errorf("reduce: chunk: got %s, want Chunk or ReduceChunk", other.Type())
		}
		return newSum(at, all), nil
	})
}

var chunkClass = &class{name: "Chunk", is: func(v starlark.Value) bool { _, ok := v.(*chunkValue); return ok },
	make: func(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		var rank, index int32
		dstRank, dstIndex := int32(-1), int32(-1)
		if err := starlark.UnpackArgs("Chunk", args, kwargs, "origin_rank", &rank, "origin_index", &index,
			"dst_rank?", &dstRank, "dst_index?", &dstIndex); err != nil {
			return nil, err
		}
		return &chunkValue{starlib.Origin{Rank: rank, Index: index, DstRank: dstRank, DstIndex: dstIndex}}, nil
	}}

var sumClass = &class{name: "ReduceChunk", is: func(v starlark.Value) bool { _, ok := v.(*sumValue); return ok },
	make: func(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		var creation starlark.Value
		var list starlark.Iterable
		if err := starlark.UnpackArgs("ReduceChunk", args, kwargs, "creation_rank", &creation, "chunks", &list); err != nil {
			return nil, err
		}
		var chunks []*chunkValue
		for v := range starlark.Elements(list) {
			c, ok := v.(*chunkValue)
			if !ok {
				return nil, fmt.Errorf("ReduceChunk: chunks: got %s in the list, want Chunk", v.Type())
			}
			chunks = append(chunks, c)
		}
		return newSum(creation, chunks), nil
	}}
