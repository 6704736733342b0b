// Package trace is the meaning of a program as it is written: which chunk
// operations were recorded, in which order, and what every location holds after
// each of them. It owns the rules of the language that need no compiler: a
// reference must be the newest to all of its locations, ranges must fit, a
// location must hold something before it is read, links must exist.
//
// Builder is the one way in. Front ends, tests and generators call it; it knows
// no syntax and asks for positions only to name them in messages. A call that
// fails returns a *diag.Message and leaves the program as it was, so a caller
// may report it and go on.
//
// A location holds a symbolic value: the multiset of input chunks summed there.
// Values are ids into an arena of leaves and two-operand sums, so recording an
// operation costs a few words a chunk however large the sums grow; Contributions
// expands a value when somebody asks.
//
// Finish gives the ir.ChunkDAG.
//
// One is the same for one-sided programs, which say themselves what is put, got,
// signaled and waited for, and by which thread block: it checks single operations,
// and at the end that channels have two ends and signals their waits. Its Finish
// gives the ir.OneTrace.
//
// trace imports ir and internal/diag, nothing else
// of this module.
package trace
