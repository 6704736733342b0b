#include "comms.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <list>
#include <vector>

#include "gpu.h"
#include "log.h"
#include "mscclsh_cuda.h"

namespace mscclsh::nccl {

namespace {

// has says whether a configuration of some version has a field, and whether it was set.
bool has(const ncclConfig_t *c, size_t offset, int *value) {
  size_t size;
  std::memcpy(&size, c, sizeof size);
  if (offset + sizeof *value > size) return false;
  std::memcpy(value, reinterpret_cast<const unsigned char *>(c) + offset, sizeof *value);
  return *value != NCCL_CONFIG_UNDEF_INT;
}

// in_environment is NCCL's own variable, which goes before the configuration.
bool in_environment(const char *name, int *value) {
  const char *v = std::getenv(name);
  if (v == nullptr || *v == 0) return false;
  char *end = nullptr;
  const long n = std::strtol(v, &end, 0);
  if (*end != 0 || n <= 0 || n > INT32_MAX) return false;
  *value = int(n);
  return true;
}

}  // namespace

Config config_of(const ncclConfig_t *config, const Config &inherited) {
  Config c = inherited;
  int v;
  if (config != nullptr) {
    if (has(config, offsetof(ncclConfig_t, blocking), &v)) c.blocking = v != 0;
    if (has(config, offsetof(ncclConfig_t, maxCTAs), &v)) c.max_ctas = v;
  }
  if (in_environment("NCCL_MAX_CTAS", &v)) c.max_ctas = v;
  const char *blocking = std::getenv("NCCL_COMM_BLOCKING");
  if (blocking != nullptr && (*blocking == '0' || *blocking == '1') && blocking[1] == 0)
    c.blocking = *blocking == '1';
  return c;
}

Config default_config() { return config_of(nullptr, Config()); }

Rank::~Rank() {
  if (setting_up.joinable()) setting_up.join();
}

void Rank::fail(const std::string &sentence) {
  last_error() = sentence;
  std::lock_guard<std::mutex> lock(mu_);
  if (error_.empty()) error_ = sentence;
}

const char *Rank::error() {
  // A sentence stays as it is once it is there, so its address may be given away.
  std::lock_guard<std::mutex> lock(mu_);
  return error_.c_str();
}

void Rank::wait() {
  if (!launched) return;
  const OnDevice on(device);
  device_wait();
}

void Rank::finish(bool aborted) {
  abandoned = abandoned || aborted;
  if (setting_up.joinable()) setting_up.join();
  phase = Phase::kOff;
  if (engine == nullptr) return;
  if (!aborted) wait();
  calls.reset();
  release(std::move(engine), aborted);
}

namespace {

// Map is open addressing with places that are read without a lock, and written under one.
// A larger map replaces one that is half full, which stays for those who read it: all
// earlier ones together are as large as the last.
struct Map {
  struct Slot {
    std::atomic<ncclComm_t> comm{nullptr};
    std::atomic<Rank *> rank{nullptr};
  };
  Map(size_t size, Map *before) : slots(size), before(before) {}
  std::vector<Slot> slots;
  Map *const before;  // the smaller one that it stands for
  size_t used = 0;    // places, those of communicators that are gone included

