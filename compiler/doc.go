// Package compiler turns a ChunkDAG into a Program: it replicates, lowers,
// fuses, assigns channels and thread blocks, orders every thread block so that
// the slots which connections really have suffice, and joins thread blocks by
// as few waits as it can.
//
// The pipeline is the table in passes.go. What a pass learns about nodes stays
// in the pass or in state, never in the nodes. A pass whose result cannot be
// used further on takes back what it must (a fusion, a shared thread block, a
// count) and asks for the passes from there to be run again; every such retry
// takes something back for good, so compiling ends.
//
// The argument for freedom from deadlock is in order.go, and for protocol Direct,
// whose messages have no slots, in rendezvous.go.
//
// compiler imports ir and internal/diag only.
package compiler
