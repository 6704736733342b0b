// Package ir holds the nouns of the system and the three forms of a program:
// ChunkDAG (what moves, as the user wrote it), InstrDAG (instructions of single
// ranks joined by communication edges) and Program (steps on thread blocks: what
// a runtime executes or a file holds).
//
// Everything is plain data: dense int32 ids, edges in slices, a source position
// on every node. Results of a compiler pass live in the pass, not in fields here.
// Each form has a one-line-a-node text form and a parser for it, and presents
// itself to gonum as a graph.Directed.
//
// Units: offsets and counts are in chunks, sizes in bytes, times in nanoseconds.
// The meaning of steps, slots and counts is that of MSCCL's interpreter
// (microsoft/msccl, msccl_interpreter.h), stated in docs/ir.md.
//
// ir imports internal/diag and gonum's graph interfaces, nothing else of this
// module or outside it.
package ir
