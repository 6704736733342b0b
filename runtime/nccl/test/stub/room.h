// A room is where the ranks of a communicator meet, in this process or others: memory
// that all have mapped, with a box for each pair of ranks, in which messages go over
// piece by piece.
#ifndef MSCCLSH_TEST_STUB_ROOM_H
#define MSCCLSH_TEST_STUB_ROOM_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace stub {

// Transfer is one message of this rank, to or from a peer.
struct Transfer {
  bool sends;
  int peer;
  unsigned char *at;
  size_t bytes;
  uint32_t tag;  // both ends must have the same
  size_t done = 0;
  bool over = false;
};

class Room {
 public:
  static constexpr size_t kPiece = 8192;

  // enter waits until all ranks are there. It throws std::runtime_error when they don't
  // come in time, or when stop is raised.
  Room(const std::string &name, int ranks, int rank, const std::atomic<bool> &stop);
  ~Room();
  Room(const Room &) = delete;
  Room &operator=(const Room &) = delete;

  // move carries out transfers, those with one peer in one direction in their order. It
  // throws std::runtime_error when the ends don't fit, time is up or stop is raised.
  void move(std::vector<Transfer> &transfers, const std::atomic<bool> &stop);

  const std::string name;
  const int ranks, rank;

 private:
  struct Box;
  struct Door;
  bool advance(Transfer &t);

  void *at_ = nullptr;
  size_t bytes_ = 0;
  Door *door_ = nullptr;
  Box *boxes_ = nullptr;
};

// timeout_ms is how long a rank waits for others.
int64_t timeout_ms();
int64_t now_ms();

}  // namespace stub

#endif
