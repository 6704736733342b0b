// One rank's part of one collective call: its buffers with bytes around them that must
// stay, the call, and what must come of it, computed from what the collective means.
#ifndef MSCCLSH_TEST_CALLS_H
#define MSCCLSH_TEST_CALLS_H

#include <nccl.h>

#include <string>
#include <vector>

#include "mscclsh_table.h"

struct Call {
  int32_t collective = MSCCLSH_ALLREDUCE;
  size_t count = 1;
  ncclDataType_t type = ncclFloat32;
  ncclRedOp_t op = ncclSum;
  int root = 0;
  bool in_place = false;
  int misaligned = 0;  // elements by which buffers start past a boundary of 256 bytes

  std::string text() const;
};

// function_of is the name of NCCL's function.
const char *function_of(int32_t collective);

bool is_rooted(int32_t collective);
bool is_reducing(int32_t collective);

class Part {
 public:
  Part(const Call &call, int rank, int ranks);

  // With memory of the caller's: send and recv, whose sizes are send_bytes and recv_bytes.
  Part(const Call &call, int rank, int ranks, void *send, void *recv);

  size_t send_bytes() const { return send_blocks() * block(); }
  size_t recv_bytes() const { return recv_blocks() * block(); }

  // fill writes inputs that depend on seed, and everything else anew.
  void fill(int seed);
  ncclResult_t start(ncclComm_t comm, void *stream) const;

  // wrong compares results, what must not change, and what lies around the buffers, and
  // says what it finds first; check counts a failure, with what, if anything is wrong.
  bool wrong(std::string *why) const;
  bool check(const std::string &what) const;

  const void *send() const { return send_; }
  void *recv() const { return recv_; }

 private:
  size_t block() const;
  size_t send_blocks() const;
  size_t recv_blocks() const;
  bool results_right(std::string *why) const;
  bool rest_untouched(std::string *why) const;

  Call call_;
  int rank_, ranks_, seed_ = 0;
  std::vector<unsigned char> memory_[2], before_;  // guards included
  unsigned char *send_ = nullptr, *recv_ = nullptr;
  bool own_ = true;
};

#endif
