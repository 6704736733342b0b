#include "log.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "options.h"

namespace mscclsh::nccl {

namespace {

// Sink is the log's file. It is opened once and never closed, because lines are written
// until the process ends.
FILE *sink() {
  static FILE *const file = [] {
    const std::string &name = options().log_file;
    if (name.empty()) return stderr;
    FILE *f = std::fopen(name.c_str(), "ae");
    if (f == nullptr)
      std::fprintf(stderr, "mscclsh: MSCCLSH_LOG: %s can't be opened, the log goes here\n",
                   name.c_str());
    return f == nullptr ? stderr : f;
  }();
  return file;
}

// write writes a line in one piece: several processes may share the file.
void write(FILE *f, const std::string &line) {
  const std::string whole = "mscclsh: " + line + "\n";
  std::fwrite(whole.data(), 1, whole.size(), f);
  std::fflush(f);
}

// print_stats is called when the process ends, and does nothing in a child of it.
pid_t counting;

void print_stats() {
  if (getpid() != counting) return;
  Stats &s = stats();
  for (int32_t c = 0; c < MSCCLSH_COLLECTIVES; c++) {
    const unsigned long long ours = s.ours[c], left = s.left[c];
    if (ours + left == 0) continue;
    char line[160];
    std::snprintf(line, sizeof line, "stats: process %d: %s: %llu calls by programs, %llu by NCCL",
                  int(counting), collective_name(c), ours, left);
    write(sink(), line);
  }
  if (s.copies != 0)
    write(sink(), "stats: process " + std::to_string(counting) + ": " +
                      std::to_string(s.copies.load()) + " of these calls needed copies");
}

}  // namespace

void say(const std::string &line) {
  write(stderr, line);
  if (sink() != stderr) write(sink(), line);
}

void log_setup(const std::string &line) {
  if (options().log_setup) write(sink(), "setup: " + line);
}

void log_choice(const std::string &line) {
  if (options().log_choice) write(sink(), "choice: " + line);
}

Stats &stats() {
  // Never destroyed: calls may come while the process ends.
  static Stats &counts = *[] {
    Stats *s = new Stats;
    if (options().stats) {
      counting = getpid();
      sink();
      std::atexit(print_stats);
    }
    return s;
  }();
  return counts;
}

}  // namespace mscclsh::nccl
