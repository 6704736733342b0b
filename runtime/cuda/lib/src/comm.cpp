#include "comm.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "prog.h"

namespace mscclsh {

std::string format(const char *f, ...) {
  char text[1024];
  va_list args;
  va_start(args, f);
  std::vsnprintf(text, sizeof text, f, args);
  va_end(args);
  return text;
}

namespace {

// kLine keeps counters of different writers apart, bytes.
constexpr int64_t kLine = 128;

}  // namespace

int64_t Wire::lines() const {
  if (protocol == kLL) return (slot_bytes + 7) / 8;
  if (protocol == kLL128) return (slot_bytes + 119) / 120;
  return 0;
}

int64_t Wire::stride() const {
  if (protocol == kLL) return (lines() * 16 + kLine - 1) / kLine * kLine;
  if (protocol == kLL128) return lines() * 128;
  return (slot_bytes + kLine - 1) / kLine * kLine;
}

Comm::Comm(const mscclsh_comm_options &o)
    : flag_modulus(o.flag_modulus ? uint64_t(uint32_t(o.flag_modulus)) : uint64_t(1) << 31),
      watchdog_ns(o.watchdog_ns ? o.watchdog_ns : int64_t(10) * 1000000000) {
  if (o.ranks < 1 || o.devices == nullptr) invalid(format("a communicator of %d ranks", o.ranks));
  if (flag_modulus < 16 || (flag_modulus & (flag_modulus - 1)) || o.watchdog_ns < 0)
    invalid(format("flag modulus %d or watchdog time %lld ns is out of range", o.flag_modulus,
                   static_cast<long long>(o.watchdog_ns)));
  const int32_t count = device_count();
  for (int32_t r = 0; r < o.ranks; r++) {
    const int32_t id = o.devices[r];
    if (id < 0 || id >= count)
      refused(format("rank %d wants device %d, but there are %d", r, id, count));
    size_t i = 0;
    while (i < devices_.size() && devices_[i]->id != id) i++;
    if (i == devices_.size()) devices_.emplace_back(new Device(id));
    device_of_.push_back(int32_t(i));
  }
  for (auto &d : devices_)
    for (auto &other : devices_)
      if (d != other) d->open_peer(*other);
  abort_.reset(new HostFlag);
  for (auto &d : devices_) dead_.push_back(static_cast<uint32_t *>(d->alloc(sizeof(uint32_t))));
}

Comm::~Comm() {
  for (auto &d : devices_) {
    try {
      d->sync();
    } catch (const Failure &) {  // its memory goes with the process
    }
  }
  auto free_at = [&](int32_t device, void *p) {
    try {
      devices_[size_t(device)]->free(p);
    } catch (const Failure &) {
    }
  };
  for (auto &c : conns_) {
    free_at(c.second.src, c.second.at_sender);
    free_at(c.second.dst, c.second.at_receiver);
  }
  for (size_t i = 0; i < dead_.size(); i++) free_at(int32_t(i), dead_[i]);
}

const Conn &Comm::connect(int32_t src, int32_t dst, int32_t chan, const Wire &wire) {
  const Key key(src, dst, chan, wire.protocol, wire.slots, wire.slot_bytes);
  auto found = conns_.find(key);
  if (found != conns_.end()) return found->second;
  Conn c;
  c.src = device_of(src);
  c.dst = device_of(dst);
  const int64_t slots = wire.slots * wire.stride();
  c.at_sender = device(c.src).alloc(size_t(2 * kLine));
  try {
    c.at_receiver = device(c.dst).alloc(size_t(slots + 2 * kLine));
  } catch (...) {
    device(c.src).free(c.at_sender);
    throw;
  }
  unsigned char *s = static_cast<unsigned char *>(c.at_sender);
  unsigned char *r = static_cast<unsigned char *>(c.at_receiver);
  c.send_seq = reinterpret_cast<uint64_t *>(s);
  c.taken = reinterpret_cast<uint64_t *>(s + kLine);
  c.slots = r;
  c.recv_seq = reinterpret_cast<uint64_t *>(r + slots);
  c.sent = reinterpret_cast<uint64_t *>(r + slots + kLine);
  return conns_.emplace(key, c).first->second;
}

void Comm::check_alive() const {
  if (abort_->raised())
    throw Failure(MSCCLSH_EDEAD,
                  "the communicator was cut short by its watchdog earlier: make a new one");
}

void Comm::sync() {
  for (auto &d : devices_) d->sync();
  if (!abort_->raised()) return;
  std::string text = "the watchdog ended a launch";
  std::vector<mscclsh_wait> w = waits();
  if (!w.empty()) text += format("; %zu thread blocks were waiting", w.size());
  for (size_t i = 0; i < w.size() && i < 1; i++) {
    const mscclsh_wait &x = w[i];
    text += format(", rank %d thread block %d in step %d of tile %lld for ", x.rank, x.tb, x.step,
                   static_cast<long long>(x.tile));
    if (x.waits_for == MSCCLSH_WAIT_STEP)
      text += format("thread block %d", x.peer);
    else if (x.waits_for == MSCCLSH_WAIT_MESSAGE)
      text += format("a message from rank %d on channel %d", x.peer, x.chan);
    else
      text += format("a free slot towards rank %d on channel %d", x.peer, x.chan);
  }
  throw Failure(MSCCLSH_ESTUCK, text);
}

std::vector<mscclsh_wait> Comm::waits() {
  std::vector<mscclsh_wait> all;
  if (!abort_->raised()) return all;
  for (Prog *p : progs_) p->waits(&all);
  std::stable_sort(all.begin(), all.end(), [](const mscclsh_wait &a, const mscclsh_wait &b) {
    return std::make_tuple(-a.timed_out, a.rank, a.tb) <
           std::make_tuple(-b.timed_out, b.rank, b.tb);
  });
  return all;
}

}  // namespace mscclsh
