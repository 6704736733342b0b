// A board is memory that the processes of one communicator share on one host. What the
// engine's collective calls exchange goes over it, rather than over NCCL: it takes no
// device, no stream, no place in any order of calls, and notices when a process has ended.
#ifndef MSCCLSH_NCCL_BOARD_H
#define MSCCLSH_NCCL_BOARD_H

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace mscclsh::nccl {

struct BoardShared;
struct BoardSlot;

// kMaxProcesses is how many share a board at most: a bit each.
constexpr int32_t kMaxProcesses = 63;

// BoardFile is the memory before it is known who shares it: rank 0 makes one, and tells
// the others its process, descriptor and nonce.
class BoardFile {
 public:
  explicit BoardFile(uint64_t nonce);          // a new one
  BoardFile(int pid, int fd, uint64_t nonce);  // another process's, or this one's
  ~BoardFile();
  BoardFile(const BoardFile &) = delete;
  BoardFile &operator=(const BoardFile &) = delete;

  int fd() const { return fd_; }
  BoardShared *shared() const { return shared_; }
  void close_fd();  // once all have opened it

 private:
  int fd_ = -1;
  BoardShared *shared_ = nullptr;
};

class Board {
 public:
  // pids are those of all processes, this one is the self-th of them.
  Board(std::unique_ptr<BoardFile> file, const std::vector<int32_t> &pids, int32_t self);
  ~Board();
  Board(const Board &) = delete;
  Board &operator=(const Board &) = delete;

  int32_t processes() const { return int32_t(watched_.size()); }

  // exchange is an allgather: bytes of each process, in their order, into all. It is false
  // once a process has ended, stop was called, or the board was broken before.
  bool exchange(const void *mine, void *all, int64_t bytes);

  // stop makes this process's exchanges fail, now and later.
  void stop() { stopped_ = true; }

  // leave says that no launch of this process runs any more, nor will, and waits for the
  // others to say so, up to a time. True: all are here now, so that collective calls to
  // take things down find each other. False: they will not come together any more; each
  // takes down what is its own once everybody has left, or never.
  bool leave(int64_t patience_ns);

  // leave_alone says the same, and lets nobody wait for this process.
  void leave_alone();

  // all_left is whether every process has left, or has ended.
  bool all_left();

 private:
  BoardSlot &slot(int32_t process) const;
  bool wait(const std::function<bool()> &done, int64_t patience_ns);
  bool ended(int32_t process);
  bool someone_ended();

  std::unique_ptr<BoardFile> file_;
  BoardShared *shared_;
  const int32_t self_;
  std::vector<int> watched_;  // of each process, a descriptor of it, or -1
  std::vector<int32_t> pids_;
  uint64_t round_ = 0;
  std::atomic<bool> stopped_{false};
};

}  // namespace mscclsh::nccl

#endif
