// The layout of a table of algorithms: one file that "mscclsh table build" writes and
// libmscclsh_nccl reads. The Go package table writes and reads the same bytes.
//
// All numbers are little-endian; every offset counts bytes from the start of the file,
// is a multiple of 16 and lies inside it. That of an array without elements is 0. Strings
// are UTF-8, end with a zero byte, and have at most 65536 bytes. The steps and the other
// tables of a program are the arrays of mscclsh_program, or of mscclsh_one_program
// (mscclsh_cuda.h), as they are, so that a program is handed to mscclsh_load or to
// mscclsh_one_load where it lies.
//
// What a call is looked up by: its collective, its bytes, the number of ranks and
// nodes, data type, operation, root, and whether it is in place. The bytes of a call
// are those of the larger of input and output of one rank, as nccl-tests counts them:
//
//   allreduce, broadcast, reduce, sendrecv   count * size of an element
//   allgather                                ranks * sendcount * size
//   reducescatter                            ranks * recvcount * size
//   alltoall, gather, scatter                ranks * count * size
//
// Entries are sorted: by collective, ranks, then priority from high to low, then least
// bytes, then name. The first entry that matches is taken. None: NCCL. An entry matches
// if none of these words (docs/table.md), in this order, is a reason against it:
//
//   collective, ranks, nodes   they are others
//   dtype, op                  not among the entry's; op only where the collective reduces, and
//                              always for averages of fp16 and FP8, which NCCL divides first
//   root                       the entry has one, and it is another
//   place                      the entry is for windows and has no program for the call's place
//   bytes                      the count is 0, or the bytes lie outside of [min_bytes, max_bytes]
//   multiple                   the count is no multiple of the entry's, or the bytes of
//                              count / multiple elements are none of its unit
//   memory                     the entry is for windows, and the buffers are not in windows, or
//                              the collective has a root
//   ctas                       max_blocks is more than the communicator allows
//   scratch                    scratch_chunks * (count / count_chunks) * size of an element, of
//                              the entry's program that needs most, or the copies of calls that
//                              have no program of their own (mixable), are more than there may be
//   unloaded                   this machine can't run it; of sendrecv, always
//
// and "lower priority" is that of an entry that matches too, behind the one taken. Only
// windows see the place: there all ranks call alike, as their offsets are the same.
//
// Root: of sendrecv the rank that sends; the next one, (root + 1) % ranks, receives. A rank
// sees its own sends and receives alone, so the library takes no such entry.
#ifndef MSCCLSH_TABLE_H
#define MSCCLSH_TABLE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MSCCLSH_TABLE_MAGIC "MSCCLTAB"
#define MSCCLSH_TABLE_VERSION 2

// Collectives.
enum {
  MSCCLSH_ALLREDUCE = 0,
  MSCCLSH_ALLGATHER = 1,
  MSCCLSH_REDUCESCATTER = 2,
  MSCCLSH_BROADCAST = 3,
  MSCCLSH_REDUCE_TO_ROOT = 4,
  MSCCLSH_ALLTOALL = 5,
  MSCCLSH_GATHER = 6,
  MSCCLSH_SCATTER = 7,
  MSCCLSH_SENDRECV = 8,  // rank 0 sends to rank 1, and so on: see docs/table.md
  MSCCLSH_COLLECTIVES = 9
};

// What an entry demands of buffers.
enum {
  MSCCLSH_ANY_MEMORY = 0,
  // Both buffers in windows that were registered collectively (Direct, and one-sided programs
  // that touch other ranks' input or output). Only collectives in
  // which every rank uses both can have it: allreduce, allgather, reducescatter, alltoall. In
  // others a rank that passes no buffer can't know whether its peers' are registered.
  MSCCLSH_WINDOWS = 1
};

typedef struct {
  char magic[8];
  uint32_t version;
  uint32_t header_bytes;  // of this structure
  uint64_t file_bytes;
  // FNV-1a, 64 bits, of all bytes after the header. Ranks compare it with the header's own
  // bytes folded in.
  uint64_t digest;
  // Offsets of arrays of mscclsh_table_entry and mscclsh_table_program. They follow the header in
  // this order, and made_by follows them, all at the next multiple of 16: so no field of the
  // header, which the digest leaves out, can change unnoticed.
  uint64_t entries, programs;
  uint32_t n_entries, n_programs;
  uint32_t abi;  // MSCCLSH_ABI that the programs are laid out for
  uint32_t zero;
  uint64_t made_by;  // offset of a string: the version of mscclsh
  uint64_t zeros[5];
} mscclsh_table_header;

