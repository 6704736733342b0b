// A communicator: ranks on devices, and the connections between them.
#ifndef MSCCLSH_COMM_H
#define MSCCLSH_COMM_H

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <vector>

#include "arena.h"
#include "device.h"
#include "peers_imports.h"
#include "peers_views.h"
#include "pool.h"

namespace mscclsh {

class Ports;
class Prog;

// Wire is the kind of a connection: programs that agree in it share connections.
struct Wire {
  int32_t protocol, slots;
  int64_t slot_bytes;

  // lines is the number of flagged packets or lines of a slot, 0 with Simple; stride
  // the distance of slots, bytes.
  int64_t lines() const;
  int64_t stride() const;

  // depth is how many slots there are, withheld how many messages a receiver may take
  // before it tells the sender: at most as many as there are slots more than the program
  // relies on. Both are powers of two.
  int32_t depth() const;
  int32_t withheld() const;
};

// Conn is one connection. Counters lie where they are polled, apart from what others poll.
// When one of its ranks lives in another process, that rank's half is where this
// process has it open; when both do, there is nothing of it here.
struct Conn {
  uint64_t *send_seq = nullptr, *taken = nullptr;  // at the sender
  uint64_t *recv_seq = nullptr, *sent = nullptr;   // at the receiver
  unsigned char *slots = nullptr;                  // at the receiver
  int32_t src = 0, dst = 0;                        // ranks
  int64_t slot_bytes = 0;                          // of all slots
  bool open = false;                               // both halves are known where they must be
  bool asked = false;                              // by the program being loaded

  void set_sender(unsigned char *half);
  void set_receiver(unsigned char *half);
  unsigned char *sender() const { return reinterpret_cast<unsigned char *>(send_seq); }
  unsigned char *receiver() const { return slots; }
};

// Comm owns devices and connections; of its programs it knows who they are.
class Comm {
 public:
  explicit Comm(const mscclsh_comm_options &o);
  ~Comm();
  Comm(const Comm &) = delete;
  Comm &operator=(const Comm &) = delete;

  int32_t ranks() const { return int32_t(device_of_.size()); }
  int32_t devices() const { return int32_t(devices_.size()); }
  Device &device(int32_t i) { return *devices_[size_t(i)]; }
  uint32_t *dead(int32_t device) const { return dead_[size_t(device)]; }
  uint32_t *abort_word() const { return abort_->word(); }
  Peers &peers() { return peers_; }
  Imports &imports() { return imports_; }
  Ports &ports();  // of one-sided programs, made when first asked for

  // local is whether a rank lives in this process; device_of is its device then, an
  // index, and -1 of other ranks. need_local fails for those.
  bool local(int32_t rank) const { return peers_.local(rank); }
  int32_t device_of(int32_t rank) const { return device_of_[size_t(rank)]; }
  void need_local(int32_t rank) const;

  // together is Peers::together without anything to tell. agree is the same; f returns a
  // digest of what this process was given, which must be the same in all.
  void together(const char *what, const std::function<void()> &f);
  void agree(const char *what, const std::function<uint64_t()> &f);

  // part waits until all processes have come here, or does nothing when that can no
  // longer be expected of them. It never fails.
  void part(const char *what);

  // alloc_buffer allocates on a device; mapped is for memory that other processes open.
  // The device's free frees it.
  void *alloc_buffer(int32_t device, size_t bytes, bool mapped);

  // alloc_for and free_of are of memory for the caller, on a rank's device.
  void *alloc_for(int32_t rank, int64_t bytes);
  void free_of(int32_t rank, void *memory);

  // connect_all calls find, which calls connect for every connection of a program and
  // returns the program's digest, and opens those that lead to other processes. It is a
  // collective call.
  void connect_all(const std::function<uint64_t()> &find);

  // connect finds or makes a connection. Its halves elsewhere are known once connect_all
  // is done.
  const Conn &connect(int32_t src, int32_t dst, int32_t chan, const Wire &wire);

  void add(Prog *p) { progs_.insert(p); }
  void remove(Prog *p) { progs_.erase(p); }
  bool used() const { return !progs_.empty(); }

  // What comm_calls.cpp has. index_of finds a device of this process by its number.
  int32_t index_of(int32_t device_id) const;
  void reserve(int64_t bytes);
  void copy_on(int32_t device_id, void *stream, void *to, const void *from, int64_t bytes);
  uint64_t identity(int32_t device_id, const void *at, int64_t bytes);
  Pool &pool(int32_t device) { return pools_[size_t(device)]; }

  // scratch is where that of bound calls starts, as a device sees it; null is none.
  unsigned char *scratch(int32_t device, int32_t rank) const {
    return scratch_.at(device, rank, 2);
  }
  int64_t scratch_bytes() const { return scratch_bytes_; }

  // Threads that call for different devices share these.
  std::atomic<int32_t> calls{0};      // that are bound
  std::atomic<bool> captured{false};  // a bound call was, at whatever time
  int32_t windows = 0;                // that are open

  // poll fails when the communicator is of no more use, and abort makes it so. They may be
  // called by any thread at any time.
  void poll() const;
  void abort() { abort_->abort(); }

  // check_alive fails after a launch was cut short.
  void check_alive() const;

  // settle waits for all devices before memory is freed, and never fails.
  void settle();

  // sync waits for all devices and fails when a launch was cut short.
  void sync();

  // waits are the records of blocks that were stuck, timed-out ones first.
  std::vector<mscclsh_wait> waits();

  uint64_t flag_modulus;
  int64_t watchdog_ns;

 private:
  void open_devices(const mscclsh_comm_options &o);
  void open_abort(std::unique_ptr<SharedFile> file, const std::vector<Bytes> &told);
  void free_memory();
  void free_scratch();
  void same(const char *what, const std::vector<Bytes> &told) const;
  void tell_halves(Bytes *to);
  void open_halves(const std::vector<Bytes> &told);

  using Key = std::tuple<int32_t, int32_t, int32_t, int32_t, int32_t, int64_t>;

  Peers peers_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::deque<Arena> arenas_;        // of each device
  std::deque<Pool> pools_;          // of each device
  std::vector<int32_t> device_of_;  // of each rank, an index into devices_
  Imports imports_;
  std::vector<uint32_t *> dead_;
  std::unique_ptr<HostFlag> abort_;
  std::map<Key, Conn> conns_;
  std::vector<Conn *> asked_;  // by the program being loaded, and not open yet
  std::set<Prog *> progs_;
  std::unique_ptr<Ports> ports_;
  Views scratch_;
  std::vector<std::pair<int32_t, void *>> scratch_memory_;  // device
  int64_t scratch_bytes_ = 0;                               // of each rank
};

}  // namespace mscclsh

#endif
