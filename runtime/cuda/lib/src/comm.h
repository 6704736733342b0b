// A communicator: ranks on devices, and the connections between them.
#ifndef MSCCLSH_COMM_H
#define MSCCLSH_COMM_H

#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <vector>

#include "device.h"

namespace mscclsh {

class Prog;

// Wire is the kind of a connection: programs that agree in it share connections.
struct Wire {
  int32_t protocol, slots;
  int64_t slot_bytes;

  // lines is the number of flagged packets or lines of a slot, 0 with Simple; stride
  // the distance of slots, bytes.
  int64_t lines() const;
  int64_t stride() const;
};

// Conn is one connection. Counters lie where they are polled, each on lines of its own.
struct Conn {
  void *at_sender = nullptr, *at_receiver = nullptr;  // what was allocated
  uint64_t *send_seq = nullptr, *taken = nullptr;     // at the sender
  uint64_t *recv_seq = nullptr, *sent = nullptr;      // at the receiver
  unsigned char *slots = nullptr;                     // at the receiver
  int32_t src = 0, dst = 0;                           // indexes of devices
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
  int32_t device_of(int32_t rank) const { return device_of_[size_t(rank)]; }
  uint32_t *dead(int32_t device) const { return dead_[size_t(device)]; }
  uint32_t *abort_word() const { return abort_->word(); }

  // connect finds or makes a connection.
  const Conn &connect(int32_t src, int32_t dst, int32_t chan, const Wire &wire);

  void add(Prog *p) { progs_.insert(p); }
  void remove(Prog *p) { progs_.erase(p); }
  bool used() const { return !progs_.empty(); }

  // check_alive fails after a launch was cut short.
  void check_alive() const;

  // sync waits for all devices and fails when a launch was cut short.
  void sync();

  // waits are the records of blocks that were stuck, timed-out ones first.
  std::vector<mscclsh_wait> waits();

  uint64_t flag_modulus;
  int64_t watchdog_ns;

 private:
  using Key = std::tuple<int32_t, int32_t, int32_t, int32_t, int32_t, int64_t>;

  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<int32_t> device_of_;  // of each rank, an index into devices_
  std::vector<uint32_t *> dead_;
  std::unique_ptr<HostFlag> abort_;
  std::map<Key, Conn> conns_;
  std::set<Prog *> progs_;
};

}  // namespace mscclsh

#endif
