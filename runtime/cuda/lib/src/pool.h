// Memory of a device for bound calls, used again once the launches that read it are done.
#ifndef MSCCLSH_POOL_H
#define MSCCLSH_POOL_H

#include <map>
#include <vector>

#include "device.h"

namespace mscclsh {

// Pool never gives memory back to the device before free: that might wait for what runs.
class Pool {
 public:
  // Piece is a piece of it.
  struct Piece {
    unsigned char *at = nullptr;
    size_t bytes = 0;
  };

  explicit Pool(Device *device) : device_(device) {}
  Pool(const Pool &) = delete;
  Pool &operator=(const Pool &) = delete;

  // take returns memory on a 256-byte boundary, with whatever contents. It waits for
  // nothing.
  Piece take(size_t bytes) {
    size_t size = kLeast;
    while (size < bytes) size *= 2;
    std::vector<unsigned char *> *free = &free_[size];
    if (free->empty()) reclaim();
    if (!free->empty()) {
      unsigned char *at = free->back();
      free->pop_back();
      return {at, size};
    }
    if (size > left_) add(size > kBlock ? size : kBlock);
    unsigned char *at = next_;
    next_ += size;
    left_ -= size;
    return {at, size};
  }

  // warm allocates a first block, so that the first pieces need none.
  void warm() {
    if (blocks_.empty()) add(kBlock);
  }

  // give takes a piece back, to be used again when so many turns of the device are done.
  void give(const Piece &piece, uint64_t turn) {
    if (piece.at != nullptr) retired_.push_back({piece, turn});
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
    free_.clear();
    retired_.clear();
    left_ = 0;
  }

 private:
  static constexpr size_t kLeast = 512, kBlock = size_t(4) << 20;

  struct Retired {
    Piece piece;
    uint64_t turn;
  };

  void add(size_t bytes) {
    void *block = device_->alloc_now(bytes);
    blocks_.push_back(block);
    next_ = static_cast<unsigned char *>(block);
    left_ = bytes;
  }

  // reclaim looks through what was given back. Turns stand in no order there: what was
  // launched last need not be given back last.
  void reclaim() {
    if (retired_.empty()) return;
    const uint64_t done = device_->turns_done();
    size_t kept = 0;
    for (size_t i = 0; i < retired_.size(); i++) {
      if (retired_[i].turn <= done)
        free_[retired_[i].piece.bytes].push_back(retired_[i].piece.at);
      else
        retired_[kept++] = retired_[i];
    }
    retired_.resize(kept);
  }

  Device *device_;
  std::map<size_t, std::vector<unsigned char *>> free_;  // by size
  std::vector<Retired> retired_;
  std::vector<void *> blocks_;
  unsigned char *next_ = nullptr;
  size_t left_ = 0;
};

}  // namespace mscclsh

#endif
