// A loaded program: a copy of its tables, its buffers, and what is launched.
#ifndef MSCCLSH_PROG_H
#define MSCCLSH_PROG_H

#include <memory>
#include <vector>

#include "comm.h"
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

// Grid is what one device launches.
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
};

class Prog {
 public:
  Prog(Comm *comm, const mscclsh_program &p);
  ~Prog();
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
  int64_t events(mscclsh_event *to, int64_t n);

  // What expect.cpp asks: chunks of a buffer, whether it is one of its own, and where
  // bytes of it lie.
  int64_t chunk_bytes() const { return chunk_bytes_; }
  int32_t chunks(int32_t rank, int32_t buf) const { return chunks_[size_t(3 * rank + buf)]; }
  bool own(int32_t rank, int32_t buf) const { return base_buf_[size_t(3 * rank + buf)] == buf; }
  unsigned char *range(int32_t rank, int32_t buf, int64_t offset, int64_t bytes);

  Comm *const comm;

 private:
  // load.cpp
  uint64_t build(const mscclsh_program &p);
  void check_shape(const mscclsh_program &p) const;
  void check_step(const ThreadBlock &tb, int32_t i) const;
  void free_loaded();
  void find_ends();
  void use_end(ThreadBlock *tb, int32_t step, bool sends);
  std::string name(const ThreadBlock &tb, int32_t step) const;

  // prepare.cpp
  void set_size(const mscclsh_size &size);
  void free_prepared();
  void allocate(int32_t misalign, int32_t elem);
  void build_tables(const mscclsh_size &size);
  bool build_grid(const mscclsh_size &size, int32_t device);
  bool is_quick(const ThreadBlock &tb, int32_t regime, const Step *steps, const End *ends);
  void fill_table(const ThreadBlock &tb, unsigned char *table, const Grid &grid, int32_t block,
                  int32_t regime) const;
  void count_messages(const ThreadBlock &tb, int32_t regime, Step *steps, End *ends) const;
  unsigned char *far_place(int32_t from, int32_t rank, int32_t buf, int32_t chunk) const;

  // join.cpp
  void match_messages();
  bool is_exchange(const ThreadBlock &tb, int32_t i) const;
  bool early(int32_t global) const;
  void set_ways(const ThreadBlock &tb, Step *steps) const;
  bool joins(const ThreadBlock &tb, const Step *steps, const End *ends, int32_t i, int32_t k) const;
  bool joins_direct(const ThreadBlock &tb, const Step &first, const Step &s, int32_t i,
                    int32_t k) const;
  void join_steps(const ThreadBlock &tb, int32_t regime, int32_t window, const End *ends,
                  Step *steps) const;
  void set_meetings(const ThreadBlock &tb, int32_t regime, Step *steps) const;

  // share.cpp
  class Sharing;
  void find_shared();
  bool shares(const ThreadBlock &tb, int32_t i) const;

  // prepare.cpp
  void add_divides(int32_t elem);
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
  int32_t threads_ = 0;
  Kernel kernel_ = nullptr, kernel_quick_[2] = {};  // the latter without and with dependencies
  bool has_deps_ = false;                           // in this process
  int64_t longest_ = 0;                             // message, bytes
  DivideKernel divide_ = nullptr;
  bool divides_now_ = false;
};

}  // namespace mscclsh

#endif
