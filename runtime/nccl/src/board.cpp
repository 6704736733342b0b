#include "board.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

#include "failure.h"

namespace mscclsh::nccl {

namespace {

constexpr int64_t kPart = 16 << 10;  // bytes that one round of an exchange carries
constexpr uint64_t kApart = uint64_t(1) << 63;
constexpr int64_t kForever = INT64_MAX;
constexpr int64_t kSpin = 2000000;  // ns that a process looks without sleeping

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

int watch(int32_t pid) { return int(syscall(SYS_pidfd_open, pid, 0)); }

}  // namespace

// Slot is what one process writes. A round's data stay until the round after the next,
// which nobody begins before all have taken them.
struct BoardSlot {
  std::atomic<uint64_t> round;
  std::atomic<uint32_t> left;
  unsigned char pad[116];
  unsigned char data[2][kPart];
};

struct BoardShared {
  uint64_t nonce;
  std::atomic<uint64_t> here;  // bit p: process p leaves and waits; kApart: not together
  unsigned char pad[4080];
  BoardSlot slots[kMaxProcesses];
};

namespace {

// Descriptor closes itself where a constructor fails.
struct Descriptor {
  explicit Descriptor(int fd) : fd(fd) {}
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
  int keep() { return std::exchange(fd, -1); }
  int fd;
};

BoardShared *mapped(int fd, size_t bytes) {
  void *at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED)
    throw Failure(MSCCLSH_EREFUSED, format("mapping shared memory: %s", std::strerror(errno)));
  return static_cast<BoardShared *>(at);
}

}  // namespace

BoardFile::BoardFile(uint64_t nonce) {
  static_assert(std::atomic<uint64_t>::is_always_lock_free, "processes share them");
  Descriptor d(int(syscall(SYS_memfd_create, "mscclsh-board", 1u)));  // MFD_CLOEXEC
  if (d.fd < 0 || ftruncate(d.fd, off_t(sizeof(BoardShared))) != 0)
    throw Failure(MSCCLSH_EREFUSED, format("making shared memory: %s", std::strerror(errno)));
  shared_ = mapped(d.fd, sizeof(BoardShared));
  shared_->nonce = nonce;
  fd_ = d.keep();
}

BoardFile::BoardFile(int pid, int fd, uint64_t nonce) {
  const std::string path = format("/proc/%d/fd/%d", pid, fd);
  Descriptor d(open(path.c_str(), O_RDWR | O_CLOEXEC));
  struct stat s;
  if (d.fd < 0 || fstat(d.fd, &s) != 0)
    throw Failure(MSCCLSH_EPEER, format("opening %s, memory of rank 0's process: %s", path.c_str(),
                                        std::strerror(errno)));
  if (uint64_t(s.st_size) == sizeof(BoardShared)) shared_ = mapped(d.fd, sizeof(BoardShared));
  if (shared_ == nullptr || shared_->nonce != nonce) {
    if (shared_ != nullptr) munmap(shared_, sizeof(BoardShared));
    throw Failure(MSCCLSH_EPEER, format("%s is not the memory that rank 0 told of", path.c_str()));
  }
  fd_ = d.keep();
}

BoardFile::~BoardFile() {
  close_fd();
  munmap(shared_, sizeof(BoardShared));
}

void BoardFile::close_fd() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

Board::Board(std::unique_ptr<BoardFile> file, const std::vector<int32_t> &pids, int32_t self)
    : file_(std::move(file)),
      shared_(file_->shared()),
      self_(self),
      watched_(pids.size(), -1),
      pids_(pids) {
  for (size_t p = 0; p < pids.size(); p++)
    if (int32_t(p) != self) watched_[p] = watch(pids[p]);
}

Board::~Board() {
  for (const int fd : watched_)
    if (fd >= 0) close(fd);
}

BoardSlot &Board::slot(int32_t process) const { return shared_->slots[process]; }

// ended says whether a process is no more. Its descriptor is ready then, even while its
// parent has not asked for its end; without one only its number can be asked for.
bool Board::ended(int32_t process) {
  if (process == self_) return false;
  const int fd = watched_[size_t(process)];
  if (fd < 0) return kill(pids_[size_t(process)], 0) != 0 && errno == ESRCH;
  pollfd p = {fd, POLLIN, 0};
  return poll(&p, 1, 0) > 0;
}

bool Board::someone_ended() {
  for (int32_t p = 0; p < processes(); p++)
    if (ended(p)) return true;
  return false;
}

// wait waits until done, and is false where that can't be expected any more. It looks
// often at first, since the others mostly come at about the same time.
bool Board::wait(const std::function<bool()> &done, int64_t patience_ns) {
  const int64_t begin = now_ns();
  for (int64_t turn = 0;; turn++) {
    if (done()) return true;
    if (stopped_) return false;
    const int64_t waited = now_ns() - begin;
    if (patience_ns != kForever && waited > patience_ns) return done();
    if (turn < 1000 && waited < kSpin) {  // on a busy machine a turn may take milliseconds
      std::this_thread::yield();
      continue;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(turn < 3000 ? 50 : 1000));
    if (turn % 64 == 0 && someone_ended()) return done();  // it may have been there
  }
}

bool Board::exchange(const void *mine, void *all, int64_t bytes) {
  for (int64_t at = 0; at < bytes || (at == 0 && bytes == 0); at += kPart) {
    const size_t n = size_t(std::min(kPart, bytes - at));
    const uint64_t round = ++round_;
    BoardSlot &own = slot(self_);
    if (n > 0) std::memcpy(own.data[round % 2], static_cast<const unsigned char *>(mine) + at, n);
    own.round.store(round, std::memory_order_release);
    for (int32_t p = 0; p < processes(); p++) {
      BoardSlot &s = slot(p);
      if (!wait([&] { return s.round.load(std::memory_order_acquire) >= round; }, kForever)) {
        stop();
        return false;
      }
      if (n > 0)
        std::memcpy(static_cast<unsigned char *>(all) + p * bytes + at, s.data[round % 2], n);
    }
  }
  return true;
}

bool Board::leave(int64_t patience_ns) {
  const uint64_t everybody = (uint64_t(1) << processes()) - 1;
  const uint64_t mine = uint64_t(1) << self_;
  slot(self_).left.store(1, std::memory_order_release);
  shared_->here.fetch_or(mine, std::memory_order_acq_rel);
  const auto decided = [&] {
    const uint64_t here = shared_->here.load(std::memory_order_acquire);
    return here == everybody || (here & kApart) != 0;
  };
  if (!stopped_ && !wait(decided, patience_ns)) {
    uint64_t here = shared_->here.load(std::memory_order_acquire);
    while (here != everybody && (here & kApart) == 0 &&
           !shared_->here.compare_exchange_weak(here, here | kApart, std::memory_order_acq_rel)) {
    }
  }
  return !stopped_ && shared_->here.load(std::memory_order_acquire) == everybody;
}

void Board::leave_alone() {
  stop();
  shared_->here.fetch_or(kApart, std::memory_order_acq_rel);
  slot(self_).left.store(1, std::memory_order_release);
}

bool Board::all_left() {
  for (int32_t p = 0; p < processes(); p++)
    if (slot(p).left.load(std::memory_order_acquire) == 0 && !ended(p)) return false;
  return true;
}

}  // namespace mscclsh::nccl
