// What the kernel reads: plain tables in device memory, made by program.cpp.
#ifndef MSCCLSH_TABLES_H
#define MSCCLSH_TABLES_H

#include <cstdint>

namespace mscclsh {

// What a step does; numbered like the C interface's kinds.
enum Kind : uint8_t { kNop, kSend, kRecv, kRcs, kRrs, kRrc, kRrcs, kCopy, kReduce };

// Step is one step, resolved for a size. Numbers of messages count within a tile.
struct alignas(16) Step {
  uint8_t kind;
  uint8_t post;
  uint16_t deps;       // how many
  int32_t count;       // chunks
  unsigned char *src;  // of the first tile
  unsigned char *dst;
  int32_t in, out;                 // index among the block's ends
  uint32_t in_before, out_before;  // messages of this end before this step
  uint32_t dep_start;              // index among the block's
  uint32_t pad;
};

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
// (Simple), and stores the number of messages it has taken to *theirs. A sending end
// polls *mine, the number taken, and with Simple stores the number sent to *theirs.
struct alignas(16) End {
  uint64_t *seq;
  uint64_t *mine;
  uint64_t *theirs;
  unsigned char *slots;  // at the receiver
  uint64_t stride;       // bytes from slot to slot
  uint64_t first;        // set by the kernel: number of the launch's first message
  uint64_t limit;        // set by the kernel: messages before this one need no look at *mine
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
  uint32_t slot_lines;  // lines that a slot has (LL, LL128)
  int32_t regime, slots;
  int32_t pad;
};

// DivideRun is a run of elements that avg divides.
struct DivideRun {
  unsigned char *at;
  int64_t elems;
  int64_t divisor;
};

// kWindow is the most steps that lie in shared memory at once.
constexpr int kWindow = 128;

// kMaxEnds bounds the connections of one block.
constexpr int kMaxEnds = 128;

// kMaxDeps is the most dependencies of a block that lie in shared memory.
constexpr int kMaxDeps = 1024;

}  // namespace mscclsh

#endif
