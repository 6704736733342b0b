// What the kernel of one-sided programs reads: plain tables in device memory, made by
// one_build.cpp.
#ifndef MSCCLSH_ONE_TABLES_H
#define MSCCLSH_ONE_TABLES_H

#include <cstdint>

namespace mscclsh {

// OneDoes is what an operation comes down to.
enum OneDoes : uint8_t {
  kOneMeet,      // the block's threads meet
  kOneBarrier,   // blocks of the rank meet at its one counter
  kOneGive,      // count its counters up: signals, and releases of semaphores
  kOneTake,      // wait for its counters: waits, and acquires
  kOnePlain,     // lanes of plain bytes
  kOnePackets,   // lanes that read or write packets
  kOnePort,      // lanes for the host's thread to copy, and signals that it gives
  kOnePipeline,  // the operations that follow it, over and over
};

// Flags of an operation.
enum : uint8_t {
  kOneSmall = 1,   // packets of 4 bytes, in a program whose ranges are not whole ones of 8
  kOneMany = 2,    // packets of several sources are awaited together
  kOneAwait = 4,   // kOnePort: the sources are packets that must have come
  kOneSignal = 8,  // kOnePort: a signal follows each lane
  kOneFlush = 16,  // kOnePort: wait until all of it has arrived
  kOneRaw = 32,    // kOnePort: the lanes are packets, twice the bytes
};

// OneOp is one operation, resolved for a size. Its lanes are n_lanes times n_reads and then
// n_writes of the block's areas, from first_area on: what is read is reduced, in order, into
// all that is written. A lane has as many bytes as its first area.
//
// The operations of a pipeline follow it: body of them, turns times, on unit bytes each time.
struct alignas(16) OneOp {
  OneDoes does;
  uint8_t op;  // the reduction, where the kernel is for several
  uint8_t flags;
  uint8_t scope;   // which waits_for of a record
  uint32_t index;  // in the program's table
  uint32_t first_area, n_lanes, n_reads, n_writes;
  uint32_t first_ref, n_refs;
  int64_t unit, turns;
  uint32_t body;
  uint32_t pad[3];
};
static_assert(sizeof(OneOp) == 64, "an operation takes four loads of 16 bytes");

// OneArea is where a range of data begins, for this device. Of scratch in two halves odd
// launches take the second. Packets take twice the bytes of their data.
struct alignas(16) OneArea {
  unsigned char *at;
  uint64_t half;  // bytes from one half to the other; 0: there is one
  int64_t bytes;  // of data
  uint32_t packets;
  uint32_t pad;
};

// Flags of a counter.
enum : uint32_t {
  kOneAdd = 1,      // others count too: add to it, instead of storing
  kOneRelaxed = 2,  // nothing else is published, or seen
  kOneDevice = 4,   // only blocks of this device look at it
  kOneTicket = 8,   // several blocks take from it, and draw numbers
  kOnePlaced = 16,  // no counter, but how far a port has been flushed
};

// OneRef is what an operation has to do with one counter, which only grows: every launch
// adds per_launch to it. In launch L and turn t of a pipeline the operation makes it, or
// waits until it is, at least
//
//   L * per_launch + before + t * per_turn
//
// With kOneTicket the number that is drawn takes the place of t * per_turn; every launch
// draws drawn numbers. Of a barrier of parts blocks the sum is rounded up to whole parts.
//
// Where launches of several sizes count differently per_launch and drawn are 0 instead, and
// the kernel adds to before what the block's sums say.
struct alignas(16) OneRef {
  uint64_t *at;
  uint64_t *tickets;
  uint64_t per_launch, drawn;
  int64_t before;
  uint32_t per_turn, flags;
  int32_t peer, chan;  // for records
  uint32_t parts;
  uint32_t index;  // kOnePort: of the channel among the rank's ports; else among the sums
};
static_assert(sizeof(OneRef) == 64, "a counter takes four loads of 16 bytes");

// PortWish is what a block asks the host's thread for; PortRequest is one in the queue,
// whole once turn is its number there plus 1.
struct PortWish {
  uint64_t src, dst, bytes;
  uint32_t port, what;
};
struct alignas(16) PortRequest {
  PortWish wish;
  uint64_t turn;
  uint64_t pad[3];
};
static_assert(sizeof(PortRequest) == 64, "a request has a line of the host's to itself");

// OneSum is how far a counter has come, and how many numbers were drawn there: in the table by
// one launch, in the device's memory by all that have ended.
struct alignas(16) OneSum {
  uint64_t given, drawn;
};

// What a wish is, in this order.
enum : uint32_t { kPortPut = 1, kPortSignal = 2, kPortFlush = 4 };

// kPortDepth is how many requests of a rank may be on their way to the host.
constexpr uint32_t kPortDepth = 256;

// PortView is a rank's queue as its device sees it: requests lie in the host's memory, the
// number of those that were made so far in the device's.
struct PortView {
  PortRequest *requests;
  uint64_t *made;
  const uint64_t *taken;  // in the host's memory
};

// OneBlock is the work of one block of the grid. Its operations follow it in memory, then its
// areas, its counters and its sums; all of it goes into shared memory where that has room.
struct alignas(16) OneBlock {
  uint64_t first_event;
  PortView port;
  OneSum *sums;                   // in the device's memory, n_sums
  uint32_t first_drain, n_drain;  // counters of the ports that it uses
  int32_t n_ops;
  int32_t rank, tb;
  uint32_t areas_at, refs_at, sums_at;  // offsets
  uint32_t n_sums;                      // 0: every launch counts alike
  uint32_t
      copy_at;  // offset of room for what changes from launch to launch; 0: shared memory has it
};
static_assert(sizeof(OneBlock) % 16 == 0, "tables are copied 16 bytes at a time");

// kOneShared is the longest table that lies in shared memory, bytes. Longer ones are read
// where they are.
constexpr uint32_t kOneShared = 40 << 10;

}  // namespace mscclsh

#endif
