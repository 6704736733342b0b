#include "room.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <set>
#include <stdexcept>

namespace stub {

int64_t now_ms() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t(t.tv_sec) * 1000 + t.tv_nsec / 1000000;
}

int64_t timeout_ms() {
  const char *set = std::getenv("STUB_TIMEOUT_MS");
  return set != nullptr ? std::atoll(set) : 20000;
}

namespace {

// Patience waits a little each time, and not longer than the timeout in all.
class Patience {
 public:
  // wait returns false when time is up.
  bool wait() {
    if (++turns_ < 200) {
      sched_yield();
      return true;
    }
    usleep(50);
    return now_ms() - begun_ < timeout_ms();
  }
  void progress() {
    turns_ = 0;
    begun_ = now_ms();
  }

 private:
  int turns_ = 0;
  int64_t begun_ = now_ms();
};

}  // namespace

struct Room::Door {
  std::atomic<int32_t> inside, left;
};

// Box is the way from one rank to another: full is 1 while a piece is in it.
struct Room::Box {
  std::atomic<uint32_t> full;
  uint32_t tag;
  uint64_t total;
  uint32_t piece, zero;
  unsigned char data[kPiece];
};

Room::Room(const std::string &name, int ranks, int rank, const std::atomic<bool> &stop)
    : name(name), ranks(ranks), rank(rank) {
  bytes_ = 64 + size_t(ranks) * size_t(ranks) * sizeof(Box);
  const std::string path = "/dev/shm/mscclsh-stub-" + name;
  const int fd = open(path.c_str(), O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, off_t(bytes_)) != 0) throw std::runtime_error("no room " + path);
  at_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (at_ == MAP_FAILED) throw std::runtime_error("mapping room " + path + " failed");
  door_ = static_cast<Door *>(at_);
  boxes_ = reinterpret_cast<Box *>(static_cast<unsigned char *>(at_) + 64);
  door_->inside++;
  Patience patience;
  while (door_->inside.load() < ranks) {
    if (patience.wait() && !stop.load()) continue;
    munmap(at_, bytes_);
    unlink(path.c_str());
    throw std::runtime_error("rank " + std::to_string(rank) + " waited in vain for the others");
  }
  unlink(path.c_str());  // all have it
}

Room::~Room() { munmap(at_, bytes_); }

bool Room::advance(Transfer &t) {
  Box &box = boxes_[size_t(t.sends ? rank * ranks + t.peer : t.peer * ranks + rank)];
  if (box.full.load(std::memory_order_acquire) != (t.sends ? 0u : 1u)) return false;
  if (t.sends) {
    const size_t piece = t.bytes - t.done < kPiece ? t.bytes - t.done : kPiece;
    box.tag = t.tag;
    box.total = t.bytes;
    box.piece = uint32_t(piece);
    if (piece > 0) std::memcpy(box.data, t.at + t.done, piece);
    t.done += piece;
    box.full.store(1, std::memory_order_release);
  } else {
    if (box.tag != t.tag || box.total != t.bytes)
      throw std::runtime_error(
          "rank " + std::to_string(t.peer) + " sends " + std::to_string(box.total) +
          " bytes of call " + std::to_string(box.tag) + ", and rank " + std::to_string(rank) +
          " waits for " + std::to_string(t.bytes) + " of call " + std::to_string(t.tag));
    if (box.piece > 0) std::memcpy(t.at + t.done, box.data, box.piece);
    t.done += box.piece;
    box.full.store(0, std::memory_order_release);
  }
  t.over = t.done == t.bytes;
  return true;
}

void Room::move(std::vector<Transfer> &transfers, const std::atomic<bool> &stop) {
  Patience patience;
  for (;;) {
    std::set<std::pair<bool, int>> busy;  // an earlier one goes first
    bool moved = false;
    for (Transfer &t : transfers) {
      if (t.over || !busy.insert({t.sends, t.peer}).second) continue;
      moved |= advance(t);
    }
    bool over = true;
    for (const Transfer &t : transfers) over &= t.over;
    if (over) return;
    if (moved) {
      patience.progress();
    } else if (!patience.wait()) {
      throw std::runtime_error("rank " + std::to_string(rank) + " waited in vain for a message");
    }
    if (stop.load()) throw std::runtime_error("aborted");
  }
}

}  // namespace stub
