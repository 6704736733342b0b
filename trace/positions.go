package trace

import (
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// positions gives ids to positions, those of one program's header.
type positions struct {
	interns map[diag.Pos]ir.PosID
	recent  [64]ir.PosID // direct-mapped cache in front of interns
}

// begin makes the header's list, whose first entry is "no position".
func (t *positions) begin(s *ir.Spec) {
	t.interns = map[diag.Pos]ir.PosID{{}: 0}
	s.Positions = []diag.Pos{{}}
}

// id is the id of p in the header's list, to which it is added when it is new.
func (t *positions) id(s *ir.Spec, p diag.Pos) ir.PosID {
	slot := &t.recent[uint32(p.Line*31+p.Col)%uint32(len(t.recent))]
	if s.Positions[*slot] == p {
		return *slot
	}
	id, ok := t.interns[p]
	if !ok {
		id = ir.PosID(len(s.Positions))
		s.Positions = append(s.Positions, p)
		t.interns[p] = id
	}
	*slot = id
	return id
}
