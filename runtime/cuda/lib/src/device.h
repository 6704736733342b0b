// One device and its queue of work. device_gpu.cu and device_host.cpp each define it.
#ifndef MSCCLSH_DEVICE_H
#define MSCCLSH_DEVICE_H

#include <cstddef>
#include <memory>

#include "failure.h"
#include "kernels.h"
#include "peers.h"
#include "peers_file.h"
#include "verify.h"

namespace mscclsh {

// device_count and device_info are for all devices of the machine; build_name says
// how the library was built.
int32_t device_count();
mscclsh_device device_info(int32_t id);
const char *build_name();

// default_threads is the size of a block where the caller leaves it open, and
// thread_unit what a size must be a multiple of.
int32_t default_threads();
int32_t thread_unit();

// HostFlag is a word in the host's memory that all devices reach, those of other
// processes too when it lies in a file that they share.
class HostFlag {
 public:
  explicit HostFlag(std::unique_ptr<SharedFile> file);  // null: this process's own
  ~HostFlag();
  HostFlag(const HostFlag &) = delete;
  HostFlag &operator=(const HostFlag &) = delete;
  bool raised() const;
  uint32_t *word() const { return word_; }  // for kernels

 private:
  std::unique_ptr<SharedFile> file_;
  uint32_t *here_ = nullptr, *word_ = nullptr;
};

// Fit is what a device can hold of a kernel.
struct Fit {
  int32_t blocks;     // resident at once
  int32_t registers;  // per thread
};

// Device is one device with one queue, in which everything runs in order. Calls that
// copy wait for the queue first. Its memory is freed by free, not by the destructor.
class Device {
 public:
  explicit Device(int32_t id);
  ~Device();
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;

  // open_peer makes another device's memory reachable from kernels of this one.
  void open_peer(const Device &other);

  // whole_lines says whether a line of 128 bytes that one warp stores to another device
  // arrives there at once, as LL128 needs it: over NVLink it does, over PCIe it need not.
  bool whole_lines(const Device &other);

  void *alloc(size_t bytes);         // all zero
  void *alloc_shared(size_t bytes);  // the same, which tell can tell of
  void free(void *p);                // of either

  // tell describes memory of this device to other processes. It is refused for memory
  // that they can't map, which needs not be of alloc_shared.
  Export tell(const void *p);

  // map opens memory that another process told of to kernels of this device; it returns
  // where the whole of it starts, which unmap closes.
  unsigned char *map(const Export &e);
  void unmap(unsigned char *start);
  void upload(void *to, const void *from, size_t bytes);
  void download(void *to, const void *from, size_t bytes);
  void fill(void *to, int value, size_t bytes);

  // fit loads the kernel and asks how much of it the device holds at once.
  Fit fit(Kernel kernel, int32_t threads, size_t shared);

  void load(DivideKernel kernel);

  // launch starts all blocks at once; they must fit. With a stream it is a stream of the
  // caller's, not the queue, that it starts them on.
  void launch(Kernel kernel, int32_t blocks, int32_t threads, size_t shared, const Args &args);
  void launch(Kernel kernel, int32_t blocks, int32_t threads, size_t shared, const Args &args,
              void *stream);
  void divide(DivideKernel kernel, const DivideRun *runs, int64_t n);
  void divide(DivideKernel kernel, const DivideRun *runs, int64_t n, void *stream);
  void load(DataKernel kernel);
  void launch(DataKernel kernel, const DataArgs &args);

  // Between begin_capture and end_capture launches are recorded, not run.
  struct Graph;
  void begin_capture();
  Graph *end_capture();
  void replay(Graph *graph);
  void drop(Graph *graph);

  // begin_timing and end_timing mark two points of the queue; timed_ns is the time
  // between them, after sync.
  void begin_timing();
  void end_timing();
  double timed_ns();

  // sync waits for the queue, and for all streams once a stream of the caller's was used.
  void sync();

  const int32_t id;

 private:
  void start(Kernel kernel, int32_t blocks, int32_t threads, size_t shared, const Args &args,
             void *stream);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mscclsh

#endif
