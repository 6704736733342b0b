// One device and its queue of work. device_gpu.cu and device_host.cpp each define it.
#ifndef MSCCLSH_DEVICE_H
#define MSCCLSH_DEVICE_H

#include <cstddef>
#include <memory>

#include "failure.h"
#include "kernels.h"
#include "peers.h"
#include "peers_fds.h"
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

// KeptDevice leaves the thread the device that it had chosen for itself.
class KeptDevice {
 public:
  KeptDevice();
  ~KeptDevice();
  KeptDevice(const KeptDevice &) = delete;
  KeptDevice &operator=(const KeptDevice &) = delete;

 private:
  int32_t id_ = -1;
};

// HostFlag is a word in the host's memory that all devices reach, those of other
// processes too when it lies in a file that they share. A second word, of the host alone,
// says that it was raised by abort. Any thread may ask and raise.
class HostFlag {
 public:
  explicit HostFlag(std::unique_ptr<SharedFile> file);  // null: this process's own
  ~HostFlag();
  HostFlag(const HostFlag &) = delete;
  HostFlag &operator=(const HostFlag &) = delete;
  bool raised() const;
  void abort();
  bool aborted() const;
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

  // alloc_now allocates without waiting for anything, with whatever contents.
  void *alloc_now(size_t bytes);

  // reaches is whether kernels of this device may touch memory of another one of this
  // process, once open_peer was called.
  bool reaches(const void *p);

  // identity is a number that no other allocation has had or will have, 0 if there is none
  // to be told. Refused when so many bytes from p on are not all of one allocation.
  uint64_t identity(const void *p, size_t bytes);

  // tell describes memory of this device to other processes, and to other devices that
  // don't reach it. It is refused for memory that they can't map, which needs not be of
  // alloc_shared. Where a descriptor opens it, it is put into fd; null refuses that.
  Export tell(const void *p, Fd *fd = nullptr);

  // map opens memory that another process told of to kernels of this device; it returns
  // where the whole of it starts, which unmap closes.
  unsigned char *map(const Export &e);
  void unmap(unsigned char *start);
  void upload(void *to, const void *from, size_t bytes);
  void download(void *to, const void *from, size_t bytes);
  void fill(void *to, int value, size_t bytes);

  // place copies to the device's memory, and waits for nothing but the copy: neither for the
  // queue nor for streams of the caller's, which may be capturing.
  void place(void *to, const void *from, size_t bytes);

  // fit loads the kernel and asks how much of it the device holds at once.
  Fit fit(Kernel kernel, int32_t threads, size_t shared);

  void load(DivideKernel kernel);

  // launch starts all blocks at once; they must fit. With a stream it is a stream of the
  // caller's, not the queue, that it starts them on.
  // overlaps says that its start may overlap with the end of what the stream did before.
  void launch(Kernel kernel, int32_t blocks, int32_t threads, size_t shared, const Args &args);
  void launch(Kernel kernel, int32_t blocks, int32_t threads, size_t shared, const Args &args,
              void *stream, bool overlaps = true);
  void divide(DivideKernel kernel, const DivideRun *runs, int64_t n);
  void divide(DivideKernel kernel, const DivideRun *runs, int64_t n, void *stream,
              const Bases &bases = {});
  void copy(void *to, const void *from, size_t bytes, void *stream);

  // begin_turn and end_turn stand around what is enqueued on a stream of the caller's:
  // turns of a device run one after the other, on whatever streams, as mscclsh_call_on has
  // it. A turn whose work could not be enqueued is not ended.
  struct Turn {
    bool captured;  // the stream is being captured
    bool overlaps;  // as in launch
  };
  Turn begin_turn(void *stream);
  void end_turn(void *stream);

  // turn counts turns that were not captured; turns_done is how many of them are known to
  // be done, without waiting for any.
  uint64_t turn() const;
  uint64_t turns_done();

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
             void *stream, bool overlaps);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mscclsh

#endif
