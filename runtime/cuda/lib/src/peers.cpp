#include "peers.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>

namespace mscclsh {

namespace {

// Head goes before what a process brings: what it is doing and whether that went well.
struct Head {
  char what[16];
  uint64_t turn;
  int64_t bytes;
  int32_t code, zero;
  char text[464];
};

// kMoment is how long the end of a process may take after its sockets are closed, ms.
constexpr int kMoment = 200;

template <size_t n>
void put(char (&to)[n], const std::string &text) {
  std::snprintf(to, n, "%s", text.c_str());
}

}  // namespace

Peers::Peers(const mscclsh_comm_options &o)
    : exchange_(o.exchange),
      context_(o.context),
      count_(o.processes ? o.processes : 1),
      self_(o.process),
      process_of_(size_t(o.ranks), 0) {
  if (count_ < 1 || self_ < 0 || self_ >= count_)
    invalid(format("process %d of %d", self_, count_));
  if (count_ > 1 && (exchange_ == nullptr || o.process_of == nullptr))
    invalid(format("%d processes need an exchange, and to be told who holds which rank", count_));
  std::vector<bool> holds(size_t(count_), false);
  for (int32_t r = 0; r < o.ranks; r++) {
    const int32_t p = o.process_of ? o.process_of[r] : 0;
    if (p < 0 || p >= count_) invalid(format("rank %d in process %d of %d", r, p, count_));
    process_of_[size_t(r)] = p;
    holds[size_t(p)] = true;
  }
  for (int32_t p = 0; p < count_; p++)
    if (!holds[size_t(p)]) invalid(format("process %d of %d holds no rank", p, count_));
  watched_.assign(size_t(count_), -1);
}

Peers::~Peers() {
  for (int fd : watched_)
    if (fd >= 0) close(fd);
}

void Peers::exchange(const void *mine, void *all, size_t bytes) {
  const int32_t result = exchange_(context_, mine, all, int64_t(bytes));
  if (result == 0) return;
  broken_ = true;
  throw Failure(MSCCLSH_EPEER, format("exchanging %zu bytes with the other processes failed with "
                                      "%d%s: make a new communicator",
                                      bytes, result, ended().c_str()));
}

std::vector<Bytes> Peers::together(const char *what, const std::function<Bytes()> &f) {
  if (alone()) return {f()};
  if (broken_)
    throw Failure(MSCCLSH_EDEAD,
                  "an earlier exchange between the processes failed: make a new communicator");
  Head mine = {};
  put(mine.what, what);
  mine.turn = turn_++;
  Bytes bytes;
  std::string own;
  auto failed = [&](int32_t code, const std::string &text) {
    mine.code = code;
    own = text;
    put(mine.text, text);
  };
  try {
    bytes = f();
    mine.bytes = int64_t(bytes.size());
  } catch (const Failure &e) {
    failed(e.code, e.what());
  } catch (const std::bad_alloc &) {
    failed(MSCCLSH_EREFUSED, "the host's memory is used up");
  }
  std::vector<Head> heads(size_t(count_), Head{});
  exchange(&mine, heads.data(), sizeof mine);
  for (int32_t p = 0; p < count_; p++) {
    const Head &h = heads[size_t(p)];
    if (h.turn == mine.turn && std::strncmp(h.what, mine.what, sizeof h.what) == 0) continue;
    broken_ = true;
    invalid(
        format("process %d is at its call %llu, %.15s, and process %d at its call %llu, %s: "
               "all must make the same calls in the same order",
               p, static_cast<unsigned long long>(h.turn), h.what, self_,
               static_cast<unsigned long long>(mine.turn), mine.what));
  }
  if (mine.code != 0) throw Failure(mine.code, own);
  size_t most = 0;
  for (int32_t p = 0; p < count_; p++) {
    const Head &h = heads[size_t(p)];
    if (h.code != 0)
      throw Failure(h.code, format("process %d: %.*s", p, int(sizeof h.text) - 1, h.text));
    most = std::max(most, size_t(h.bytes));
  }
  std::vector<Bytes> all(static_cast<size_t>(count_));
  if (most == 0) return all;
  bytes.resize(most);
  Bytes joined(most * size_t(count_));
  exchange(bytes.data(), joined.data(), most);
  for (size_t p = 0; p < all.size(); p++)
    all[p].assign(joined.data() + p * most, joined.data() + p * most + heads[p].bytes);
  return all;
}

void Peers::watch(int32_t process, int32_t pid) {
#if defined(SYS_pidfd_open)
  int &fd = watched_[size_t(process)];
  if (fd < 0) fd = int(syscall(SYS_pidfd_open, pid, 0));
#else
  (void)process;
  (void)pid;
#endif
}

std::string Peers::ended() const {
  std::string text;
  std::vector<pollfd> all;
  for (int fd : watched_) all.push_back({fd, POLLIN, 0});  // poll leaves out those below 0
  poll(all.data(), all.size(), kMoment);
  for (size_t p = 0; p < all.size(); p++) {
    if (all[p].revents != 0)
      text += format("; process %zu, which held %s, has ended", p, ranks_of(int32_t(p)).c_str());
  }
  return text;
}

std::string Peers::ranks_of(int32_t process) const {
  std::string text;
  int32_t n = 0;
  for (size_t r = 0; r < process_of_.size(); r++) {
    if (process_of_[r] != process) continue;
    text += format("%s%zu", n++ ? ", " : "", r);
  }
  return (n == 1 ? "rank " : "ranks ") + text;
}

}  // namespace mscclsh
