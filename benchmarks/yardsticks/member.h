// One rank of a measurement: its GPU, its communicator and its buffers.
#ifndef YARDSTICKS_MEMBER_H
#define YARDSTICKS_MEMBER_H

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "nccl_calls.h"
#include "team.h"

enum class Kind { kAllReduce, kAllGather, kReduceScatter };
enum class Buffers { kPlain, kAllocated, kRegistered, kWindows };

// Plan is what to measure.
struct Plan {
  std::string path = "libnccl.so.2";
  Kind kind = Kind::kAllReduce;
  Buffers buffers = Buffers::kPlain;
  bool in_place = false, eager = false;  // eager: without a graph
  int repetitions = 20, launches = 0;
  std::vector<int> devices = {0, 1};
  std::vector<int64_t> sizes;  // bytes, as nccl-tests counts them

  int ranks() const { return int(devices.size()); }

  // replayed is how many launches a repetition has: about a millisecond of them, and in place
  // no more than what a sum over and over leaves within the range of fp32.
  int replayed(int64_t bytes) const {
    const int usual = bytes <= 1 << 20 ? 200 : bytes <= 16 << 20 ? 50 : bytes <= 128 << 20 ? 10 : 4;
    const int n = launches > 0 ? launches : usual;
    if (kind != Kind::kAllReduce || !in_place) return n;
    return std::min(n, int(220 / std::log2(ranks())) + 1);
  }
};

// Numbers repeats values with a period that no power of two shares, so that what is
// shifted by one is wrong, and so that pieces of any place are compared in memory's order.
class Numbers {
 public:
  static constexpr int64_t kPeriod = (1 << 20) - 3, kPiece = 1 << 20;

  template <class F>
  explicit Numbers(const F &value) : values_(kPeriod + kPiece) {
    for (int64_t i = 0; i < kPeriod; i++) values_[size_t(i)] = value(i);
    for (int64_t i = kPeriod; i < kPeriod + kPiece; i++)
      values_[size_t(i)] = values_[size_t(i - kPeriod)];
  }
  // at are kPiece values from the i-th on.
  const float *at(int64_t i) const { return &values_[size_t(i % kPeriod)]; }

 private:
  std::vector<float> values_;
};

class Member {
 public:
  Member(const Plan &plan, Team &team, int rank);

  // measure does everything for one size: a call, and repetitions of many, with what they
  // leave compared each time. All ranks are in it at once.
  void measure(size_t index);

 private:
  float *allocate(size_t bytes);
  void offer(void *buffer, size_t bytes);
  void fill();
  void place(int64_t bytes);
  void call();
  void restore();
  cudaGraphExec_t capture(int launches);
  double replay(cudaGraphExec_t graph, int launches);
  long long wrong(int launches);
  long long differ(const float *device, int64_t from, int64_t count, const Numbers &want);
  float input(int rank, int64_t i) const;
  Numbers expected(int launches) const;
  Row row() const;

  const Plan &plan_;
  Team &team_;
  const int rank_;
  Library library_;
  Library::Reduce *reduce_ = nullptr;
  Library::Gather *gather_ = nullptr;
  Library::Comm comm_ = nullptr;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  float *source_ = nullptr, *result_ = nullptr, *host_ = nullptr;
  std::vector<Numbers> inputs_;  // of every rank

  // Of the size at hand: elements of all ranks, of a rank's share, of what is sent and
  // received; and where.
  int64_t count_ = 0, share_ = 0, sent_ = 0, received_ = 0;
  float *send_ = nullptr, *recv_ = nullptr;
};

#endif
