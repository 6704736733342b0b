// A loaded one-sided program: what Prog has, but for blocks of operations.
#ifndef MSCCLSH_ONE_PROG_H
#define MSCCLSH_ONE_PROG_H

#include <map>

#include "one_kernels.h"
#include "one_port.h"
#include "prog.h"

namespace mscclsh {

// one_cut is part k of n bytes in p parts, all multiples of unit; the first take the remainder.
struct OneRange {
  int64_t skip, bytes;
};
inline OneRange one_cut(int64_t n, int64_t unit, int64_t k, int64_t p) {
  const int64_t q = n / unit / p, rest = n / unit % p;
  const int64_t skip = k * q + (k < rest ? k : rest);
  return {skip * unit, (q + (k < rest)) * unit};
}

class OneProg : public Prog {
 public:
  OneProg(Comm *comm, const mscclsh_one_program &p);
  ~OneProg() override;

  int64_t events(mscclsh_event *to, int64_t n) override;
  bool one_sided() const override { return true; }

  // What bound calls ask. Their scratch is the program's own, as peers may write there before
  // a launch has begun and after one has ended. Halves of it lie at one distance whatever the
  // size, or packets of a launch could come to lie on those of the one before.
  bool direct() const override { return reaches_; }
  Sizing sizing(const mscclsh_size &size) const override;
  Image image(const Sizing &s, int32_t device, const Places &at) override;
  void choose(const Sizing &s, const Shape &shape, Kernel *kernel, int32_t *threads,
              size_t *shared) const override;
  void fits(int32_t dtype, int32_t op, int32_t threads, mscclsh_prepared *out) override;
  unsigned char *scratch(int32_t device, int32_t rank, const Sizing &s) const override;
  void reserve(int64_t chunk_bytes) override;

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

  // Run is what a size makes of the program.
  struct Run {
    int64_t chunk = 0;                         // bytes
    int32_t op = 0, threads = 0;               // the reduction
    int32_t elem = 1;                          // bytes
    bool small = false;                        // packets of 4 bytes
    bool bound = false;                        // of a bound call
    std::vector<std::vector<Counter>> counts;  // of each rank
  };

  struct Traced {
    int32_t tb, op, turn;
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
  void find_touched();
  void find_sums();
  void allocate_words();
  void free_scratch();
  void open_ports();
  void clear_words();
  void free_own();
  [[noreturn]] void bad(int32_t tb, const mscclsh_op &op, const std::string &text) const;

  // one_build.cpp
  void set_size(const mscclsh_size &size) override;
  void build_tables(const mscclsh_size &size) override;
  Shape build_grid(const Run &run, int32_t device, bool trace);
  Image make_image(const Run &run, int32_t device, const Places &at, std::vector<Traced> *traced);
  std::vector<DivideRun> divide_runs(const Run &run, int32_t device, const Places &at) const;

  // one_size.cpp
  Run run_of(const Sizing &s, bool bound) const;
  bool small_at(int64_t chunk) const;
  void check_units(int64_t chunk, int32_t elem) const;
  Kernel kernel_for(const OneKernels &k, int32_t op, bool quick) const;
  int32_t threads_for(const mscclsh_size &size) const;
  int32_t most_threads(int32_t threads) const;

  // one_count.cpp
  void count(Run *run) const;
  void count_op(Run *run, int32_t tb, const mscclsh_op &op, uint64_t times) const;
  std::vector<Use> uses(int32_t rank, const mscclsh_op &op) const;
  int64_t turns(const mscclsh_op &op, int64_t chunk) const;
  int32_t reduction(const mscclsh_op &op, int32_t run_op) const;

  // The counters of a rank: channels, then semaphores, then barriers. Their words lie in
  // this order, each in a line of its own, then as many for the numbers that are drawn; all
  // of these twice, first for what is prepared and then for bound calls; then the number of
  // requests to ports, and how far each port has been flushed.
  int32_t first(int32_t rank, Kind kind) const { return first_[size_t(kKinds * rank + kind)]; }
  int32_t counters(int32_t rank) const { return n_counters_[size_t(rank)]; }
  int32_t ports(int32_t rank) const { return n_ports_[size_t(rank)]; }
  const mscclsh_channel &channel(int32_t rank, int32_t i) const {
    return channels_[size_t(first_channel_[size_t(rank)] + i)];
  }
  int32_t port_of(int32_t rank, int32_t channel) const;
  // word is a word of a rank as a device, an index, reaches it; those that lie there twice
  // begin at counted.
  uint64_t *word(int32_t device, int32_t rank, int64_t line) const;
  int64_t counted(int32_t rank, bool bound) const { return bound ? 2 * counters(rank) : 0; }
  int64_t requests(int32_t rank) const { return 4 * int64_t(counters(rank)); }

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
  bool reaches_ = false;  // an operation touches another rank's input or output
  bool sized_ = false;    // launches of different sizes count differently
  int32_t alignment_ = 16, block_threads_ = 0;

  std::vector<unsigned char *> words_;  // [3*ranks] for words_at_, the first of each rank's
  Views words_at_;
  std::vector<PortQueue *> queues_;  // of each rank here that has ports

  // Of bound calls: how far each thread block's counters have come, where that depends on
  // sizes; of each device, room for the most counters of a block. And their scratch.
  std::vector<OneSum *> sums_;
  uint32_t most_sums_ = 0;
  std::vector<unsigned char *> scratch_memory_;  // [3*ranks] for scratch_at_
  Views scratch_at_;
  int64_t scratch_chunk_ = 0;  // the largest chunk that it has room for, bytes

  std::vector<std::vector<Traced>> traced_;  // of each device: what its events are about
};

}  // namespace mscclsh

#endif
