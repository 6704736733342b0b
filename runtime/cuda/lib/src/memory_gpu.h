// What the driver knows of memory, and memory of its virtual memory functions.
#ifndef MSCCLSH_MEMORY_GPU_H
#define MSCCLSH_MEMORY_GPU_H

#include <cstddef>
#include <cstdint>

#include "peers.h"
#include "peers_fds.h"

namespace mscclsh {

// Allocation is what an address of a GPU's memory belongs to.
struct Allocation {
  unsigned char *start;
  size_t bytes;
  uint64_t id;  // no other allocation's, ever
  bool ipc;     // of cudaMalloc: other processes open it by a handle of cudaIpc
};

// allocation_of is refused where there is no memory of a GPU.
Allocation allocation_of(const void *p);

// reachable is whether kernels of the device that is chosen may read and write memory, once
// peer access was opened.
bool reachable(const void *p);

// export_fd makes a descriptor by which memory of the virtual memory functions can be
// opened, or is refused.
Fd export_fd(const void *p);

// import_fd maps such memory for the device that is chosen, of that number.
unsigned char *import_fd(int fd, size_t bytes, int32_t device);

// map_new makes memory of the device that is chosen, of that number, with whatever contents
// and for its kernels alone. It waits for nothing that runs, as cudaMalloc may, which opens
// memory to all devices with peer access. bytes becomes what there is, at least as many.
unsigned char *map_new(size_t *bytes, int32_t device);

// unmap ends what import_fd or map_new has mapped, which nothing may use any more.
void unmap(unsigned char *start, size_t bytes);

}  // namespace mscclsh

#endif
