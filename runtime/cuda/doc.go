// Package cuda executes an ir.Program on GPUs of one machine: one kernel of
// libmscclsh_cuda interprets any program, so nothing is generated per algorithm.
//
// The library is C++ with a plain C interface (lib/include/mscclsh_cuda.h) and is
// loaded at run time, so that one mscclsh serves machines with and without GPUs:
// Open says in one sentence what is missing (code "machine"). This package is the
// only one that calls C, through github.com/ebitengine/purego.
//
// # Who does what
//
// Here a program is validated, bound to a size and flattened into the tables that
// the library reads; inputs are made, and outputs compared with the reference of
// package runtime, which knows nothing of GPUs. The library owns devices, memory,
// message numbers, the kernel, graphs and clocks. What a program means is what
// runtime/cpu's documentation says, tile for tile and message for message, or, of a
// one-sided program, operation for operation.
//
// Ranks are mapped onto devices in blocks: with 8 ranks on devices 0 and 1, ranks 0
// to 3 are thread blocks of one launch on device 0. All thread blocks of a device
// must be resident at once; the library refuses a program where they are not, with
// both numbers.
//
// # NCCL
//
// OpenNCCL loads libnccl.so.2 into the same process, so that Compare can run the
// same collective on the same GPUs between the same clocks.
//
// cuda imports runtime, ir, internal/diag and purego, nothing else of this module.
package cuda
