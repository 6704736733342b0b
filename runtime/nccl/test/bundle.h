// Tables made by hand: programs that are simple enough to be right by looking at them, in
// files of mscclsh_table.h, so that the library's tests need no compiler for them and can
// damage what they like.
#ifndef MSCCLSH_TEST_BUNDLE_H
#define MSCCLSH_TEST_BUNDLE_H

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "mscclsh_cuda.h"
#include "mscclsh_table.h"

// HandOne is what a one-sided program has beside: the tables of mscclsh_one_program.
struct HandOne {
  std::vector<mscclsh_span> blocks;
  std::vector<int32_t> tbs, n_channels, n_semaphores, semaphores, refs;
  std::vector<mscclsh_channel> channels;
  std::vector<mscclsh_op> ops;
  std::vector<mscclsh_operand> operands;
  int32_t packets = 0, double_scratch = 0;
};

// HandProgram is a program of one thread block a rank, or of two: Direct has sends on one
// of their own, as a send waits for its receive there.
struct HandProgram {
  int32_t ranks = 0, protocol = MSCCLSH_LL, slots = 8;
  int64_t slot_bytes = 4096, count_chunks = 1;
  std::string title;
  std::vector<std::vector<std::vector<mscclsh_step>>> steps;  // [ranks][thread blocks]
  std::vector<int32_t> chunks, base_buf, base_chunk;          // [ranks*3]
  std::vector<mscclsh_divide> divides;
  std::shared_ptr<HandOne> one;  // in place of steps
};

// Shape is what a program is made for. parts is how many chunks the count is cut into.
struct Shape {
  int32_t collective, ranks, root = -1;
  bool in_place = false;
  int32_t parts = 1;
  int32_t protocol = MSCCLSH_LL;
};

// straight makes every rank send what others need of it straight to them, and then take
// in what it needs itself.
HandProgram straight(const Shape &shape);

// Way is how a one-sided program brings data to other ranks.
enum class Way {
  kPackets,   // packets into scratch, which has two halves
  kPipeline,  // unit by unit into scratch, which has one, in two thread blocks a rank
  kGets,      // from their inputs, which must lie in windows: not for rooted collectives
  kPorts      // by ports into their outputs, likewise: for allgather alone
};

// kUnit is the alignment of such programs, bytes.
constexpr int32_t kUnit = 8;

// one_straight is straight for one-sided programs.
HandProgram one_straight(const Shape &shape, Way way);

// HandEntry is an entry: what it matches, and indexes of programs.
struct HandEntry {
  std::string name;
  mscclsh_table_entry entry;
};

struct Bundle {
  std::vector<HandProgram> programs;
  std::vector<HandEntry> entries;

  // add makes programs of a shape, for both places where there is one in place, and an
  // entry that matches every type and operation from min to max bytes.
  mscclsh_table_entry &add(Shape shape, uint64_t min, uint64_t max, const std::string &name = "");

  // add_one is add for one-sided programs: one for both places, or with windows one for each.
  mscclsh_table_entry &add_one(Shape shape, Way way, uint64_t min, uint64_t max,
                               const std::string &name = "");

  // bytes is the file; its entries are sorted as they have to be.
  std::vector<unsigned char> bytes() const;
};

// sign puts the right digest into a file that was changed.
void sign(std::vector<unsigned char> &file);

// write_file writes a file whole.
void write_file(const std::string &path, const std::vector<unsigned char> &bytes);

// standard has an entry for each collective of so many ranks, to 1 MiB: 0, 1 and, where
// there are enough ranks, all other roots too.
Bundle standard(const std::vector<int32_t> &ranks);

// one_sided is the same with one-sided programs of packets.
Bundle one_sided(const std::vector<int32_t> &ranks);

#endif
