// A loaded program: a copy of its tables, its buffers, and what is launched.
#ifndef MSCCLSH_PROG_H
#define MSCCLSH_PROG_H

#include <atomic>
#include <memory>
#include <vector>

#include "comm.h"
#include "launch.h"
#include "peers_views.h"

namespace mscclsh {

// kGuard bytes of value kGuardByte lie before and after a buffer.
constexpr int64_t kGuard = 256;
constexpr unsigned char kGuardByte = 0xa5;

// What a step of a kind does.
inline bool reads_src(int32_t kind) { return kind != kNop && kind != kRecv && kind != kRcs; }
inline bool writes_dst(int32_t kind) { return kind != kNop && kind != kSend && kind != kRrs; }

// Buffer is one of a rank's own.
struct Buffer {
  unsigned char *allocated = nullptr;  // guard bytes included
  int64_t allocated_bytes = 0;
  unsigned char *attached = nullptr;
  int64_t attached_bytes = 0;
  unsigned char *at = nullptr;  // where the contents start
  int64_t bytes = 0;
};

// ThreadBlock is one thread block of one rank.
struct ThreadBlock {
  int32_t rank, tb;           // tb counts within the rank
  int32_t first_step, steps;  // into Prog::steps_
  struct Use {
    const Conn *conn;
    bool sends;
    int32_t peer, chan;
  };
  std::vector<Use> ends;
  std::vector<int32_t> in, out;  // of each step: index into ends, or -1
};

// Touched are the chunks of a buffer of its own that steps touch: from begin up to end.
struct Touched {
  int32_t begin = 0, end = 0;
};

// Grid is what one device launches. Its counters are of the program, not of a size: launches
// of all that it is prepared for or bound to are counted together, by the device as they
// end, and since a device runs them one after the other all of its thread blocks agree on
// the count. What a thread block posts is the count in the upper half of a word and its
// progress below (see Args). In whatever launch, of however many tiles and steps, that is
// more than all that was posted in earlier ones, and nothing posted then is as much as what
// is waited for now. Kernels for short programs whose thread blocks don't wait for each
// other neither post nor count, all blocks of a launch alike.
struct Grid {
  std::vector<int32_t> blocks;      // indexes into Prog::tbs_
  unsigned char *tables = nullptr;  // the blocks' tables
  uint64_t *posted = nullptr;       // one a block
  uint64_t *launches = nullptr;     // one a block
  Record *records = nullptr;
  Event *events = nullptr;
  DivideRun *divides = nullptr;
  int64_t n_divides = 0;
  size_t shared = 0;  // bytes
  Args args = {};
  Device::Graph *graph = nullptr;
  // Of the block that has most: connections, steps and dependencies.
  size_t max_ends = 0, max_steps = 0, max_deps = 0;
};

class Prog {
 public:
  Prog(Comm *comm, const mscclsh_program &p);
  virtual ~Prog();
  Prog(const Prog &) = delete;
  Prog &operator=(const Prog &) = delete;

  void prepare(const mscclsh_size &size, mscclsh_prepared *out);
  void attach(int32_t rank, int32_t buf, void *memory, int64_t bytes);
  void upload(int32_t rank, int32_t buf, int64_t offset, const void *from, int64_t bytes);
  void download(int32_t rank, int32_t buf, int64_t offset, void *to, int64_t bytes);
  void fill(int32_t rank, int32_t buf, int32_t value);
  void check_guards();
  void enqueue(int32_t launches);
  void enqueue_on(int32_t device_id, void *stream);
  double run(int32_t launches);
  void capture(int32_t launches, const std::vector<Prog *> &then = {});
  double replay(int32_t replays);
  void waits(std::vector<mscclsh_wait> *to);
  virtual int64_t events(mscclsh_event *to, int64_t n);

  // What expect.cpp asks: chunks of a buffer, whether it is one of its own, and where
  // bytes of it lie.
  int64_t chunk_bytes() const { return chunk_bytes_; }
  int32_t chunks(int32_t rank, int32_t buf) const { return chunks_[size_t(3 * rank + buf)]; }
  bool own(int32_t rank, int32_t buf) const { return base_buf_[size_t(3 * rank + buf)] == buf; }
  unsigned char *range(int32_t rank, int32_t buf, int64_t offset, int64_t bytes);

  // buffer_bytes is the size of a buffer. Scratch of a one-sided program may take several
  // times its chunks.
  int64_t buffer_bytes(int32_t rank, int32_t buf) const {
    return chunks(rank, buf) * chunk_bytes_ * (buf == 2 ? scratch_times_ : 1);
  }
  int32_t scratch_times() const { return scratch_times_; }
  // one_sided is whether peers may touch a rank's memory between its launches.
  virtual bool one_sided() const { return false; }

  // fits loads the kernels for a data type and a reduction, and refuses what can't be
  // resident at once with any of them.
  virtual void fits(int32_t dtype, int32_t op, int32_t threads, mscclsh_prepared *out);

