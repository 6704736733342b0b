// A rank's collective calls: what is chosen for them, and how they are launched.
#ifndef MSCCLSH_NCCL_CALL_H
#define MSCCLSH_NCCL_CALL_H

#include <list>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine.h"
#include "place.h"
#include "real.h"
#include "windows.h"

namespace mscclsh::nccl {

// Request is one call of NCCL's interface as it was made. dtype and op are the runtime's
// numbers (mscclsh_cuda.h), -1 for those that it has not got.
struct Request {
  int32_t collective;
  const void *send;
  void *recv;
  uint64_t count;
  int32_t dtype, op, root;
  ncclComm_t comm;
  cudaStream_t stream;
};

// dtype_of and op_of translate NCCL's numbers.
int32_t dtype_of(ncclDataType_t t);
int32_t op_of(ncclRedOp_t o);

// All is the buffers of all ranks of one collective, where all live in this process, and the
// numbers of their allocations: 0 is not known.
struct All {
  std::vector<void *> buffers;       // [ranks*2]
  std::vector<uint64_t> identities;  // [ranks*2]
  bool operator<(const All &o) const {
    return std::tie(buffers, identities) < std::tie(o.buffers, o.identities);
  }
};

// Calls belongs to one rank. Like NCCL's communicators it takes one call at a time.
class Calls {
 public:
  Calls(std::shared_ptr<Engine> engine, int32_t rank, int32_t device, int32_t max_ctas);
  ~Calls();
  Calls(const Calls &) = delete;
  Calls &operator=(const Calls &) = delete;

  // choose finds the entry of the table for a call, or -1: NCCL. What was chosen once is
  // remembered.
  int32_t choose(const Request &r);

  // launch carries a call out with the entry that choose found for it. It fails with
  // Failure. Nothing has happened then; the ranks have chosen alike, though, so NCCL is no
  // way out for one of them.
  void launch(const Request &r, int32_t entry, const All *all = nullptr);

  // prepare does what launch would do, short of enqueueing anything: it finds memory and
  // binds. Neither can be counted on while a kernel runs on another device that waits for
  // this one's. It may fail as launch does, which then fails again.
  void prepare(const Request &r, int32_t entry, const All *all = nullptr);

  // choose_all finds the entry of protocol Direct for a collective of which all ranks' calls
  // are known, as if their buffers were in windows; -1: there is none. launch and prepare need it
  // all then. identify appends the numbers of the allocations of this rank's buffers, and fails
  // where the buffers reach beyond them.
  int32_t choose_all(const std::vector<Request> &ranks);
  void identify(const Request &r, std::vector<uint64_t> *to);

  // forget is for a window whose registration ends, forget_freed for those whose memory
  // ncclMemFree has freed.
  void forget(ncclWindow_t window);
  void forget_freed();

  // free gives all back; launches that are on their way go on.
  void free();

  Windows windows;

 private:
  struct Key {
    uint64_t count;
    int32_t collective, dtype, op, root;
    // Of calls in windows alone: whether they are in place, and what their buffers are
    // aligned to, at most kPage.
    bool registered, in_place;
    bool all;  // windows or not: all ranks' buffers are known
    int32_t alignment;
    bool operator==(const Key &o) const {
      return count == o.count && collective == o.collective && dtype == o.dtype && op == o.op &&
             root == o.root && registered == o.registered && in_place == o.in_place &&
             all == o.all && alignment == o.alignment;
    }
  };
  struct Decision {
    Key key;
    int32_t entry;
    bool known;
  };
  // Bound is a call that the engine knows: a program at a size, and where buffers are in
  // windows, or, without, how they lie: each launch then brings its own.
  struct BoundKey {
    int32_t program, threads, dtype, op;
    int64_t chunk;
    // Of input and output: offsets in windows, else bytes past a multiple of MSCCLSH_PLACE,
    // -1 where there is none.
    int64_t at[2];
    const mscclsh_window *windows[2];
    uint64_t all;  // the number of all ranks' buffers in all_; 0: of none
    bool operator==(const BoundKey &o) const;
  };
  struct BoundHash {
    size_t operator()(const BoundKey &k) const;
  };
  struct Bound {
    BoundKey key;
    mscclsh_call *call;
  };
  using Order = std::list<Bound>;

  Key key_of(const Request &r);
  bool in_window(const void *p, int64_t bytes);
  bool current(const Window &w) const;
  bool possible(const Request &r) const;
  int32_t decided(const Key &k);
  int32_t decide(const Key &k);
  void tell(const Key &k, int32_t entry, const std::vector<Reason> &reasons) const;
  Form form_of(const mscclsh_table_entry &e, const Buffers &b, int32_t *program);
  bool spoils(int32_t program);
  void *staging(int64_t bytes);
  mscclsh_call *bind(const BoundKey &k, void *const *buffers);
  void unbind(Order::iterator b);
  void gone(const Window &w);  // calls that are bound to it are freed
  void copy(const Copy &c, cudaStream_t stream);
  void carry_out(const Request &r, int32_t entry, const All *all, bool enqueues);
  void launch_all(const Request &r, const mscclsh_table_entry &e, const All &all, bool enqueues);
  void launch_direct(const Request &r, const mscclsh_table_entry &e, bool enqueues);
  void launch_staged(const Request &r, const mscclsh_table_entry &e, bool enqueues);
  BoundKey bound_key(const Request &r, const mscclsh_table_entry &e, int32_t program) const;

  const std::shared_ptr<Engine> engine_;
  const int32_t rank_, ranks_, device_, max_ctas_;
  std::vector<Decision> decisions_;
  std::unordered_set<std::string> told_;
  Order bound_;  // the latest first
  std::unordered_map<BoundKey, Order::iterator, BoundHash> find_;
  std::vector<void *> buffers_;      // [ranks*2] of a launch, null but for this rank's
  std::vector<signed char> spoils_;  // of each program; -1: not looked at
  std::vector<std::unique_ptr<Mapped>> staging_;
  std::map<All, uint64_t> all_;  // numbers of all ranks' buffers that calls were bound to
  uint64_t last_all_ = 0;
};

}  // namespace mscclsh::nccl

#endif
