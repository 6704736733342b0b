#include "comm.h"

#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "one_port.h"
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
  if (protocol == kLL128) return (slot_bytes + kUnitBytes - 1) / kUnitBytes * 8;
  return 0;
}

int64_t Wire::stride() const {
  if (protocol == kLL) return (lines() * 16 + kLine - 1) / kLine * kLine;
  if (protocol == kLL128) return lines() * 128;
  return (slot_bytes + kLine - 1) / kLine * kLine;
}

void Conn::set_sender(unsigned char *half) {
  send_seq = reinterpret_cast<uint64_t *>(half);
  taken = send_seq + 1;  // so that one load brings both: see numbers_of
}

void Conn::set_receiver(unsigned char *half) {
  slots = half;
  recv_seq = reinterpret_cast<uint64_t *>(half + slot_bytes);
  sent = reinterpret_cast<uint64_t *>(half + slot_bytes + kLine);
}

namespace {

const mscclsh_comm_options &checked(const mscclsh_comm_options &o) {
  if (o.ranks < 1 || o.devices == nullptr) invalid(format("a communicator of %d ranks", o.ranks));
  const uint32_t modulus = uint32_t(o.flag_modulus);
  if ((modulus != 0 && modulus < 16) || (modulus & (modulus - 1)) || o.flag_modulus < 0 ||
      o.watchdog_ns < 0)
    invalid(format("flag modulus %d or watchdog time %lld ns is out of range", o.flag_modulus,
                   static_cast<long long>(o.watchdog_ns)));
  return o;
}

// Hello is what processes tell each other first.
struct Hello {
  char boot[40];  // the machine, until it is started anew
  uint64_t options;
  int32_t abi, pid;
  FileRef abort;  // of process 0
};

Hello hello(const mscclsh_comm_options &o) {
  Hello h = {};
  if (FILE *f = std::fopen("/proc/sys/kernel/random/boot_id", "r")) {
    if (std::fgets(h.boot, sizeof h.boot, f) == nullptr) h.boot[0] = 0;
    std::fclose(f);
  }
  h.options = digest(0, &o.ranks, 1);
  h.options = digest(h.options, &o.flag_modulus, 1);
  h.options = digest(h.options, &o.watchdog_ns, 1);
  if (o.process_of != nullptr) h.options = digest(h.options, o.process_of, size_t(o.ranks));
  h.abi = MSCCLSH_ABI;
  h.pid = int32_t(getpid());
  return h;
}

// kPage is what the word that ends launches has to itself.
constexpr size_t kPage = 4096;

}  // namespace

int32_t Wire::depth() const {
  int32_t n = 1;
  while (n < 2 * slots) n *= 2;
  return n;
}

int32_t Wire::withheld() const {
  int32_t n = 1;
  while (2 * n <= depth() - slots) n *= 2;
  return n;
}

Comm::Comm(const mscclsh_comm_options &o)
    : flag_modulus(checked(o).flag_modulus ? uint64_t(uint32_t(o.flag_modulus))
                                           : uint64_t(1) << 31),
      watchdog_ns(o.watchdog_ns ? o.watchdog_ns : int64_t(10) * 1000000000),
      peers_(o),
      scratch_(this) {
  std::unique_ptr<SharedFile> file;
  const std::vector<Bytes> told = peers_.together("create", [&] {
    open_devices(o);
    Hello h = hello(o);
    if (!peers_.alone() && peers_.self() == 0) {
      file.reset(new SharedFile(kPage));
      h.abort = file->ref();
    }
    Bytes mine;
    append(&mine, h);
    return mine;
  });
  try {
    together("open", [&] { open_abort(std::move(file), told); });
  } catch (...) {
    free_memory();
    throw;
  }
}

