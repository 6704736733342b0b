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
// What crosses the border: ir.Program in, diag messages out. The package imports
// ir and internal/diag and nothing else of this module; in particular it shares
// no code with the compiler.
package checker
