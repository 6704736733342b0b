// What the kernel reads: plain tables in device memory, made by program.cpp.
#ifndef MSCCLSH_TABLES_H
#define MSCCLSH_TABLES_H

#include <cstdint>

namespace mscclsh {

// What a step does; numbered like the C interface's kinds.
enum Kind : uint8_t { kNop, kSend, kRecv, kRcs, kRrs, kRrc, kRrcs, kCopy, kReduce };

// Flags of a step.
enum : uint8_t {
  // kMeet: the block's threads must meet before it, because it touches memory that other
  // threads of the block touched since they last met.
  kMeet = 1,
  // kExchange: the step after it, a receive, arrives together with it (Direct).
  kExchange = 2,
  // kArrived: it has arrived with the step before it, an exchange (Direct).
  kArrived = 4,
  // kIn and kOut: it receives, it sends.
  kIn = 8,
  kOut = 16,
  // kStrict: another thread block of the rank touches the same memory, and messages alone
  // may be what orders the two (LL, LL128): the step begins when its message is there as a
  // whole, and what it and those before it did is there for all before anything is sent.
  kStrict = 32
};

// How a message gets across without a slot (Direct).
enum Way : uint8_t { kNone, kPush, kPull };

// Step is one step, resolved for a size: its result is x, or x op y, and goes to dst and
// to a peer. x is what is received where the pointer is null. Numbers of messages count
// within a tile, pointers are those of the first tile.
//
// The join steps after it are done with it in one pass: first those that add something to
// the result, then those that send it to another peer.
struct alignas(16) Step {
  uint8_t kind;
  uint8_t post;
  uint8_t flags;
  uint8_t join;
  uint16_t deps;                   // how many
  Way in_way, out_way;             // Direct
  int32_t count;                   // chunks
  uint32_t dep_start;              // index among the block's
  unsigned char *x;                // null: the message received; at the peer where in_way is kPull
  unsigned char *y;                // null: no reduction
  unsigned char *dst;              // null: not written to memory
  unsigned char *far;              // where out_way is kPush: at the peer
  int16_t in, out;                 // index among the block's ends, -1 without
  uint32_t in_before, out_before;  // messages of this end before this step
  uint8_t join_in;                 // how many of the steps that join it add something
  uint8_t join_out;                // how many stand before the first that sends
  uint16_t pad;
};
static_assert(sizeof(Step) == 64, "a step takes four loads of 16 bytes");

// Dep names a step of another thread block of the rank.
struct alignas(16) Dep {
  uint32_t tb;
  uint32_t step;
  uint64_t steps;  // of that thread block
};

// End is a block's view of one connection. Messages are numbered from 0 over the
// life of the communicator; the number of the next one lies in *seq between launches.
//
// A receiving end polls its slots (LL, LL128) or *mine, the number of messages sent
// (Simple), and stores the number of messages it has taken to *theirs: at the start of
// a launch, and after every Args::withheld messages of one. A sending end polls *mine,
// the number taken, and with Simple stores the number sent to *theirs.
//
// With Direct both count what has been said about messages: *theirs of the sending end
// that the source of a pull is ready, or that a push is done; of the receiving end that
// the destination of a push is ready, or that a pull is done.
struct alignas(16) End {
  uint64_t *seq;
  uint64_t *mine;
  uint64_t *theirs;
  unsigned char *slots;  // at the receiver
  uint64_t stride;       // bytes from slot to slot
  uint64_t first;        // set by the kernel: number of the launch's first message
  uint64_t limit;        // set by the kernel: messages before this one need no look at *mine
  uint64_t seen;         // set by the kernel: the limit to be
  uint32_t per_tile;     // messages of one tile
  uint32_t sends;        // 1: a sending end
  int32_t peer, chan;
};

// Block is the work of one block of the grid. Its ends, its steps and its dependencies
// follow it in memory, each table with room for the largest of the launch (Args), so
// that one copy of a known length brings all of it into shared memory; of a long
// program only the ends and some steps at a time.
struct alignas(16) Block {
  uint64_t *posted;    // [thread blocks of the rank]: see Args
  uint64_t *launches;  // finished ones of this program
  int32_t n_steps, n_ends;
  int32_t rank, tb;
  uint64_t first_event;
  uint64_t pad;
};

// Record says what a block waited for when it left early.
struct Record {
  uint64_t want, have;
  int64_t tile;
  int32_t cause;  // 0 finished, 1 time ran out, 2 told to leave
  int32_t step, waits_for, peer, chan, pad;
};

// Event is one step of one tile, ns.
struct Event {
  int64_t begin, end;
};

// Bases are what a launch of a bound call adds to places in its tables. A place in the
// caller's input stands there as its distance from the last multiple of kPlace before the
// input's start, with number 1 in its top bits; one in the output likewise, with number 2.
// Adding the base takes the number away as well. All other places are addresses: those of
// GPUs end below 2^57, so that their number is 0 and they stay.
struct Bases {
  uint64_t of[3];  // by number; of[0] is 0
};

// kNumberBit is the lowest bit of a place's number.
constexpr int kNumberBit = 62;

// kPlace: buffers that start as many bytes past a multiple of it are alike to all kernels.
constexpr uint32_t kPlace = 128;

// Args is the kernel's parameter. A thread block posts a step as
// launch << 32 | tile * steps + step + 1, so that what is posted only grows.
struct Args {
  const unsigned char *blocks;  // block_bytes apart
  uint64_t block_bytes;
  uint32_t head_bytes;  // of them into shared memory at once
  uint32_t deps_at;     // offset of the dependencies; in shared memory where head_bytes is more
  int32_t max_ends;     // in every block's table
  int32_t window;       // steps that lie in shared memory at once
  Record *records;      // one a block
  Event *events;        // null without trace; block by block, tile by tile
  uint32_t *dead;       // in the device's memory: a launch was cut short
  uint32_t *abort;      // in the host's memory, for all devices
  int64_t chunk_bytes, tile_bytes, tiles;
  int64_t watchdog_ns;
  uint64_t flag_mask;   // the modulus of flags minus 1
  uint32_t slot_lines;  // packets or lines that a slot has (LL, LL128)
  int32_t regime;
  // A connection has more slots than its program relies on, by at least the number of
  // messages that a receiver may take before it says so. Both are powers of two.
  int32_t slots, withheld;
  uint32_t rebases;  // 1: steps, or areas, have places to which bases are to be added
  Bases bases;
  uint64_t *launches;  // of a one-sided program: how many have finished, one a block
  uint32_t wants;      // of it, what to rehearse: 1 packets one after another, 2 several at once
};

// DivideRun is a run of elements that avg divides.
struct DivideRun {
  unsigned char *at;
  int64_t elems;
  int64_t divisor;
};

// kWindow is the most steps that lie in shared memory at once.
constexpr int kWindow = 128;

// kMaxJoin is the most steps that join another.
constexpr int kMaxJoin = 16;

// kMaxEnds bounds the connections of one block.
constexpr int kMaxEnds = 128;

// kMaxDeps is the most dependencies of a block that lie in shared memory.
constexpr int kMaxDeps = 1024;

}  // namespace mscclsh

#endif
