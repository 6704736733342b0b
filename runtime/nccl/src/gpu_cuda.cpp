#include <cuda_runtime_api.h>

#include <cstring>

#include "failure.h"
#include "gpu.h"
#include "memory_gpu.h"
#include "options.h"

namespace mscclsh::nccl {

namespace {

void check(cudaError_t e, const char *doing) {
  if (e == cudaSuccess) return;
  cudaGetLastError();  // or the application finds it
  throw Failure(MSCCLSH_EDEVICE, format("%s: %s", doing, cudaGetErrorString(e)));
}

}  // namespace

OnDevice::OnDevice(int32_t device) {
  check(cudaGetDevice(&before_), "asking for the device");
  if (device != before_)
    check(cudaSetDevice(device), "changing the device");
  else
    before_ = -1;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  check(cudaThreadExchangeStreamCaptureMode(&mode), "changing the mode of captures");
  mode_ = int32_t(mode);
}

OnDevice::~OnDevice() {
  cudaStreamCaptureMode mode = cudaStreamCaptureMode(mode_);
  cudaThreadExchangeStreamCaptureMode(&mode);
  if (before_ >= 0) cudaSetDevice(before_);
}

DeviceFacts device_facts(int32_t device) {
  cudaDeviceProp p;
  check(cudaGetDeviceProperties(&p, device), "asking what the device is");
  DeviceFacts f = {};
  f.identity = mix_bytes(kDigest, p.uuid.bytes, sizeof p.uuid.bytes);
  f.multiprocessors = p.multiProcessorCount;
  f.major = p.major;
  f.minor = p.minor;
  return f;
}

void *device_alloc(size_t bytes) {
  void *p = nullptr;
  check(cudaMalloc(&p, bytes), "allocating memory of the device");
  return p;
}

void *host_alloc(size_t bytes) {
  void *p = nullptr;
  check(cudaHostAlloc(&p, bytes, cudaHostAllocPortable), "allocating memory of the host");
  return p;
}

uint64_t device_identity(const void *memory) {
  try {
    return allocation_of(memory).id;
  } catch (const Failure &) {
    return 0;
  }
}

Mapped::Mapped(int32_t device, size_t bytes) : device_(device), bytes_(bytes) {
  const OnDevice on(device);
  at_ = map_new(&bytes_, device);
}

Mapped::~Mapped() {
  try {
    const OnDevice on(device_);
    if (device_wait()) unmap(static_cast<unsigned char *>(at_), bytes_);
  } catch (const Failure &) {  // of a device that is beyond use
  }
}

bool captures(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  if (cudaStreamIsCapturing(stream, &status) == cudaSuccess)
    return status != cudaStreamCaptureStatusNone;
  cudaGetLastError();
  return false;
}

bool device_wait() {
  if (cudaDeviceSynchronize() == cudaSuccess) return true;
  cudaGetLastError();
  return false;
}

struct PrivateStream::Impl {
  cudaStream_t stream = nullptr;
};

PrivateStream::PrivateStream() : impl_(new Impl) {
  const cudaError_t e = cudaStreamCreateWithFlags(&impl_->stream, cudaStreamNonBlocking);
  if (e == cudaSuccess) return;
  delete impl_;
  check(e, "making a stream");
}

PrivateStream::~PrivateStream() {
  if (cudaStreamDestroy(impl_->stream) != cudaSuccess) cudaGetLastError();
  delete impl_;
}

cudaStream_t PrivateStream::stream() const { return impl_->stream; }

void PrivateStream::send(void *to, const void *from, size_t bytes) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, impl_->stream), "copying");
}

void PrivateStream::fetch(void *to, const void *from, size_t bytes) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, impl_->stream), "copying");
}

bool PrivateStream::done() {
  const cudaError_t e = cudaStreamQuery(impl_->stream);
  if (e == cudaErrorNotReady) {
    cudaGetLastError();
    return false;
  }
  check(e, "waiting for a stream");
  return true;
}

}  // namespace mscclsh::nccl
