package sim

import "slices"

// Cells is a copy of all that changes, and of who can move.
func (m *Machine) Cells() ([]int32, []uint64) { return slices.Clone(m.cells), slices.Clone(m.ready) }

// LogBytes is the memory of the record of moves.
func (m *Machine) LogBytes() int { return 8*len(m.moves) + 8*len(m.changes) }

// Rescan finds out from scratch who can move.
func (m *Machine) Rescan() []uint64 {
	out := make([]uint64, len(m.ready))
	for t := range m.tbs {
		if !m.ended(int32(t)) && m.rules.can(int32(t)) {
			out[t/64] |= 1 << (t % 64)
		}
	}
	return out
}
