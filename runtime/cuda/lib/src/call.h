// A program bound to a size and to memory on one device.
#ifndef MSCCLSH_CALL_H
#define MSCCLSH_CALL_H

#include <array>

#include "prog.h"
#include "window.h"

namespace mscclsh {

class Call {
 public:
  Call(Prog *prog, const mscclsh_binding &b, mscclsh_prepared *out);
  ~Call();
  Call(const Call &) = delete;
  Call &operator=(const Call &) = delete;

  // launch_on enqueues one launch and does not wait; launch_at the same with other buffers
  // than those it was bound to, [ranks*2].
  void launch_on(void *stream);
  void launch_at(void *const *buffers, void *stream);

 private:
  // Own is where the buffers of one rank lie, null those that no step touches or that lie
  // in others.
  using Own = std::array<unsigned char *, 3>;

  Sizing checked(const mscclsh_binding &b) const;
  Places places(const mscclsh_binding &b, const Sizing &s) const;
  unsigned char *find(const mscclsh_binding &b, const Sizing &s, int32_t rank, int32_t buf) const;
  unsigned char *in_window(const mscclsh_binding &b, const Sizing &s, int32_t rank,
                           int32_t buf) const;
  void check_rank(const Sizing &s, int32_t rank, const Own &at, void *const *buffers,
                  bool windows) const;
  void name_buffers(Places *at);
  Bases bases_of(const Own &at) const;
  void place(const Sizing &s, const Image &image, mscclsh_prepared *out);
  void enqueue(const Bases &bases, void *stream);
  bool here(int32_t rank) const { return comm_->device_of(rank) == device_; }

  Prog *const prog_;
  Comm *const comm_;
  const int32_t device_;   // an index
  const bool one_memory_;  // a rank's input and output may overlap
  const Sizing sizing_;
  // The rank whose buffers may be others at each launch, the only one on the device; -1: the
  // tables have all buffers' addresses. Its input and output lie past_ bytes behind multiples
  // of kPlace, and are where bound_ says when a launch names none.
  int32_t rank_ = -1;
  uint32_t past_[2] = {};
  Bases bound_ = {};
  const Window *windows_[2] = {};  // that it is counted in
  Pool::Piece piece_;
  Launch launch_;
  uint64_t turn_ = 0;      // of its last launch
  bool captured_ = false;  // a graph may launch it whenever it likes
};

}  // namespace mscclsh

#endif