typedef struct {
  uint64_t name;                  // offset of a string, unique in the table
  uint64_t source;                // offset of a string: the line of the table's source, "FILE:LINE"
  uint64_t min_bytes, max_bytes;  // of a call, both included
  int64_t multiple;    // elements of the call's count (NCCL's argument) must be a multiple of it:
                       // count_chunks of its programs, so that no chunk has padding
  int64_t alignment;   // bytes that both buffers must be aligned to; a power of two
  int32_t collective;  // MSCCLSH_ALLREDUCE...
  int32_t ranks, nodes;
  int32_t priority;
  int32_t root;          // the only one that matches; -1: not rooted, or any
  uint32_t dtypes;       // bit d: runtime.DType d may be used
  uint32_t ops;          // bit o: runtime.ReduceOp o may be used; all ones where nothing is reduced
  int32_t memory;        // MSCCLSH_ANY_MEMORY...
  int32_t threads;       // per thread block; 0: the runtime's default
  int32_t max_blocks;    // thread blocks of the rank that has most
  int32_t in_place;      // index of the program for calls in place, -1: none
  int32_t out_of_place;  // and out of place
  // 1: some ranks may call in place and others not, because both programs send the same
  // messages over the same connections. 0: calls of the kind that has no program of its own
  // are brought into the other form by copies on each rank. How much memory these may take
  // counts as scratch (reason "scratch"), on all ranks alike, since one can't see what another
  // needs: with a program out of place the smaller of input and output, else the bytes of
  // the call. What is mixable, and what demands windows, takes none.
  // One-sided programs mix with themselves alone: in_place and out_of_place are one program,
  // made for calls out of place, that writes no input and holds in place too.
  int32_t mixable;
  int32_t unit;  // bytes that a chunk must be a multiple of: a one-sided program's alignment, or 1
  int32_t zero[2];
} mscclsh_table_entry;

typedef struct {
  uint64_t tbs;           // int32[ranks]
  uint64_t steps_per_tb;  // int32[sum of tbs]
  uint64_t steps;         // mscclsh_step[n_steps]
  uint64_t deps;          // mscclsh_dep[n_deps]
  uint64_t chunks;        // int32[ranks*3]
  uint64_t base_buf;      // int32[ranks*3]
  uint64_t base_chunk;    // int32[ranks*3]
  uint64_t divides;       // mscclsh_divide[n_divides]
  uint64_t title;         // offset of a string: name, collective and parameters, for people
  int64_t n_steps, n_deps, n_divides;
  int64_t slot_bytes;
  int64_t
      count_chunks;  // chunks that the call's count is cut into: chunk bytes are count*size/this
  // Of the rank that has most; of a one-sided program times what packets (2) and halves (2)
  // take.
  int64_t scratch_chunks;
  // A message carries at most this many chunks whatever fits into a slot. The regime of a
  // call is min(max(slot_bytes / chunk_bytes, 1), max_regime), or max_regime without slots,
  // where chunk_bytes = count * size of an element / count_chunks. One-sided programs have 1.
  int64_t max_regime;
  int32_t ranks, tbs_total;
  int32_t slots, protocol;
  // Offset of a mscclsh_table_one; 0: it sends and receives. A one-sided program has no steps,
  // dependencies and slots, steps_per_tb is 0, and its protocol is LL where it has packets,
  // else Simple.
  uint64_t one;
} mscclsh_table_program;

// What a one-sided program has beside: the rest of mscclsh_one_program.
typedef struct {
  uint64_t blocks;        // mscclsh_span[tbs_total]
  uint64_t n_channels;    // int32[ranks]
  uint64_t channels;      // mscclsh_channel[all_channels]
  uint64_t n_semaphores;  // int32[ranks]
  uint64_t semaphores;    // int32[all_semaphores]
  uint64_t ops;           // mscclsh_op[n_ops]
  uint64_t operands;      // mscclsh_operand[n_operands]
  uint64_t refs;          // int32[n_refs]
  int64_t n_ops, n_operands, n_refs;
  int64_t all_channels, all_semaphores;
  int32_t packets, double_scratch;
  int32_t alignment, threads;
} mscclsh_table_one;

#ifdef __cplusplus
}
#endif

#endif
