// The table of algorithms: the file of mscclsh_table.h, checked, and the rule by which an
// entry is chosen. The Go package table has the same rule (docs/table.md).
#ifndef MSCCLSH_NCCL_TABLE_H
#define MSCCLSH_NCCL_TABLE_H

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "mscclsh_cuda.h"
#include "mscclsh_table.h"

namespace mscclsh::nccl {

// collective_name is the table's word, such as "reducescatter"; collective_named is the
// collective of a word, in any case and with underscores or without, or -1.
const char *collective_name(int32_t collective);
int32_t collective_named(const std::string &word);

// What data types and operations are called, numbered as in mscclsh_cuda.h.
const char *dtype_name(int32_t dtype);
const char *op_name(int32_t op);
int64_t dtype_bytes(int32_t dtype);

// kDtypes and kOps count them.
constexpr int32_t kDtypes = 12, kOps = 5;

inline bool reduces(int32_t collective) {
  return collective == MSCCLSH_ALLREDUCE || collective == MSCCLSH_REDUCESCATTER ||
         collective == MSCCLSH_REDUCE_TO_ROOT;
}
inline bool rooted(int32_t collective) {
  return collective == MSCCLSH_BROADCAST || collective == MSCCLSH_REDUCE_TO_ROOT ||
         collective == MSCCLSH_GATHER || collective == MSCCLSH_SCATTER ||
         collective == MSCCLSH_SENDRECV;
}

// average_overflows is whether an average is left to NCCL whatever the table says: of types
// with few exponents. NCCL divides before it adds, programs after it, and what they have
// added by then may be beyond the type's largest number.
bool average_overflows(int32_t collective, int32_t dtype, int32_t op);

// blocks_of is how many times a call's count its larger buffer holds.
inline int32_t blocks_of(int32_t collective, int32_t ranks) {
  switch (collective) {
    case MSCCLSH_ALLGATHER:
    case MSCCLSH_REDUCESCATTER:
    case MSCCLSH_ALLTOALL:
    case MSCCLSH_GATHER:
    case MSCCLSH_SCATTER:
      return ranks;
    default:
      return 1;
  }
}

// call_bytes is the size of a call as the table counts it, INT64_MAX where no memory
// holds so much.
int64_t call_bytes(int32_t collective, uint64_t count, int32_t dtype, int32_t ranks);

// Why an entry is not taken, in the order in which it is looked at; kWanted means that
// nothing speaks against it.
enum Reason {
  kWanted,
  kCollective,
  kRanks,
  kNodes,
  kDtype,
  kOp,
  kRoot,
  kPlace,
  kBytes,
  kMultiple,
  kMemory,
  kCtas,
  kScratch,
  kUnloaded,  // the machine can't run it, as its setup found: the library's own word
  kLowerPriority
};
const char *reason_word(Reason reason);

// Query is what a call is looked up by. All of it is the same on all ranks, but for
// in_place and out_of_place of calls that are in no window: see Table::why_not.
struct Query {
  int32_t collective = 0, ranks = 0, nodes = 1;
  int32_t dtype = 0, op = 0, root = 0;
  int64_t bytes = 0, count = 0;
  bool in_place = false;
  bool registered = false;        // both buffers in windows that were registered collectively
  int64_t alignment = INT64_MAX;  // of registered buffers, bytes
  int32_t max_ctas = INT32_MAX;   // thread blocks that a call may have
  int64_t scratch = INT64_MAX;    // bytes that a rank has
};

class Table {
 public:
  // open reads a file, and over takes bytes that stay where they are, aligned to 16. They
  // return null, and one sentence in why, for what is not a table of this version or is
  // damaged.
  static std::unique_ptr<Table> open(const std::string &path, std::string *why);
  static std::unique_ptr<Table> over(const void *bytes, size_t n, const std::string &name,
                                     std::string *why);
  Table(const Table &) = delete;
  Table &operator=(const Table &) = delete;

  const std::string &name() const { return name_; }
  uint64_t digest() const;
  int32_t entries() const { return int32_t(header().n_entries); }
  int32_t programs() const { return int32_t(header().n_programs); }
  const mscclsh_table_entry &entry(int32_t i) const { return entries_[i]; }
  const mscclsh_table_program &program(int32_t i) const { return programs_[i]; }
  const char *text(uint64_t offset) const { return at<char>(offset); }

  // flat is a program as mscclsh_load takes it, and one_flat a one-sided one as
  // mscclsh_one_load does; they point into the table. one is what a one-sided program has
  // beside, null where it sends and receives.
  mscclsh_program flat(int32_t program) const;
  mscclsh_one_program one_flat(int32_t program) const;
  const mscclsh_table_one *one(int32_t program) const {
    const uint64_t at_byte = programs_[program].one;
    return at_byte == 0 ? nullptr : at<mscclsh_table_one>(at_byte);
  }

  // one_memory is whether an entry has a one-sided program for both places.
  bool one_memory(const mscclsh_table_entry &e) const {
    return e.in_place >= 0 && e.in_place == e.out_of_place && one(e.in_place) != nullptr;
  }

  // why_not looks at one entry. Whether a call is in place speaks against an entry of
  // windows alone, whose buffers, and with them their places, are the same on all ranks.
  // Other calls may be in place on one rank and not on another, and the ranks can't ask
  // each other: a rank brings its buffers into the entry's form by copies.
  Reason why_not(const mscclsh_table_entry &e, const Query &q) const;

  // choose takes the first entry that nothing speaks against, or -1. ready, where not
  // null, says of each entry whether it can be run. reasons, where not null, gets one for
  // every entry.
  int32_t choose(const Query &q, const std::vector<char> *ready,
                 std::vector<Reason> *reasons) const;

 private:
  Table() = default;
  const mscclsh_table_header &header() const {
    return *reinterpret_cast<const mscclsh_table_header *>(bytes_);
  }
  template <class T>
  const T *at(uint64_t offset) const {
    return reinterpret_cast<const T *>(bytes_ + offset);
  }
  bool check(std::string *why);

  std::string name_;
  std::unique_ptr<unsigned char[]> own_;  // of a file
  const unsigned char *bytes_ = nullptr;
  size_t size_ = 0;
  const mscclsh_table_entry *entries_ = nullptr;
  const mscclsh_table_program *programs_ = nullptr;
};

// chunk_bytes is the size of a program's chunks in a call, and regime how many of them one
// message carries.
int64_t chunk_bytes(const mscclsh_table_program &p, int64_t count, int32_t dtype);
int32_t regime(const mscclsh_table_program &p, int64_t chunk_bytes);

// staging_bytes is the most that any rank needs to bring a call's buffers into the form of
// an entry, whatever they are: what ranks need to know of each other's copies.
int64_t staging_bytes(const mscclsh_table_entry &e, const Query &q);

}  // namespace mscclsh::nccl

#endif
