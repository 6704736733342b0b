// Where the buffers of a program's ranks are.
#ifndef MSCCLSH_PEERS_VIEWS_H
#define MSCCLSH_PEERS_VIEWS_H

#include <tuple>
#include <vector>

#include "peers.h"

namespace mscclsh {

class Comm;

// Views knows the buffers of all ranks, as the kernels of each device here see them.
class Views {
 public:
  explicit Views(Comm *comm) : comm_(comm) {}
  Views(const Views &) = delete;
  Views &operator=(const Views &) = delete;

  // open takes own[3*rank+buf], the start of a buffer of a rank of this process, null
  // where a rank lives elsewhere or has no such buffer of its own. With share, the
  // processes tell each other theirs, in a collective call; else addresses of other
  // processes are not known.
  void open(const std::vector<unsigned char *> &own, bool share);

  // close forgets all. Where something was shared it is a collective call: when it
  // returns, no other process has this one's buffers open any more.
  void close();

  // at is where a buffer starts for a device, an index among Comm's; null is not known.
  unsigned char *at(int32_t device, int32_t rank, int32_t buf) const;

 private:
  Bytes tell(const std::vector<unsigned char *> &own) const;
  void learn(const std::vector<Bytes> &told);
  void unmap();

  Comm *const comm_;
  std::vector<std::vector<unsigned char *>> at_;              // [devices][3*ranks]
  std::vector<std::tuple<int32_t, int32_t, Export>> opened_;  // device, process
  bool shared_ = false;
};

}  // namespace mscclsh

#endif
