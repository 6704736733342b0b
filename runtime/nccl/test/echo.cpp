// A library with a few functions of NCCL's interface that note what they were called
// with, so that a test can see whether a trampoline hands everything on as it is.
#include "echo.h"

#include <cstring>

namespace {
EchoCall last;
}

extern "C" {

EchoCall echo_last() { return last; }

int ncclGetVersion(int *version) {
  *version = 22809;
  return 0;
}

// More integers than there are registers for them.
int ncclPutSignal(const void *buffer, size_t count, int type, int peer, void *window, size_t offset,
                  int signal, int context, unsigned flags, void *comm, void *stream) {
  const uint64_t all[11] = {reinterpret_cast<uint64_t>(buffer),
                            count,
                            uint64_t(type),
                            uint64_t(peer),
                            reinterpret_cast<uint64_t>(window),
                            offset,
                            uint64_t(signal),
                            uint64_t(context),
                            flags,
                            reinterpret_cast<uint64_t>(comm),
                            reinterpret_cast<uint64_t>(stream)};
  std::memcpy(last.integers, all, sizeof all);
  last.calls++;
  return 4;
}

// An identifier by value, which goes over the stack.
int ncclCommInitRankScalable(EchoId id, int rank) {
  last.id = id;
  last.integers[0] = uint64_t(rank);
  last.calls++;
  return 6;
}

// Floating-point numbers in all registers that hold them, and a result of that kind.
double ncclParamGet(double a, double b, double c, double d, double e, double f, double g, double h,
                    int i) {
  const double all[8] = {a, b, c, d, e, f, g, h};
  std::memcpy(last.doubles, all, sizeof all);
  last.integers[0] = uint64_t(i);
  last.calls++;
  return a - h;
}

// A result that goes where the caller says.
EchoId ncclTeamWorld(void *comm) {
  EchoId id;
  std::memset(id.bytes, int(reinterpret_cast<uint64_t>(comm)), sizeof id.bytes);
  last.calls++;
  return id;
}

// One that is called by many threads at once.
int ncclRedOpDestroy(int i) { return i + 1; }
}
