// Where the buffers of a program's ranks are.
#ifndef MSCCLSH_PEERS_VIEWS_H
#define MSCCLSH_PEERS_VIEWS_H

#include <tuple>
#include <vector>

#include "peers.h"
#include "peers_fds.h"

namespace mscclsh {

class Comm;

// Views knows the buffers of all ranks, as the kernels of each device here see them.
class Views {
 public:
  explicit Views(Comm *comm) : comm_(comm) {}
  Views(const Views &) = delete;
  Views &operator=(const Views &) = delete;

  // open takes own[3*rank+buf], the start of a buffer of a rank of this process, null
  // where a rank lives elsewhere or has no such buffer of its own. With share kernels of all
  // devices may touch all of them: the processes tell each other theirs, in a collective
  // call. Else addresses of other processes are not known.
  void open(const std::vector<unsigned char *> &own, bool share);

  // close forgets all. Where something was shared it is a collective call: when it
  // returns, no other process has this one's buffers open any more.
  void close();

  // of are the places of all buffers for a device, an index among Comm's, and at is one of
  // them; null is not known.
  const std::vector<unsigned char *> &of(int32_t device) const { return at_[size_t(device)]; }
  unsigned char *at(int32_t device, int32_t rank, int32_t buf) const;

 private:
  void reach(const std::vector<unsigned char *> &own);
  Bytes tell(const std::vector<unsigned char *> &own);
  void pass(const std::vector<Bytes> &told);
  void learn(const std::vector<Bytes> &told);
  void import(int32_t device, int32_t process, const Export &e, size_t at);
  void unmap();

  Comm *const comm_;
  std::vector<std::vector<unsigned char *>> at_;              // [devices][3*ranks]
  std::vector<std::tuple<int32_t, int32_t, Export>> opened_;  // device, process
  FdPost::Fds mine_, theirs_;  // while opening: descriptors of memory told by one
  bool shared_ = false;
};

}  // namespace mscclsh

#endif
