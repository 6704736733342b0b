// Ports of devices that are threads of this process: the thread that serves them copies.
#include <cstring>
#include <new>

#include "one_port.h"
#include "shim.h"

namespace mscclsh {

PortMemory::PortMemory(size_t bytes) {
  void *p = ::operator new(bytes, std::align_val_t(256));
  std::memset(p, 0, bytes);
  here_ = there_ = static_cast<unsigned char *>(p);
}
PortMemory::~PortMemory() { ::operator delete(here_, std::align_val_t(256)); }

struct PortLines::Impl {};

PortLines::PortLines(int32_t) {}
PortLines::~PortLines() = default;

// What is copied may be packets, which others poll.
void PortLines::copy(uint32_t, void *to, const void *from, size_t bytes) {
  const uintptr_t bits = reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from);
  size_t k = 0;
  if (bits % 8 == 0) {
    for (; k + 8 <= bytes; k += 8)
      word(static_cast<char *>(to) + k)
          .store(word(static_cast<const char *>(from) + k).load(std::memory_order_relaxed),
                 std::memory_order_relaxed);
  }
  std::memcpy(static_cast<char *>(to) + k, static_cast<const char *>(from) + k, bytes - k);
}

void PortLines::write(uint32_t, uint64_t *to, uint64_t v) { store_relaxed_system(to, v); }

void PortLines::settle() {}

}  // namespace mscclsh
