// Package runtime holds what every way of executing an ir.Program needs and
// none of them should invent again: data types and reductions over raw bytes,
// the layout of a user's elements in the chunks of a collective, generated or
// given inputs, the independent reference result with its error bound, files of
// tensors, and nccl-tests' bandwidth figures.
//
// What crosses its border: byte slices holding elements in little endian order,
// element counts, and *diag.Message for whatever is refused. Executing steps is
// the business of the packages below it (cpu first).
//
// Sizes are what nccl-tests calls the size: the bytes of the larger of input and
// output on one rank, so for allgather the whole output, for reduce_scatter the
// whole input, for alltoall the whole buffer.
//
// Reference never sees a program: it computes every output from the collective's
// postcondition alone, so that it can't share a mistake with what it judges.
//
// runtime imports ir and internal/diag and nothing else of this module.
package runtime
