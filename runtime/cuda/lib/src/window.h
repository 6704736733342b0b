// Memory of the caller's that all ranks have open.
#ifndef MSCCLSH_WINDOW_H
#define MSCCLSH_WINDOW_H

#include <atomic>
#include <vector>

#include "comm.h"

namespace mscclsh {

// Window is a range of memory of each rank, as kernels of every device here see it.
class Window {
 public:
  // The constructor and the destructor are collective calls.
  Window(Comm *comm, void *const *memory, const int64_t *bytes);
  ~Window();
  Window(const Window &) = delete;
  Window &operator=(const Window &) = delete;

  // at is where a rank's memory starts for a device, an index; null is none.
  unsigned char *at(int32_t device, int32_t rank) const { return views_.at(device, rank, 0); }
  int64_t bytes(int32_t rank) const { return bytes_[size_t(rank)]; }

  Comm *const comm;
  mutable std::atomic<int32_t> calls{0};  // that are bound to it, on whatever device

 private:
  Views views_;
  std::vector<int64_t> bytes_;
};

}  // namespace mscclsh

// What the C interface calls a window.
struct mscclsh_window {
  mscclsh_window(mscclsh::Comm *comm, void *const *memory, const int64_t *bytes)
      : window(comm, memory, bytes) {}
  mscclsh::Window window;
};

#endif