  // What call.cpp asks. sizing checks a size; image makes what lies in the memory of a
  // device, an index, to run it there; choose takes a kernel for it, and as many threads.
  virtual Sizing sizing(const mscclsh_size &size) const;
  virtual Image image(const Sizing &s, int32_t device, const Places &at);
  virtual void choose(const Sizing &s, const Shape &shape, Kernel *kernel, int32_t *threads,
                      size_t *shared) const;
  void fit(int32_t device, Kernel kernel, int32_t threads, size_t shared, mscclsh_prepared *out);
  int32_t blocks(int32_t device) const { return int32_t(grids_[size_t(device)].blocks.size()); }
  Touched touched(int32_t rank, int32_t buf) const { return touched_[size_t(3 * rank + buf)]; }
  int32_t base_buf(int32_t rank, int32_t buf) const { return base_buf_[size_t(3 * rank + buf)]; }
  int32_t base_chunk(int32_t rank, int32_t buf) const {
    return base_chunk_[size_t(3 * rank + buf)];
  }
  // direct is whether peers touch a rank's input or output.
  virtual bool direct() const { return wire_.protocol == kDirect; }
  // scratch is where the scratch of a bound call starts, as a device sees that of a rank. It
  // fails where less was set aside than a size takes.
  virtual unsigned char *scratch(int32_t device, int32_t rank, const Sizing &s) const;
  // reserve sets aside the scratch of bound calls of a program that has scratch of its own.
  virtual void reserve(int64_t chunk_bytes);
  std::atomic<int32_t> calls{0};      // that are bound, on whatever device
  std::atomic<bool> captured{false};  // one of them was, at whatever time

  Comm *const comm;

 protected:
  // For OneProg, which loads by itself.
  Prog(Comm *comm, const Wire &wire) : comm(comm), wire_(wire), views_(comm) {}

  // load.cpp
  uint64_t build(const mscclsh_program &p);
  void check_shape(const mscclsh_program &p) const;
  void check_step(const ThreadBlock &tb, int32_t i) const;
  void free_loaded();
  void find_ends();
  void find_extents();
  void use_end(ThreadBlock *tb, int32_t step, bool sends);
  std::string name(const ThreadBlock &tb, int32_t step) const;

  // prepare.cpp
  virtual void set_size(const mscclsh_size &size);
  void free_prepared();
  void allocate(int32_t misalign, int32_t elem);
  virtual void build_tables(const mscclsh_size &size);
  Sizing kernels(int32_t dtype, int32_t op, int32_t threads) const;
  void work_out();
  size_t shared_bytes(const Grid &g) const;

  // build.cpp and join.cpp
  class Builder;

  // join.cpp
  void match_messages();
  bool is_exchange(const ThreadBlock &tb, int32_t i) const;
  bool early(int32_t global) const;

  // share.cpp
  class Sharing;
  void find_shared();
  bool shares(const ThreadBlock &tb, int32_t i) const;

  // prepare.cpp
  void fit(mscclsh_prepared *out);
  unsigned char *place(int32_t rank, int32_t buf, int32_t chunk) const;

  // prog.cpp
  Buffer &owner(int32_t rank, int32_t buf);
  void ready() const;
  void launch_once();
  double timed();
  void drop_graphs();

  Device &device_of(int32_t rank) { return comm->device(comm->device_of(rank)); }

  const Wire wire_;
  std::vector<mscclsh_step> steps_;
  std::vector<mscclsh_dep> deps_;
  std::vector<int32_t> chunks_, base_buf_, base_chunk_;  // [ranks*3]
  std::vector<mscclsh_divide> divides_;
  std::vector<int32_t> first_tb_;  // [ranks+1], into tbs_
  std::vector<ThreadBlock> tbs_;
  std::vector<Touched> touched_;  // [ranks*3]; what lies inside another buffer counts there
  // Direct: of each step, the one that sends what it receives, and that receives what it
  // sends, or -1.
  std::vector<int32_t> partner_in_, partner_out_;
  // LL and LL128: of each rank's buffer, the chunks that several thread blocks touch and one
  // of them writes, in no order but perhaps that of messages.
  std::vector<std::vector<bool>> shared_;  // [ranks*3]
  bool messages_order_ = false;            // there are such chunks, on whatever rank
  std::vector<int32_t> block_of_;          // of each thread block: in its device's grid
  std::vector<Buffer> buffers_;  // [ranks*3]; those not their own, or elsewhere, stay empty
  Views views_;
  std::vector<Grid> grids_;  // one a device

  bool prepared_ = false;
  std::shared_ptr<int> turn_;                 // another one whenever prepared anew
  std::vector<std::weak_ptr<int>> recorded_;  // turns of the graph's other programs
  int64_t chunk_bytes_ = 0, tile_bytes_ = 0, tiles_ = 0;
  int32_t scratch_times_ = 1;  // bytes of scratch for each byte of its chunks
  int32_t threads_ = 0;
  Kernel kernel_ = nullptr;
  DivideKernel divide_ = nullptr;
  Sizing sizing_;  // that it is prepared for
};

}  // namespace mscclsh

#endif
