// Small pieces of device memory that live as long as a communicator.
#ifndef MSCCLSH_ARENA_H
#define MSCCLSH_ARENA_H

#include <vector>

#include "device.h"

namespace mscclsh {

// Arena cuts pieces out of few large allocations, so that other processes have few to
// open.
class Arena {
 public:
  // shared: other processes may map it.
  Arena(Device *device, bool shared) : device_(device), shared_(shared) {}
  Arena(const Arena &) = delete;
  Arena &operator=(const Arena &) = delete;

  // take returns memory, all zero, on a 256-byte boundary.
  unsigned char *take(size_t bytes) {
    bytes = (bytes + 255) / 256 * 256;
    if (bytes > left_) {
      const size_t all = bytes > kBlock ? bytes : kBlock;
      void *p = shared_ ? device_->alloc_shared(all) : device_->alloc(all);
      blocks_.push_back(p);
      next_ = static_cast<unsigned char *>(p);
      left_ = all;
    }
    unsigned char *at = next_;
    next_ += bytes;
    left_ -= bytes;
    return at;
  }

  // free frees all of it and tells nothing of failures.
  void free() {
    for (void *p : blocks_) {
      try {
        device_->free(p);
      } catch (const Failure &) {  // it goes with the process
      }
    }
    blocks_.clear();
    left_ = 0;
  }

 private:
  static constexpr size_t kBlock = size_t(1) << 20;

  Device *device_;
  bool shared_;
  std::vector<void *> blocks_;
  unsigned char *next_ = nullptr;
  size_t left_ = 0;
};

}  // namespace mscclsh

#endif
