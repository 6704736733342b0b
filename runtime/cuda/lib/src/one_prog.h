// A loaded one-sided program: what Prog has, but for blocks of operations.
#ifndef MSCCLSH_ONE_PROG_H
#define MSCCLSH_ONE_PROG_H

#include <map>

#include "one_kernels.h"
#include "one_port.h"
#include "prog.h"

namespace mscclsh {

class OneProg : public Prog {
 public:
  OneProg(Comm *comm, const mscclsh_one_program &p);
  ~OneProg() override;

  int64_t events(mscclsh_event *to, int64_t n) override;
  bool one_sided() const override { return true; }

 private:
  // What a rank counts. Channels have one counter, where they are waited for.
  enum Kind { kChannel, kSemaphore, kBarrier, kKinds };

  // Counter is what a launch does to one counter.
  struct Counter {
    uint64_t gives = 0, takes = 0;
    std::map<int32_t, uint64_t> givers, takers;  // thread blocks (of all), how often each
    int32_t thread = -1;                         // that gives; -2: several
    int32_t parts = 0;                           // of a barrier
  };
  using Counts = std::map<std::pair<int32_t, int32_t>, uint64_t>;  // rank and counter

  // Use is what an operation does to a counter of a rank.
  struct Use {
    int32_t rank, counter;
    bool gives, takes, ports;
    int32_t peer, chan;  // for records
  };

  class Filler;

  // one_load.cpp
  void check_tables(const mscclsh_one_program &p) const;
  uint64_t build(const mscclsh_one_program &p);
  void check_block(int32_t tb) const;
  void check_op(int32_t tb, const mscclsh_op &op, bool inner) const;
  void check_operand(int32_t tb, const mscclsh_op &op, const mscclsh_operand &o) const;
  void check_refs(int32_t tb, const mscclsh_op &op) const;
  void find_barriers();
  void allocate_words();
  void open_ports();
  void clear_words();
  void free_own();
  [[noreturn]] void bad(int32_t tb, const mscclsh_op &op, const std::string &text) const;

  // one_build.cpp
  void set_size(const mscclsh_size &size) override;
  void build_tables(const mscclsh_size &size) override;
  void check_units(int32_t elem) const;
  void choose_kernel(const OneKernels &k, const mscclsh_size &size);
  void build_grid(int32_t device, bool trace);
  std::vector<DivideRun> divide_runs(int32_t device) const;

  // one_count.cpp
  void count();
  void count_op(int32_t tb, const mscclsh_op &op, uint64_t times);
  std::vector<Use> uses(int32_t rank, const mscclsh_op &op) const;
  int64_t turns(const mscclsh_op &op) const;
  int32_t reduction(const mscclsh_op &op) const;

  // The counters of a rank: channels, then semaphores, then barriers. Their words lie in
  // this order, each in a line of its own, then as many for the numbers that are drawn, the
  // number of requests to ports, and how far each port has been flushed.
  int32_t first(int32_t rank, Kind kind) const { return first_[size_t(kKinds * rank + kind)]; }
  int32_t counters(int32_t rank) const { return n_counters_[size_t(rank)]; }
  int32_t ports(int32_t rank) const { return n_ports_[size_t(rank)]; }
  const mscclsh_channel &channel(int32_t rank, int32_t i) const {
    return channels_[size_t(first_channel_[size_t(rank)] + i)];
  }
  int32_t port_of(int32_t rank, int32_t channel) const;
  Counter &counter(int32_t rank, int32_t i) { return counts_[size_t(rank)][size_t(i)]; }
  // word is a word of a rank as a device, an index, reaches it.
  uint64_t *word(int32_t device, int32_t rank, int64_t line) const;

  std::vector<mscclsh_span> blocks_;  // of each of tbs_
  std::vector<mscclsh_op> ops_;
  std::vector<mscclsh_operand> operands_;
  std::vector<int32_t> refs_;
  std::vector<mscclsh_channel> channels_;
  std::vector<int32_t> semaphores_;
  std::vector<int32_t> first_channel_, first_semaphore_;  // [ranks+1]
  std::vector<std::map<int32_t, int32_t>> barriers_;      // of each rank: number to index
  std::vector<int32_t> first_;                            // [ranks*kKinds]
  std::vector<int32_t> n_counters_, n_ports_;             // [ranks]
  bool packets_ = false, double_ = false;
  int32_t alignment_ = 16, block_threads_ = 0;

  std::vector<unsigned char *> words_;  // [3*ranks] for words_at_, the first of each rank's
  Views words_at_;
  std::vector<PortQueue *> queues_;  // of each rank here that has ports

  // Of the size that it is prepared for.
  std::vector<std::vector<Counter>> counts_;  // of each rank
  int32_t run_op_ = 0, elem_ = 1;             // the latter in bytes
  bool any_op_ = false;                       // reductions differ
  bool small_ = false;                        // packets of 4 bytes
  struct Traced {
    int32_t tb, op, turn;
  };
  std::vector<std::vector<Traced>> traced_;  // of each device: what its events are about
};

}  // namespace mscclsh

#endif
