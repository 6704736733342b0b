// Programs written by hand for the tests, and a communicator that runs them.
#ifndef MSCCLSH_TEST_PROGRAMS_H
#define MSCCLSH_TEST_PROGRAMS_H

#include <string>
#include <vector>

#include "mscclsh_cuda.h"

struct TestBlock {
  std::vector<mscclsh_step> steps;
};

// Program is a flattened program under construction.
struct Program {
  explicit Program(int32_t ranks);

  // block starts a thread block of a rank; step adds a step to one and returns it.
  int32_t block(int32_t rank);
  mscclsh_step &step(int32_t rank, int32_t tb, int32_t kind, int32_t count = 1);

  // after makes the latest step of (rank, tb) wait for the latest of (rank, on).
  void after(int32_t rank, int32_t tb, int32_t on);

  // flatten fills a structure that points into this one.
  mscclsh_program flatten(int32_t protocol, int32_t slots, int64_t slot_bytes);

  std::vector<std::vector<TestBlock>> gpus;
  std::vector<int32_t> chunks, base_buf, base_chunk;  // [ranks*3]
  std::vector<mscclsh_divide> divides;
  int32_t chunks_total = 0;  // of the whole buffer

 private:
  struct Wait {
    int32_t rank, tb, step, on, on_step;
  };
  std::vector<Wait> waits_;
  std::vector<int32_t> tbs_, steps_per_tb_;
  std::vector<mscclsh_step> steps_;
  std::vector<mscclsh_dep> deps_;
};

// ring is an in-place ring allreduce on so many channels, k chunks a step.
Program ring(int32_t ranks, int32_t channels, int32_t k);

// split_ring is the same on one channel, with sends and receives on thread blocks of their
// own, so that it needs no slots.
Program split_ring(int32_t ranks);

// all_pairs is an out-of-place allreduce over scratch, one thread block a peer and one
// that reduces, with copies, reductions and waits between thread blocks.
Program all_pairs(int32_t ranks);

// gather is the same with a single thread block a rank that receives from all peers
// and sends to all, on one channel each.
Program gather(int32_t ranks);

// chain is a broadcast of rank root's input along the ranks.
Program chain(int32_t ranks, int32_t root);

// swaps is an allreduce of two ranks, of so many chunks one after the other on one thread
// block: with enough of them its steps exceed what shared memory holds, and all of them touch
// the input or the output.
Program swaps(int32_t chunks, bool in_place);

// long_chain passes one chunk round the ring so often that steps exceed what shared
// memory holds.
Program long_chain(int32_t rounds);

#endif
