// One of the processes that test/processes.cpp starts.
#ifndef MSCCLSH_TEST_PROCESS_H
#define MSCCLSH_TEST_PROCESS_H

#include <cstdint>
#include <string>
#include <vector>

// Setting is what a process is told on its command line.
struct Setting {
  std::string scenario;
  int32_t process = 0, processes = 0;
  int32_t ranks = 0;   // rank r lives in process r % processes
  int32_t rounds = 0;  // of scenario mixed
  int32_t victim = 0;  // the rank whose process is killed, of scenario kill
  int fd = -1;         // to the parent
  std::vector<int32_t> devices;
};

// kWatchdog is the time after which stuck launches end in scenarios that have them, ns.
constexpr int64_t kWatchdog = 1000000000;

// kRunning, in place of a size, tells the parent that launches have begun.
constexpr int64_t kRunning = -1;

// run_process carries out a scenario and returns the exit code.
int run_process(const Setting &s);

#endif
