// Package cpu executes an ir.Program on goroutines, step by step as a GPU's
// interpreter would: one goroutine a thread block, a bounded ring of slots per
// connection, a semaphore per thread block, tiles where a chunk exceeds a slot.
// What deadlocks on a GPU deadlocks here, and is told by who waits for what.
//
// # Steps
//
// With chunks of s bytes, slots of B bytes and K = Transport.Regime chunks a
// message, a thread block does
//
//	for each tile of min(s, B) bytes of every chunk       (one tile if s <= B)
//	  for each step
//	    wait for the step's dependencies in this tile
//	    for c = 0; c < count; c += K
//	      one message: the tile's part of chunks c ... min(c+K, count)-1
//	    if the step posts: publish (tile, step)
//
// K > 1 implies a single tile, so a message is always one run of memory. A step
// that receives and sends takes its message, waits for a free output slot while
// holding the input slot, computes from slot to slot, and only then frees the
// input slot. A wait is satisfied by the named step or any later one that posts.
//
// # Protocol Direct
//
// There are no slots, regimes or tiles: see docs/direct.md. Every step has a stage,
// raised by its own thread block: it has arrived, its own part is done, it has ended.
// Who moves the bytes waits for the stages of the others and goes from memory to
// memory. The rules decide alone who that is, so the k-th send of a connection
// finds the k-th receive before the run. In chaos mode bytes are moved in two
// halves with others' turns between.
//
// # One-sided programs
//
// They have operations on memory of all ranks in place of steps, counters in place
// of connections, and sizes of which every chunk is a multiple of the program's
// alignment; other sizes are refused. Ranges are cut as MSCCL++ cuts them: into parts
// by units of the alignment, the first taking the remainder, then by a pipeline's
// bytes a turn. A packet is four bytes of data and a flag in one store; the flag is
// the number of the run, so that a packet of an earlier one is none. Where packets
// are missing, an operation goes on with other chunks first, as its threads would.
// Puts by port are carried out at once; flush has nothing to wait for. Switch
// operations read and write the memory of every rank of their group in turn. All
// signals order everything here, relaxed ones too: what a program gets wrong there
// is for the checker to find.
//
// # Avg
//
// Avg moves and adds like Sum; when all steps are done, every output of several
// contributions is divided once by their number. A finished sum is only copied
// from then on, and the division of an element does not depend on where it
// happens, so the results are the same numbers as if the step where the last
// contribution arrives had divided. The division is part of the measured time.
//
// # Scheduling
//
// A worker that can't go on yields the processor a few times and then parks; the
// one that makes its condition true wakes it. Parked workers are counted under
// the lock that parks them, and a worker that is about to wake another is itself
// not parked. So "all are parked" is exactly a deadlock, found without a timeout.
//
// cpu imports runtime, ir and internal/diag, nothing else of this module. It
// bounds-checks a program before running it, but whether the program is right is
// the checker's business: a racy one gives unpredictable bytes, never a crash.
package cpu