void Comm::open_devices(const mscclsh_comm_options &o) {
  const int32_t count = device_count();
  for (int32_t r = 0; r < o.ranks; r++) {
    if (!local(r)) {
      device_of_.push_back(-1);
      continue;
    }
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
  for (auto &d : devices_) arenas_.emplace_back(d.get(), !peers_.alone());
  for (auto &d : devices_) pools_.emplace_back(d.get());
}

// open_abort opens the word that ends launches, which all processes share, and looks at
// who they are.
void Comm::open_abort(std::unique_ptr<SharedFile> file, const std::vector<Bytes> &told) {
  const Hello first = item<Hello>(told[0], 0);
  for (int32_t p = 0; p < peers_.count(); p++) {
    const Hello h = item<Hello>(told[size_t(p)], 0);
    if (h.abi != first.abi)
      refused(format("process %d has version %d of the library's interface, process 0 version %d",
                     p, h.abi, first.abi));
    if (h.options != first.options)
      invalid(format("process %d was given other options than process 0", p));
    if (std::strncmp(h.boot, first.boot, sizeof h.boot) != 0)
      refused(format("process %d runs on another machine than process 0", p));
    if (p != peers_.self()) peers_.watch(p, h.pid);
  }
  if (peers_.self() != 0) file.reset(new SharedFile(first.abort));
  abort_.reset(new HostFlag(std::move(file)));
  for (auto &d : devices_) dead_.push_back(static_cast<uint32_t *>(d->alloc(sizeof(uint32_t))));
}

Comm::~Comm() {
  settle();
  free_scratch();
  imports_.close_all();
  part("destroy");
  free_memory();
}

Ports &Comm::ports() {
  if (!ports_) ports_.reset(new Ports([this] { abort_->abort(); }));
  return *ports_;
}

void Comm::settle() {
  for (auto &d : devices_) {
    try {
      d->sync();
    } catch (const Failure &) {  // its memory goes with the process
    }
  }
}

void Comm::free_memory() {
  for (Arena &a : arenas_) a.free();
  for (Pool &p : pools_) p.free();
  for (size_t i = 0; i < dead_.size(); i++) {
    try {
      devices_[i]->free(dead_[i]);
    } catch (const Failure &) {
    }
  }
}

void Comm::need_local(int32_t rank) const {
  if (rank < 0 || rank >= ranks()) invalid(format("rank %d of %d", rank, ranks()));
  if (!local(rank))
    invalid(format("rank %d lives in process %d, this is process %d", rank, peers_.process_of(rank),
                   peers_.self()));
}

void Comm::together(const char *what, const std::function<void()> &f) {
  peers_.together(what, [&] {
    f();
    return Bytes();
  });
}

void Comm::agree(const char *what, const std::function<uint64_t()> &f) {
  const std::vector<Bytes> told = peers_.together(what, [&] {
    Bytes mine;
    append(&mine, f());
    return mine;
  });
  same(what, told);
}

// same compares the digests that the processes begin with.
void Comm::same(const char *what, const std::vector<Bytes> &told) const {
  for (size_t p = 1; p < told.size(); p++)
    if (item<uint64_t>(told[p], 0) != item<uint64_t>(told[0], 0))
      invalid(format("%s: process %zu was given something else than process 0", what, p));
}

void Comm::part(const char *what) {
  if (peers_.alone() || peers_.broken() || !abort_ || abort_->raised()) return;
  try {
    together(what, [] {});
  } catch (const Failure &) {  // a process is gone, which the next call will tell
  }
}

void *Comm::alloc_buffer(int32_t device, size_t bytes, bool mapped) {
  Device &d = *devices_[size_t(device)];
  return mapped && !peers_.alone() ? d.alloc_shared(bytes) : d.alloc(bytes);
}

void *Comm::alloc_for(int32_t rank, int64_t bytes) {
  need_local(rank);
  if (bytes < 0) invalid(format("%lld bytes of memory", static_cast<long long>(bytes)));
  return alloc_buffer(device_of(rank), size_t(bytes), true);
}

void Comm::free_of(int32_t rank, void *memory) {
  need_local(rank);
  settle();
  if (memory != nullptr) device(device_of(rank)).free(memory);
}

const Conn &Comm::connect(int32_t src, int32_t dst, int32_t chan, const Wire &wire) {
  if (wire.protocol == kLL128 && local(src) && local(dst) &&
      !device(device_of(src)).whole_lines(device(device_of(dst))))
    refused(format("LL128 needs NVLink, which is not between GPUs %d and %d: take LL or Simple",
                   device(device_of(src)).id, device(device_of(dst)).id));
  const Key key(src, dst, chan, wire.protocol, wire.slots, wire.slot_bytes);
  Conn &c = conns_[key];
  if (!c.open) {
    c.src = src;
    c.dst = dst;
    c.slot_bytes = wire.depth() * wire.stride();
    if (local(src) && c.sender() == nullptr)
      c.set_sender(arenas_[size_t(device_of(src))].take(size_t(kLine)));
    if (local(dst) && c.receiver() == nullptr)
      c.set_receiver(arenas_[size_t(device_of(dst))].take(size_t(c.slot_bytes + 2 * kLine)));
    c.open = peers_.process_of(src) == peers_.process_of(dst);
    if (!c.open && !c.asked) asked_.push_back(&c);
    c.asked = !c.open;
  }
  return c;
}

void Comm::connect_all(const std::function<uint64_t()> &find) {
  for (Conn *c : asked_) c->asked = false;  // of a load that failed
  asked_.clear();
  const std::vector<Bytes> told = peers_.together("load", [&] {
    Bytes mine;
    append(&mine, find());
    tell_halves(&mine);
    return mine;
  });
  if (peers_.alone()) return;
  same("load", told);
  together("connect", [&] { open_halves(told); });
  for (Conn *c : asked_) c->open = true;
}

// tell_halves lists the halves that lie here of the connections to open: every process
// has all those connections in the same order.
void Comm::tell_halves(Bytes *to) {
  for (const Conn *c : asked_) {
    if (local(c->src)) append(to, device(device_of(c->src)).tell(c->sender()));
    if (local(c->dst)) append(to, device(device_of(c->dst)).tell(c->receiver()));
  }
}

void Comm::open_halves(const std::vector<Bytes> &told) {
  std::vector<size_t> at(told.size(), sizeof(uint64_t));  // past the digests
  auto next = [&](int32_t process) {
    const Bytes &from = told[size_t(process)];
    Export e;
    if (at[size_t(process)] + sizeof e > from.size())
      invalid(format("process %d told of too few connections", process));
    std::memcpy(&e, from.data() + at[size_t(process)], sizeof e);
    at[size_t(process)] += sizeof e;
    return e;
  };
  for (Conn *c : asked_) {
    const int32_t from = peers_.process_of(c->src), to = peers_.process_of(c->dst);
    const Export s = next(from), r = next(to);
    if (local(c->dst) && c->sender() == nullptr)
      c->set_sender(imports_.open(&device(device_of(c->dst)), from, s));
    if (local(c->src) && c->receiver() == nullptr)
      c->set_receiver(imports_.open(&device(device_of(c->src)), to, r));
  }
}

void Comm::check_alive() const {
  if (abort_->aborted())
    throw Failure(MSCCLSH_EDEAD, "the communicator was aborted: make a new one");
  if (abort_->raised())
    throw Failure(MSCCLSH_EDEAD,
                  "the communicator was cut short by its watchdog earlier: make a new one");
  if (peers_.broken())
    throw Failure(MSCCLSH_EDEAD,
                  "an exchange between the communicator's processes failed: make a new one");
}

namespace {

// one_sided_words says what a block of a one-sided program waited for.
std::string one_sided_words(const mscclsh_wait &x) {
  switch (x.waits_for) {
    case MSCCLSH_WAIT_SIGNAL:
      return format("a signal of rank %d on its channel %d", x.peer, x.chan);
    case MSCCLSH_WAIT_SEMAPHORE:
      return format("semaphore %d", x.chan);
    case MSCCLSH_WAIT_BARRIER:
      return format("thread blocks at barrier %d", x.chan);
    case MSCCLSH_WAIT_PACKET:
      return "a packet in its scratch";
    default:
      return format("what a port copies to rank %d on channel %d", x.peer, x.chan);
  }
}

}  // namespace

void Comm::sync() {
  for (auto &d : devices_) d->sync();
  if (ports_ && !ports_->error().empty()) throw Failure(MSCCLSH_EDEVICE, ports_->error());
  if (abort_->aborted()) check_alive();
  if (!abort_->raised()) return;
  std::vector<mscclsh_wait> w = waits();
  std::string text =
      w.empty() ? "the watchdog of another process ended a launch" : "the watchdog ended a launch";
  if (!w.empty()) text += format("; %zu thread blocks were waiting", w.size());
  // A block that waits for another rank tells more than one that waits for its own.
  auto told = std::find_if(w.begin(), w.end(),
                           [](const mscclsh_wait &x) { return x.waits_for != MSCCLSH_WAIT_STEP; });
  if (told == w.end()) told = w.begin();
  if (told != w.end()) {
    const mscclsh_wait &x = *told;
    text += format(", rank %d thread block %d in step %d of tile %lld for ", x.rank, x.tb, x.step,
                   static_cast<long long>(x.tile));
    if (x.waits_for >= MSCCLSH_WAIT_SIGNAL)
      text += one_sided_words(x);
    else if (x.waits_for == MSCCLSH_WAIT_STEP)
      text += format("thread block %d", x.peer);
    else if (x.waits_for == MSCCLSH_WAIT_MESSAGE)
      text += format("a message from rank %d on channel %d", x.peer, x.chan);
    else if (x.waits_for == MSCCLSH_WAIT_ARRIVAL)
      text += format("rank %d to meet what it sends on channel %d", x.peer, x.chan);
    else
      text += format("a free slot towards rank %d on channel %d", x.peer, x.chan);
  }
  throw Failure(MSCCLSH_ESTUCK, text + peers_.ended());
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
