// What the library tells of itself: lines of MSCCLSH_LOG, sentences on standard error that
// an operator must see, and counts at the end.
#ifndef MSCCLSH_NCCL_LOG_H
#define MSCCLSH_NCCL_LOG_H

#include <atomic>
#include <cstdint>
#include <string>

#include "table.h"

namespace mscclsh::nccl {

// say writes one line to standard error, and to the log's file where there is one.
void say(const std::string &line);

// log_setup and log_choice write a line where MSCCLSH_LOG asks for their kind.
void log_setup(const std::string &line);
void log_choice(const std::string &line);

// Stats counts calls for MSCCLSH_NCCL_STATS: of each collective, those that a program
// carried out and those that NCCL did.
struct Stats {
  std::atomic<uint64_t> ours[MSCCLSH_COLLECTIVES] = {};
  std::atomic<uint64_t> left[MSCCLSH_COLLECTIVES] = {};
  std::atomic<uint64_t> copies{0};  // calls whose buffers were brought into form by copies
};
Stats &stats();

}  // namespace mscclsh::nccl

#endif
