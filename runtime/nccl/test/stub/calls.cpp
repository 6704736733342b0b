#include "calls.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <set>

#include "group.h"
#include "stub.h"

namespace stub {

thread_local int device = -1;
std::atomic<bool> idle{false};

namespace {

struct Failing {
  int left = 0;
  ncclResult_t how = ncclSuccess;
};

// State outlives everything: calls may come while the process ends.
struct State {
  std::mutex mu;
  std::map<std::string, uint64_t> calls;
  std::map<std::string, Failing> failing;
  std::set<const ncclComm *> alive;
  std::vector<void *> free;
};

State &state() {
  static State *s = new State;
  return *s;
}

void report() {
  const char *path = std::getenv("STUB_REPORT");
  FILE *f = path != nullptr ? std::fopen(path, "a") : nullptr;
  if (f == nullptr) return;
  for (const auto &[name, n] : state().calls)
    std::fprintf(f, "%s %llu\n", name.c_str(), static_cast<unsigned long long>(n));
  std::fclose(f);
}

}  // namespace

ncclResult_t count(const char *name) {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mu);
  static const int once = std::atexit(report);
  (void)once;
  s.calls[name]++;
  const auto f = s.failing.find(name);
  if (f == s.failing.end() || --f->second.left > 0) return ncclSuccess;
  const ncclResult_t how = f->second.how;
  s.failing.erase(f);
  fail(how, std::string(name) + " was told to fail");
  return how;
}

ncclComm *take() {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mu);
  void *at = nullptr;
  if (s.free.empty()) {
    at = ::operator new(sizeof(ncclComm));
  } else {
    at = s.free.back();
    s.free.pop_back();
  }
  ncclComm *c = new (at) ncclComm;
  s.alive.insert(c);
  return c;
}

void give(ncclComm *comm) {
  if (comm->maker.joinable()) comm->maker.join();
  comm->~ncclComm();
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mu);
  s.alive.erase(comm);
  s.free.push_back(comm);
}

bool live(const ncclComm *comm) {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mu);
  return s.alive.count(comm) != 0;
}

}  // namespace stub

using namespace stub;

STUB_API uint64_t stub_calls(const char *name) {
  std::lock_guard<std::mutex> lock(state().mu);
  const auto at = state().calls.find(name);
  return at == state().calls.end() ? 0 : at->second;
}
STUB_API void stub_forget(void) {
  std::lock_guard<std::mutex> lock(state().mu);
  state().calls.clear();
}
STUB_API void stub_fail(const char *name, int nth, ncclResult_t how) {
  std::lock_guard<std::mutex> lock(state().mu);
  state().failing[name] = {nth, how};
}
STUB_API void stub_slow(int init_ms, int operation_ms) {
  init_delay_ms = init_ms;
  operation_delay_ms = operation_ms;
}
STUB_API void stub_idle(int on) { idle = on != 0; }
STUB_API void stub_device(int d) { device = d; }
STUB_API void stub_async(ncclComm_t comm, ncclResult_t result) { comm->state = result; }
STUB_API uint64_t stub_misuses(void) { return misuses; }
STUB_API int stub_alive(void) {
  std::lock_guard<std::mutex> lock(state().mu);
  return int(state().alive.size());
}
