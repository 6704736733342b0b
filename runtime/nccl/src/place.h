// Buffers of one rank's call, and how a program gets them. A program is made for calls in
// place or for calls out of place, and all ranks must run the same one, but an application
// may call in place on one rank and not on another, with buffers that overlap in some
// other way, or that are not aligned as the program wants them. What doesn't fit is
// staged: copied to memory of ours before the launch, or from there after it. None of that
// shows on the wire, so no rank needs to know of another's.
#ifndef MSCCLSH_NCCL_PLACE_H
#define MSCCLSH_NCCL_PLACE_H

#include <cstdint>
#include <vector>

#include "table.h"

namespace mscclsh::nccl {

// Buffers is one rank's part of a call.
struct Buffers {
  int32_t collective, rank, ranks, root;
  int64_t block;  // bytes of the call's count
  const void *send;
  void *recv;

  // What the rank reads and writes there, bytes; 0: it does not use the buffer.
  int64_t send_bytes() const;
  int64_t recv_bytes() const;

  // offset is where, in place, the smaller buffer lies in the larger one, bytes.
  int64_t offset() const;
};

enum class Place {
  kOut,     // apart from each other
  kIn,      // as NCCL defines it for the collective
  kEither,  // the rank uses only one of them, or none
  kOverlap  // in some other way
};
Place place_of(const Buffers &b);

// spoils_input finds whether a rank's part of a program writes to its input anywhere
// but where the result belongs, which NCCL's calls never do. root is that of a reduction to
// a root, which alone gets a result.
bool spoils_input(const Table &t, int32_t program, int32_t rank, int32_t collective, int32_t root);

// Copy is one copy between memory of the call and staged memory.
struct Copy {
  void *to;
  const void *from;
  int64_t bytes;
};

// Staged is what a program is launched with, and the copies around it.
struct Staged {
  void *input = nullptr, *output = nullptr;
  std::vector<Copy> before, after;
};

// Form is the program that a rank runs, and what there is to know of it.
struct Form {
  bool in_place;
  bool spoils;        // spoils_input
  int64_t alignment;  // of its buffers, bytes
};

// staging_need is the bytes that stage will want of staging, and stage decides what is
// launched and copied. staging is memory of ours, aligned to 256; it is not read where
// staging_need is 0.
int64_t staging_need(const Buffers &b, const Form &f);
Staged stage(const Buffers &b, const Form &f, void *staging);

}  // namespace mscclsh::nccl

#endif
