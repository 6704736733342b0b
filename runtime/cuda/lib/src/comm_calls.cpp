// What bound calls need of a communicator, and what any thread may ask of it.
#include "comm.h"

namespace mscclsh {

int32_t Comm::index_of(int32_t device_id) const {
  for (size_t i = 0; i < devices_.size(); i++)
    if (devices_[i]->id == device_id) return int32_t(i);
  invalid(format("no rank of this process is on device %d", device_id));
}

void Comm::reserve(int64_t bytes) {
  agree("reserve", [&] {
    check_alive();
    if (bytes < 0) invalid(format("%lld bytes of scratch", static_cast<long long>(bytes)));
    if (bytes > scratch_bytes_ && (calls > 0 || captured))
      invalid(captured ? "graphs were captured that use the scratch: it can't be replaced any more"
                       : "calls are bound that use the scratch: it can't be replaced now");
    if (bytes > scratch_bytes_) sync();
    return digest(0, &bytes, 1);
  });
  if (bytes <= scratch_bytes_) return;
  free_scratch();
  std::vector<unsigned char *> own(size_t(3 * ranks()), nullptr);
  try {
    together("allocate", [&] {
      for (int32_t r = 0; r < ranks(); r++) {
        if (!local(r)) continue;
        own[size_t(3 * r + 2)] =
            static_cast<unsigned char *>(alloc_buffer(device_of(r), size_t(bytes), true));
        scratch_memory_.emplace_back(device_of(r), own[size_t(3 * r + 2)]);
      }
    });
    scratch_.open(own, true);
  } catch (...) {
    free_scratch();
    throw;
  }
  scratch_bytes_ = bytes;
}

void Comm::free_scratch() {
  scratch_bytes_ = 0;
  scratch_.close();
  for (auto &m : scratch_memory_) {
    try {
      device(m.first).free(m.second);
    } catch (const Failure &) {  // it goes with the process
    }
  }
  scratch_memory_.clear();
}

void Comm::copy_on(int32_t device_id, void *stream, void *to, const void *from, int64_t bytes) {
  check_alive();
  Device &d = device(index_of(device_id));
  if (bytes < 0 || (bytes > 0 && (to == nullptr || from == nullptr)))
    invalid(format("a copy of %lld bytes from %p to %p", static_cast<long long>(bytes), from, to));
  if (bytes == 0) return;
  d.begin_turn(stream);
  d.copy(to, from, size_t(bytes), stream);
  d.end_turn(stream);
}

uint64_t Comm::identity(int32_t device_id, const void *at, int64_t bytes) {
  if (bytes < 0) invalid(format("%lld bytes of memory", static_cast<long long>(bytes)));
  return device(index_of(device_id)).identity(at, size_t(bytes));
}

void Comm::poll() const {
  // One look decides: what is raised a moment later is for the next call.
  if (!abort_->raised()) {
    if (peers_.broken()) check_alive();
    return;
  }
  if (!abort_->aborted())
    throw Failure(MSCCLSH_ESTUCK, "a watchdog ended a launch: mscclsh_sync tells who waited");
  check_alive();
}

}  // namespace mscclsh