  static size_t hash(ncclComm_t comm) {
    const uint64_t h = uint64_t(reinterpret_cast<uintptr_t>(comm)) * 0x9e3779b97f4a7c15u;
    return size_t(h >> 32);
  }
  Slot *find(ncclComm_t comm) {
    for (size_t i = hash(comm);; i++) {
      Slot &s = slots[i & (slots.size() - 1)];
      const ncclComm_t c = s.comm.load(std::memory_order_acquire);
      if (c == comm) return &s;
      if (c == nullptr) return nullptr;
    }
  }
  void put(ncclComm_t comm, Rank *rank) {
    Slot *s = find(comm);
    // A place whose rank is gone is taken again: only who uses a communicator that was
    // destroyed could still look there for the old one.
    for (size_t i = hash(comm); s == nullptr; i++) {
      Slot &free = slots[i & (slots.size() - 1)];
      if (free.rank.load(std::memory_order_relaxed) != nullptr) continue;
      s = &free;
      if (free.comm.load(std::memory_order_relaxed) == nullptr) used++;
    }
    s->comm.store(comm, std::memory_order_release);
    s->rank.store(rank, std::memory_order_release);
  }
};

struct Registry {
  std::mutex mu;
  std::atomic<Map *> map{new Map(64, nullptr)};
  // epoch counts changes, so that what a thread remembers is known to be old.
  std::atomic<uint64_t> epoch{1};
};

Registry &registry() {
  // Never destroyed: calls may come while the process ends.
  static Registry &all = *new Registry;
  return all;
}

// Last is the communicator that a thread used last.
struct Last {
  ncclComm_t comm;
  Rank *rank;
  uint64_t epoch;
};
thread_local Last last = {nullptr, nullptr, 0};

void grow(Registry *r) {
  Map *old = r->map.load();
  if (2 * (old->used + 1) < old->slots.size()) return;
  Map *larger = new Map(2 * old->slots.size(), old);
  for (Map::Slot &s : old->slots)
    if (Rank *rank = s.rank.load()) larger->put(s.comm.load(), rank);
  r->map.store(larger, std::memory_order_release);
}

}  // namespace

Rank *find(ncclComm_t comm) {
  static Registry &r = registry();
  const uint64_t epoch = r.epoch.load(std::memory_order_acquire);
  if (last.comm == comm && last.epoch == epoch) return last.rank;
  Map::Slot *s = comm == nullptr ? nullptr : r.map.load(std::memory_order_acquire)->find(comm);
  Rank *rank = s == nullptr ? nullptr : s->rank.load(std::memory_order_acquire);
  last = {comm, rank, epoch};
  return rank;
}

void add(Rank *rank) {
  Registry &r = registry();
  std::lock_guard<std::mutex> lock(r.mu);
  grow(&r);
  r.map.load()->put(rank->comm, rank);
  r.epoch++;
}

std::unique_ptr<Rank> take(ncclComm_t comm) {
  Registry &r = registry();
  std::lock_guard<std::mutex> lock(r.mu);
  Map::Slot *s = comm == nullptr ? nullptr : r.map.load()->find(comm);
  if (s == nullptr) return nullptr;
  std::unique_ptr<Rank> rank(s->rank.exchange(nullptr));
  r.epoch++;
  return rank;
}

namespace {

using Clock = std::chrono::steady_clock;

// kInside is the longest that a call may still be on its way inside an aborted rank.
constexpr std::chrono::seconds kInside(10);

struct Graves {
  std::mutex mu;
  std::list<std::pair<Clock::time_point, std::unique_ptr<Rank>>> ranks;
};
Graves &graves() {
  static Graves &all = *new Graves;
  return all;
}

}  // namespace

void bury(std::unique_ptr<Rank> rank) {
  rank->phase = Phase::kOff;
  std::lock_guard<std::mutex> lock(graves().mu);
  graves().ranks.emplace_back(Clock::now(), std::move(rank));
}

void clear_graves() {
  std::lock_guard<std::mutex> lock(graves().mu);
  std::list<std::pair<Clock::time_point, std::unique_ptr<Rank>>> &all = graves().ranks;
  while (!all.empty() && Clock::now() - all.front().first > kInside) {
    all.front().second->finish(true);
    all.pop_front();
  }
}

ncclResult_t result_of(int32_t code) {
  switch (code) {
    case MSCCLSH_OK:
      return ncclSuccess;
    case MSCCLSH_EREFUSED:
      return ncclSystemError;
    case MSCCLSH_EDEVICE:
      return ncclUnhandledCudaError;
    case MSCCLSH_ESTUCK:
    case MSCCLSH_EPEER:
      return ncclRemoteError;
    default:
      return ncclInternalError;
  }
}

std::string &last_error() {
  static thread_local std::string sentence;
  return sentence;
}

}  // namespace mscclsh::nccl
