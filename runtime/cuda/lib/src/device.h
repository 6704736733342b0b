// One device and its queue of work. device_gpu.cu and device_host.cpp each define it.
#ifndef MSCCLSH_DEVICE_H
#define MSCCLSH_DEVICE_H

#include <cstddef>
#include <memory>

#include "failure.h"
#include "kernels.h"

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

// HostFlag is a word in the host's memory that all devices reach.
class HostFlag {
 public:
  HostFlag();
  ~HostFlag();
  HostFlag(const HostFlag &) = delete;
  HostFlag &operator=(const HostFlag &) = delete;
  bool raised() const;
  uint32_t *word() const { return word_; }

 private:
  uint32_t *word_ = nullptr;
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

  void *alloc(size_t bytes);  // all zero
  void free(void *p);
  void upload(void *to, const void *from, size_t bytes);
  void download(void *to, const void *from, size_t bytes);
  void fill(void *to, int value, size_t bytes);

  // fit loads the kernel and asks how much of it the device holds at once.
  Fit fit(Kernel kernel, int32_t threads, size_t shared);

  void load(DivideKernel kernel);

  // launch starts all blocks at once; they must fit.
  void launch(Kernel kernel, int32_t blocks, int32_t threads, size_t shared, const Args &args);
  void divide(DivideKernel kernel, const DivideRun *runs, int64_t n);

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

  void sync();

  const int32_t id;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mscclsh

#endif
