#include "windows.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

namespace mscclsh::nccl {

namespace {

struct Range {
  uintptr_t from;
  size_t bytes;
};

// Memory is what ncclMemAlloc gave, and what of it was freed again since there are windows.
struct Memory {
  std::mutex mu;
  std::map<uintptr_t, size_t> allocated;
  std::vector<Range> freed;
  std::atomic<size_t> frees{0};  // of freed
  std::atomic<bool> windows{false};
};

Memory &memory() {
  // Never destroyed: memory is freed while the process ends.
  static Memory &all = *new Memory;
  return all;
}

}  // namespace

void note_allocated(const void *p, size_t bytes) {
  Memory &m = memory();
  std::lock_guard<std::mutex> lock(m.mu);
  m.allocated[reinterpret_cast<uintptr_t>(p)] = bytes;
}

void note_freed(const void *p) {
  Memory &m = memory();
  std::lock_guard<std::mutex> lock(m.mu);
  const auto known = m.allocated.find(reinterpret_cast<uintptr_t>(p));
  if (known == m.allocated.end()) return;
  if (m.windows) {
    m.freed.push_back({known->first, known->second});
    m.frees.store(m.freed.size(), std::memory_order_release);
  }
  m.allocated.erase(known);
}

// They are alike if they lie apart from each other on each rank, or as many bytes from each
// other on all.
bool alike(const std::vector<Span> &a, int64_t a_bytes, const std::vector<Span> &b,
           int64_t b_bytes) {
  bool apart = true, same = true;
  for (size_t i = 0; i < a.size(); i++) {
    const uint64_t x = a[i].at, y = b[i].at;
    apart &= x + uint64_t(a_bytes) <= y || y + uint64_t(b_bytes) <= x;
    same &= y - x == b[0].at - a[0].at;
  }
  return apart || same;
}

void Windows::add(const Window &w) {
  if (by_base_.empty()) {  // what was freed before concerns no window of this rank
    memory().windows = true;
    seen_ = memory().frees.load(std::memory_order_acquire);
  }
  by_base_.emplace(w.base, w);
  longest_ = std::max(longest_, w.bytes);
}

const Window *Windows::at(const void *p, int64_t bytes) const {
  const uintptr_t from = reinterpret_cast<uintptr_t>(p);
  for (auto w = by_base_.upper_bound(from); w != by_base_.begin();) {
    --w;
    const uintptr_t offset = from - w->second.base;
    if (offset >= uintptr_t(longest_)) return nullptr;
    if (offset < uintptr_t(w->second.bytes) && bytes <= w->second.bytes - int64_t(offset))
      return &w->second;
  }
  return nullptr;
}

void Windows::remove_if(const std::function<bool(const Window &)> &wanted, const Gone &gone) {
  for (auto w = by_base_.begin(); w != by_base_.end();) {
    if (!wanted(w->second)) {
      ++w;
      continue;
    }
    gone(w->second);
    w = by_base_.erase(w);
  }
}

void Windows::remove(ncclWindow_t handle, const Gone &gone) {
  remove_if([&](const Window &w) { return w.handle == handle; }, gone);
}

void Windows::remove_one(int32_t number, const Gone &gone) {
  remove_if([&](const Window &w) { return w.number == number; }, gone);
}

void Windows::remove_freed(const Gone &gone) {
  Memory &m = memory();
  if (seen_ == m.frees.load(std::memory_order_acquire)) return;
  std::vector<Range> since;
  {
    std::lock_guard<std::mutex> lock(m.mu);
    since.assign(m.freed.begin() + std::ptrdiff_t(seen_), m.freed.end());
    seen_ = m.freed.size();
  }
  for (const Range &r : since)
    remove_if(
        [&](const Window &w) {
          return w.base < r.from + r.bytes && r.from < w.base + uintptr_t(w.bytes);
        },
        gone);
}

}  // namespace mscclsh::nccl
