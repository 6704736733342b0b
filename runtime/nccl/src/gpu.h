// The little of CUDA that the library itself needs, apart from the engine: its own memory
// and streams for what ranks tell each other, and staging memory. gpu_cuda.cpp and
// gpu_host.cpp each define it, the latter for the host build, where devices are threads
// and a stream is one of mscclsh_host_stream.h.
#ifndef MSCCLSH_NCCL_GPU_H
#define MSCCLSH_NCCL_GPU_H

#include <cstddef>
#include <cstdint>

#include "real.h"

namespace mscclsh::nccl {

// OnDevice makes a device current, and captures of other streams no concern of what is
// done meanwhile; it puts both back as they were.
class OnDevice {
 public:
  explicit OnDevice(int32_t device);
  ~OnDevice();
  OnDevice(const OnDevice &) = delete;
  OnDevice &operator=(const OnDevice &) = delete;

 private:
  int32_t before_ = -1, mode_ = 0;
};

// All that follows fails with Failure (failure.h) and the driver's words. DeviceFacts is
// what ranks compare of their devices.
struct DeviceFacts {
  uint64_t identity;  // another for each GPU of the machine, the same in all processes
  int32_t multiprocessors, major, minor;
};
DeviceFacts device_facts(int32_t device);

// device_alloc is memory of the current device, of any content, and host_alloc memory of the
// host that the device copies from and to without waiting. Neither is ever freed, because
// that waits for all that runs on the device.
void *device_alloc(size_t bytes);
void *host_alloc(size_t bytes);

// device_identity is the number of the allocation that memory of device_alloc lies in, which
// no other one has had or will have; 0: there is none any more.
uint64_t device_identity(const void *memory);

// Mapped is memory for kernels of one device alone, of any content. It is made without waiting
// for what runs, whether there or on other devices; what ends it waits for all that runs
// there.
class Mapped {
 public:
  Mapped(int32_t device, size_t bytes);
  ~Mapped();
  Mapped(const Mapped &) = delete;
  Mapped &operator=(const Mapped &) = delete;

  void *at() const { return at_; }
  size_t bytes() const { return bytes_; }  // at least as many as were asked for

 private:
  const int32_t device_;
  size_t bytes_;
  void *at_;
};

// captures is whether a stream is being captured into a graph, or a capture of it has failed.
bool captures(cudaStream_t stream);

// device_wait waits for all that runs on the current device. It is false where that ended
// in an error, which others report.
bool device_wait();

// PrivateStream is a stream of the current device that waits for no other.
class PrivateStream {
 public:
  PrivateStream();
  ~PrivateStream();
  PrivateStream(const PrivateStream &) = delete;
  PrivateStream &operator=(const PrivateStream &) = delete;

  cudaStream_t stream() const;

  // send and fetch enqueue copies from and to the host's memory, which must stay until
  // done says that all is.
  void send(void *to, const void *from, size_t bytes);
  void fetch(void *to, const void *from, size_t bytes);
  bool done();

 private:
  struct Impl;
  Impl *impl_;
};

}  // namespace mscclsh::nccl

#endif
