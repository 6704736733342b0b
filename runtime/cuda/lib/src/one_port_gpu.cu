// Ports of GPUs: copy engines, on streams of their own.
#include <cuda_runtime.h>

#include <cstring>

#include "one_port.h"

namespace mscclsh {

namespace {

void check(cudaError_t e, const char *doing) {
  if (e == cudaSuccess) return;
  cudaGetLastError();  // so that a later call does not report it again
  throw Failure(MSCCLSH_EDEVICE, format("%s: %s", doing, cudaGetErrorString(e)));
}

// kValues is how many words a line can have on their way; a half of them is written anew
// when all of it has been copied.
constexpr uint32_t kValues = 512;

}  // namespace

PortMemory::PortMemory(size_t bytes) {
  void *p = nullptr;
  check(cudaHostAlloc(&p, bytes, cudaHostAllocPortable | cudaHostAllocMapped),
        "allocating host memory");
  here_ = static_cast<unsigned char *>(p);
  std::memset(here_, 0, bytes);
  check(cudaHostGetDevicePointer(&p, here_, 0), "opening host memory to the GPUs");
  there_ = static_cast<unsigned char *>(p);
}
PortMemory::~PortMemory() { cudaFreeHost(here_); }

struct PortLines::Impl {
  explicit Impl(int32_t device) : device(device), values(kLines * kValues * sizeof(uint64_t)) {}

  void use() {
    check(cudaSetDevice(device), "choosing the device");
    // The caller's threads may be capturing streams of theirs meanwhile.
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    check(cudaThreadExchangeStreamCaptureMode(&mode), "leaving captures alone");
    before = mode;
  }
  void leave() { cudaThreadExchangeStreamCaptureMode(&before); }

  const int32_t device;
  PortMemory values;
  struct Line {
    cudaStream_t stream = nullptr;
    cudaEvent_t done[2] = {};  // of each half of the values
    uint64_t n = 0;            // values so far
  } lines[kLines];
  cudaStreamCaptureMode before = cudaStreamCaptureModeGlobal;
};

PortLines::PortLines(int32_t device) : impl_(new Impl(device)) {
  impl_->use();
  for (Impl::Line &l : impl_->lines) {
    check(cudaStreamCreateWithFlags(&l.stream, cudaStreamNonBlocking), "making a stream");
    for (cudaEvent_t &e : l.done)
      check(cudaEventCreateWithFlags(&e, cudaEventDisableTiming), "making an event");
  }
  impl_->leave();
}

PortLines::~PortLines() {
  if (cudaSetDevice(impl_->device) != cudaSuccess) return;
  for (Impl::Line &l : impl_->lines) {
    for (cudaEvent_t e : l.done)
      if (e != nullptr) cudaEventDestroy(e);
    if (l.stream != nullptr) cudaStreamDestroy(l.stream);
  }
}

void PortLines::copy(uint32_t line, void *to, const void *from, size_t bytes) {
  impl_->use();
  const cudaError_t e =
      cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, impl_->lines[line].stream);
  impl_->leave();
  check(e, "copying for a port");
}

void PortLines::write(uint32_t line, uint64_t *to, uint64_t v) {
  Impl::Line &l = impl_->lines[line];
  const uint32_t half = l.n / (kValues / 2) % 2;
  uint64_t *from =
      reinterpret_cast<uint64_t *>(impl_->values.here()) + line * kValues + l.n % kValues;
  impl_->use();
  // An event that was never recorded has happened.
  cudaError_t e = cudaSuccess;
  if (l.n % (kValues / 2) == 0) e = cudaEventSynchronize(l.done[half]);
  *from = v;
  if (e == cudaSuccess) e = cudaMemcpyAsync(to, from, sizeof v, cudaMemcpyHostToDevice, l.stream);
  l.n++;
  if (e == cudaSuccess && l.n % (kValues / 2) == 0) e = cudaEventRecord(l.done[half], l.stream);
  impl_->leave();
  check(e, "signaling for a port");
}

void PortLines::settle() {
  impl_->use();
  cudaError_t e = cudaSuccess;
  for (Impl::Line &l : impl_->lines)
    if (e == cudaSuccess) e = cudaStreamSynchronize(l.stream);
  impl_->leave();
  check(e, "waiting for ports");
}

}  // namespace mscclsh
