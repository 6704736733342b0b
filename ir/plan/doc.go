// Package plan reads and writes MSCCL++'s execution plans: JSON for one-sided
// programs, ir.Program with OneSided.
//
// It owns the three dialects of the format, what MSCCL++'s executor makes of
// them, and the executor's limits. What crosses its border is a program and
// messages with the line and column of every operation; whether a program is
// right is the checker's business. It imports ir and diag, and never a runtime.
//
// # Strict and literal
//
// Read takes every operation at its word. With Options.Literal it takes the plan
// as MSCCL++'s executor runs it, where the two differ:
//
//   - flush does nothing: the executor counts outputs, which a flush has none of;
//   - get reads at the index of its destination and writes at that of its source;
//   - put and ppkt via memory take every source from the buffer of the first one;
//   - every reduction is a sum: reduce_op is never read;
//   - a plan over a limit of the executor is refused. The executor itself checks
//     the operations of a thread block only, and overwrites memory otherwise;
//   - plans of older dialects are refused: the present executor cannot load them.
//
// Literal does not imitate what a Program cannot say: operations of a pipeline
// that are smaller than its chunks (their remaining size wraps around), packet
// operations in a pipeline (they work on the whole range every time), packet
// flags that repeat when a captured graph is replayed, scratch that wraps around
// in its pool with reuse_resources, and elements left over when a size is no
// multiple of 16 bytes.
package plan
