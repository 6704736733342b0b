#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "failure.h"
#include "gpu.h"
#include "mscclsh_cuda.h"
#include "mscclsh_host_stream.h"
#include "options.h"

namespace mscclsh::nccl {

OnDevice::OnDevice(int32_t) {}
OnDevice::~OnDevice() { static_cast<void>(before_), static_cast<void>(mode_); }

DeviceFacts device_facts(int32_t device) {
  mscclsh_device info;
  char err[256];
  if (const int32_t code = mscclsh_device_info(device, &info, err, sizeof err))
    throw Failure(code, err);
  return {mix(kDigest, uint64_t(device)), info.multiprocessors, info.major, info.minor};
}

void *device_alloc(size_t bytes) {
  void *p = ::operator new(bytes, std::align_val_t(256), std::nothrow);
  if (p == nullptr) throw Failure(MSCCLSH_EREFUSED, "the host's memory is used up");
  return p;
}

void *host_alloc(size_t bytes) { return device_alloc(bytes); }

uint64_t device_identity(const void *memory) { return memory == nullptr ? 0 : 1; }

Mapped::Mapped(int32_t device, size_t bytes)
    : device_(device), bytes_(bytes), at_(device_alloc(bytes)) {}
Mapped::~Mapped() {
  static_cast<void>(device_);
  ::operator delete(at_, std::align_val_t(256));
}

bool captures(cudaStream_t) { return false; }

// Streams are the application's here, and nobody knows them all: whoever frees memory
// waits by the engine.
bool device_wait() { return true; }

struct PrivateStream::Impl {
  HostStream stream;
  std::atomic<int64_t> open{0};  // copies that are not done
};

PrivateStream::PrivateStream() : impl_(new Impl) {}
PrivateStream::~PrivateStream() { delete impl_; }

cudaStream_t PrivateStream::stream() const {
  return reinterpret_cast<cudaStream_t>(static_cast<mscclsh_host_stream *>(&impl_->stream));
}

void PrivateStream::send(void *to, const void *from, size_t bytes) {
  std::atomic<int64_t> *open = &impl_->open;
  (*open)++;
  run_on(static_cast<mscclsh_host_stream *>(&impl_->stream), [=] {
    std::memcpy(to, from, bytes);
    (*open)--;
  });
}

void PrivateStream::fetch(void *to, const void *from, size_t bytes) { send(to, from, bytes); }

bool PrivateStream::done() { return impl_->open == 0; }

}  // namespace mscclsh::nccl
