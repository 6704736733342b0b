// What the environment asks of the library, read once. Ranks compare what has a part in
// the choice of a program: see Options::digest.
#ifndef MSCCLSH_NCCL_OPTIONS_H
#define MSCCLSH_NCCL_OPTIONS_H

#include <cstdint>
#include <string>

namespace mscclsh::nccl {

// kPatience is how long a block waits for its peer where MSCCLSH_WATCHDOG is not set,
// seconds. NCCL waits for ever, and ranks may well be minutes apart, while one of them
// writes a checkpoint, say.
constexpr int64_t kPatience = 1800;

// kDefaultScratch is what MSCCLSH_SCRATCH is where it is not set, bytes a rank and communicator.
constexpr int64_t kDefaultScratch = 64 << 20;

// kGroupDirect is what MSCCLSH_GROUP_DIRECT is where it is not set, bytes: on 2 x H200 8 MiB took
// 55 us and NCCL 50, of which telling whose memory it is takes most, and 16 MiB 67 and 79.
constexpr int64_t kGroupDirect = 16 << 20;

struct Options {
  bool on = true;                     // MSCCLSH_NCCL
  std::string table;                  // MSCCLSH_TABLE; empty: the library's own
  uint32_t deny = 0;                  // MSCCLSH_DENY: bit c: collective c is left to NCCL
  int64_t scratch = kDefaultScratch;  // MSCCLSH_SCRATCH
  int64_t watchdog_ns = kPatience * 1000000000;  // MSCCLSH_WATCHDOG
  bool group_alltoall = false;                   // MSCCLSH_GROUP_ALLTOALL
  int64_t group_direct = kGroupDirect;           // MSCCLSH_GROUP_DIRECT
  bool log_choice = false, log_setup = false;    // MSCCLSH_LOG
  std::string log_file;                          // of MSCCLSH_LOG; empty: standard error
  bool stats = false;                            // MSCCLSH_NCCL_STATS
  std::string wrong;  // one sentence on what could not be read; then everything falls back

  // digest is of what all ranks must be given alike.
  uint64_t digest() const;
};

// read_options takes its variables from get, which is getenv but in tests.
Options read_options(const char *(*get)(const char *name));

// options is what this process was started with.
const Options &options();

// mix folds a number into a digest (FNV-1a, 64 bits).
uint64_t mix(uint64_t digest, uint64_t v);
uint64_t mix_bytes(uint64_t digest, const void *bytes, uint64_t n);
constexpr uint64_t kDigest = 14695981039346656037u;  // of nothing

}  // namespace mscclsh::nccl

#endif
