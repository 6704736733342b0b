// Windows of one rank: memory that all ranks of a communicator registered together
// (ncclCommWindowRegister with NCCL_WIN_COLL_SYMMETRIC), in which peers may reach.
//
// Whether a call's buffers lie in windows is part of the choice, and so must come out
// alike on all ranks. That is NCCL's own contract for such windows, on which its kernels
// for them rest as well: every rank passes buffers at the same offsets of the same windows.
// ncclCommRegister and ncclMemAlloc are no such thing, since each rank calls them alone.
//
// A window is known by its registration, not by where it lies. Memory that is freed without
// an end of its registration is found out: by the number that the driver gives each
// allocation, at every call, and for ncclMemFree here.
#ifndef MSCCLSH_NCCL_WINDOWS_H
#define MSCCLSH_NCCL_WINDOWS_H

#include <cstddef>
#include <functional>
#include <map>
#include <vector>

#include "mscclsh_cuda.h"
#include "real.h"

namespace mscclsh::nccl {

// kPage is what windows begin at a multiple of, bytes, so that offsets tell alignment.
constexpr uintptr_t kPage = 4096;

// Window is one that can be used. Several may have the same memory, whole or in part: then
// they lie alike on all ranks, and it makes no difference which one is taken.
struct Window {
  uintptr_t base;
  int64_t bytes;  // that every rank has
  ncclWindow_t handle;
  int32_t number;  // of the engine's
  const mscclsh_window *opened;
  uint64_t identity;  // of the allocation; 0: not known
};

// Span is what a rank registers; no bytes are of no use.
struct Span {
  uint64_t at;
  int64_t bytes;
};

// alike is whether a buffer that all ranks have at one offset of a window is in another one on
// all ranks or on none, and if it is, at one offset there too. a and b are what each rank has
// registered, of which the first a_bytes and b_bytes are in the windows.
bool alike(const std::vector<Span> &a, int64_t a_bytes, const std::vector<Span> &b,
           int64_t b_bytes);

class Windows {
 public:
  using Gone = std::function<void(const Window &)>;

  bool empty() const { return by_base_.empty(); }
  void add(const Window &w);

  // at is a window that holds all of the bytes, or null.
  const Window *at(const void *p, int64_t bytes) const;

  // remove forgets the window of a handle, remove_one the one of that number, and
  // remove_freed those whose memory ncclMemFree has freed since it was last asked; all call
  // gone with each.
  void remove(ncclWindow_t handle, const Gone &gone);
  void remove_one(int32_t number, const Gone &gone);
  void remove_freed(const Gone &gone);

 private:
  void remove_if(const std::function<bool(const Window &)> &wanted, const Gone &gone);

  std::multimap<uintptr_t, Window> by_base_;
  int64_t longest_ = 0;  // there ever was, bytes
  size_t seen_ = 0;      // of what was freed
};

// note_allocated and note_freed are about memory of ncclMemAlloc.
void note_allocated(const void *memory, size_t bytes);
void note_freed(const void *memory);

}  // namespace mscclsh::nccl

#endif
