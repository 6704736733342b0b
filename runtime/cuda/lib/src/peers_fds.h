// File descriptors on their way from process to process.
#ifndef MSCCLSH_PEERS_FDS_H
#define MSCCLSH_PEERS_FDS_H

#include <cstdint>
#include <map>
#include <vector>

#include "peers.h"

namespace mscclsh {

// Fd is an open descriptor of this process, or none, -1.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd &&o) noexcept : fd_(o.fd_) { o.fd_ = -1; }
  Fd &operator=(Fd &&o) noexcept;
  Fd(const Fd &) = delete;
  Fd &operator=(const Fd &) = delete;
  ~Fd();
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

// FdPost hands descriptors over Unix sockets, whose names the processes tell each other.
class FdPost {
 public:
  // Fds are descriptors by a number that all processes understand alike.
  using Fds = std::map<int32_t, Fd>;

  // swap is a collective call: every other process gets a copy of each of mine, and this
  // one gets those that it wants, all of the others'.
  static Fds swap(Peers *peers, const Fds &mine, const std::vector<int32_t> &want);

 private:
  struct Name {
    char path[64];   // abstract: the first byte is 0
    uint64_t nonce;  // what a letter must bear
  };
  explicit FdPost(int32_t self);
  bool deliver(const Name &to, int32_t number, int fd);
  bool take(Fds *to);

  Fd socket_;
  Name name_ = {};
};

}  // namespace mscclsh

#endif
