// What one device launches of a program, bound to a size and to memory.
#ifndef MSCCLSH_LAUNCH_H
#define MSCCLSH_LAUNCH_H

#include <vector>

#include "kernels.h"

namespace mscclsh {

// Sizing is a size that a program can run at, cut into tiles, with the kernels for it.
struct Sizing {
  mscclsh_size size = {};
  int32_t elem = 0;  // bytes
  int32_t threads = 0;
  int64_t tile_bytes = 0, tiles = 0;
  Kernel kernel = nullptr;
  Kernel quick[2] = {};  // for short programs, without and with dependencies, or null
  DivideKernel divide = nullptr;
};

// Places are where the buffers of all ranks that are their own start, [3*ranks], as the
// kernels of one device see them; null where that is not known.
using Places = std::vector<unsigned char *>;

// Shape is what the kernels for short programs ask of a launch. Launches of one program can
// be put together: what then runs suits all of them.
struct Shape {
  bool quick = false;     // they can run it
  bool has_deps = false;  // thread blocks wait for each other's steps
  int64_t longest = 0;    // message, bytes

  void add(const Shape &o) {
    quick &= o.quick;
    has_deps |= o.has_deps;
    longest = o.longest > longest ? o.longest : longest;
  }
};

// Launch is a kernel with all that it reads; no blocks launch nothing.
struct Launch {
  Kernel kernel = nullptr;
  int32_t blocks = 0, threads = 0;
  size_t shared = 0;  // bytes
  Args args = {};
  DivideKernel divide = nullptr;
  const DivideRun *divides = nullptr;
  int64_t n_divides = 0;
};

// Image is what lies in a device's memory for a launch: the blocks' tables, then what avg
// divides.
struct Image {
  std::vector<unsigned char> bytes;
  size_t divides_at = 0;
  int64_t n_divides = 0;
  uint64_t events = 0;  // that a trace records
  size_t shared = 0;    // bytes
  Args args = {};
  Shape shape;
};

}  // namespace mscclsh

#endif
