// The processes of a communicator: which ranks live where, and what they tell each
// other. A process whose ranks are all of them is alone, and nothing is told.
#ifndef MSCCLSH_PEERS_H
#define MSCCLSH_PEERS_H

#include <atomic>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "failure.h"

namespace mscclsh {

using Bytes = std::vector<unsigned char>;

// Export is memory of one process as it is told to the others, which map what the
// handle names, the whole of an allocation.
struct Export {
  unsigned char handle[64];  // no other allocation's, of this process or of others
  int64_t offset;            // where the memory starts in it
  int64_t bytes;             // of the allocation; 0: no memory
  int32_t by_fd;             // 1: it is opened by a descriptor, fd, of whoever opens it
  int32_t fd;
};

// append and item write and read lists of one plain type.
template <class T>
void append(Bytes *to, const T &v) {
  const size_t at = to->size();
  to->resize(at + sizeof v);
  std::memcpy(to->data() + at, &v, sizeof v);
}
template <class T>
T item(const Bytes &from, size_t i) {
  T v;
  if ((i + 1) * sizeof v > from.size()) invalid("another process told too little");
  std::memcpy(&v, from.data() + i * sizeof v, sizeof v);
  return v;
}

// digest folds plain values into one number: processes compare what they were given.
template <class T>
uint64_t digest(uint64_t seed, const T *v, size_t n) {
  const unsigned char *p = reinterpret_cast<const unsigned char *>(v);
  for (size_t i = 0; i < n * sizeof *v; i++) seed = (seed ^ p[i]) * 1099511628211u;
  return seed;
}

class Peers {
 public:
  explicit Peers(const mscclsh_comm_options &o);
  ~Peers();
  Peers(const Peers &) = delete;
  Peers &operator=(const Peers &) = delete;

  bool alone() const { return count_ == 1; }
  int32_t count() const { return count_; }
  int32_t self() const { return self_; }
  int32_t process_of(int32_t rank) const { return process_of_[size_t(rank)]; }
  bool local(int32_t rank) const { return process_of(rank) == self_; }

  // together is a collective call: it runs f, and returns what f returned in each of the
  // processes. When f fails in one, it fails in all. Processes that went different ways
  // learn of it by what, a word or two, and by the number of the call.
  std::vector<Bytes> together(const char *what, const std::function<Bytes()> &f);

  // broken is whether an exchange failed: the processes are no longer in step.
  bool broken() const { return broken_; }

  // watch remembers a process by its id; ended says which of those watched are gone,
  // each with its ranks, in words. It waits a moment for one that is about to be.
  void watch(int32_t process, int32_t pid);
  std::string ended() const;

 private:
  void exchange(const void *mine, void *all, size_t bytes);
  std::string ranks_of(int32_t process) const;

  mscclsh_exchange exchange_;
  void *context_;
  int32_t count_, self_;
  std::vector<int32_t> process_of_;
  std::vector<int> watched_;  // of each process: a descriptor, or -1
  uint64_t turn_ = 0;
  std::atomic<bool> broken_{false};
};

}  // namespace mscclsh

#endif
