// Package checker judges a final ir.Program of any origin: compiled here or read
// from a file. It trusts nothing in it and changes nothing.
//
// A judgment has five parts, each in files of its own:
//
//   - structure: every number in range, one owner for each end of a connection,
//     the same sequence of counts at both ends (structure, collective, connect);
//   - deadlock: the program runs to its end with the slots it really has, at
//     every size of its window (regimes, simulate, deadlock);
//   - result: symbolic execution with exact multisets of contributions, compared
//     with the collective's postcondition (values, result, render);
//   - races: conflicting accesses of different thread blocks must be ordered by
//     happens-before (races, order, forest, live);
//   - the report itself (checker).
//
// Programs of protocol Direct have no slots. Their events and transfers, deadlocks and
// races are in the files that begin with direct; structure, values and the judgment
// of results are as above.
//
// One-sided programs (puts, signals, waits, packets) have the same five parts in the
// files that begin with one: onestructure; onesided (the sizes that matter),
// onemodel, onerun and onewait (execution and deadlock); result and values as above;
// onehistory, onesearch and oneraces. Their result and deadlocks are those of one
// launch. Races, within a launch and of one launch with the next or with the caller
// of the collective, are warnings with a code of their own and are counted in the
// report, since such programs are often written for hardware that happens to keep
// the order that they don't ask for.
//
// What the model of a one-sided program says, beyond the formats' own meaning:
//
//   - A thread block is sequential for deadlocks, and many threads for races: what
//     it does to data is in order across a nop or a barrier, or for the same range
//     and kind of operation, where the same thread does the same element.
//   - Signal, release and barrier publish what their block did before its last nop;
//     relaxed signals and packets publish nothing, and order only later writes after
//     earlier reads.
//   - A port carries a put out some time before the next signal or flush on its
//     channel is over.
//   - Launches of a program follow each other on each rank by themselves; before and
//     after each the rank's caller writes the inputs and reads the outputs, and what
//     it wrote is visible to all who know that the launch has begun.
//   - An operation on packets in a pipeline works on the units of its turn, like
//     every other (MSCCL++'s executor repeats it on all of its range every turn).
//   - Scratch is as large as its chunks need: reuse-resources, where the executor
//     wraps around in a pool of fixed size, is not modeled.
//
// Where several thread blocks take from one semaphore or channel, one order doesn't
// decide whether the program ends; a few are tried, and a warning says so.
//
// A program whose structure is wrong is judged no further, since the other parts
// rely on it. Units: offsets and counts are in chunks, sizes in bytes.
//
// # Cost
//
// Time and memory grow linearly with the chunks touched by all steps, with three
// exceptions. Every distinct (value, expectation) is expanded once, at the size
// of its reduction tree. Deadlocks are simulated about 2*log2(slots) times. Races
// cost the thread blocks of a rank for every dependency; pairs that are ordered
// only through other ranks cost nothing much if one chain of messages and
// dependencies shows it, and else (steps) x (thread blocks on the earlier side of
// such a pair) in time, in constant memory.
//
// With protocol Direct deadlocks cost the events and what each waits for, and races the
// chunks moved; a pair of transfers that neither a thread block nor a rank that takes
// part in both orders costs (events) x (thread blocks on the earlier side) in time.
//
// One-sided programs are run about four times for each of one to three shapes of
// chunk. Each meeting, signal and release costs the thread blocks of all ranks at
// most; a pair of accesses that only packets order costs a search of what happened
// in between. Locations that have races cost the square of their accesses.
//
// What crosses the border: ir.Program in, diag messages out. The package imports
// ir and internal/diag and nothing else of this module; in particular it shares
// no code with the compiler.
package checker
