// Package sim steps through a final program: it holds every rank's buffers as sums
// of the chunks that the ranks began with, the messages in flight, and who waits for
// whom, and goes forwards and backwards, move by move.
//
//	m, err := sim.New(program, sim.Options{})
//	mv, ok := m.Step()             // one move of the schedule; false if nothing can move
//	mv, err = m.StepThread(2, 0)   // one move of rank 2, thread block 0
//	mv, ok = m.Back()              // take the last move back
//	err = m.At(ctx, 1000)          // go to move 1000, from either side
//	stop, err := m.Run(ctx, sim.Until{Breaks: []sim.Break{{Rank: 2, TB: 0, Step: 5}}})
//	stop, err = m.RunBack(ctx, sim.Until{Changes: []ir.Loc{l}})
//
// What to look at, at any time:
//
//	m.Moves(), m.Recorded()        // where this is, and how many moves are known
//	m.Buffer(rank, buf)            // []Content: 0.0+1.0+2.0, sum of 0..7 [3], with marks
//	m.Content(loc)
//	m.Slots()                      // messages sent and not taken
//	m.Signals()                    // of a one-sided program: what was given and not taken
//	m.Where(), m.WhereIs(rank, tb) // every thread block's step, script line and peers
//	m.Blocked(), m.Cycle()         // who waits for what; who waits for whom in a circle
//	m.Progress()                   // outputs that hold what they should
//	m.Done(), m.Stuck()            // every thread block ended; nothing can move
//
// WriteBuffers, WriteSlots, WriteBlocked, WriteWhere and WriteMove print these as
// plain text of a given width.
//
// A move is one message of a step, or a whole step that has none. With protocol
// Direct it is the arrival of a step, the transfer of its bytes, or its end
// (docs/direct.md); of a one-sided program one operation, as far as it gets without
// waiting. A move happens as a whole: what a race does within one is not shown, nor
// are a second tile or a second launch.
//
// Moves that were taken back stay known: Step, Run and At go the same way again, and
// StepThread with another choice forgets them. A machine is for one goroutine at a
// time.
//
// sim imports ir and internal/diag. It shares no code with checker or runtime/cpu.
package sim
