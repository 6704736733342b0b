#include "window.h"

namespace mscclsh {

Window::Window(Comm *comm, void *const *memory, const int64_t *bytes)
    : comm(comm), views_(comm), bytes_(size_t(comm->ranks()), 0) {
  std::vector<unsigned char *> own(size_t(3 * comm->ranks()), nullptr);
  const std::vector<Bytes> told = comm->peers().together("open window", [&] {
    comm->check_alive();
    Bytes mine;
    for (int32_t r = 0; r < comm->ranks(); r++) {
      if (!comm->local(r)) continue;
      if (bytes[r] < 0 || (memory[r] == nullptr && bytes[r] != 0))
        invalid(format("a window of %lld bytes at %p of rank %d", static_cast<long long>(bytes[r]),
                       memory[r], r));
      const int64_t n = memory[r] ? bytes[r] : 0;
      append(&mine, n);
      if (n == 0) continue;
      // It fails where the memory ends before.
      comm->device(comm->device_of(r)).identity(memory[r], size_t(n));
      own[size_t(3 * r)] = static_cast<unsigned char *>(memory[r]);
    }
    return mine;
  });
  std::vector<size_t> next(told.size(), 0);
  for (int32_t r = 0; r < comm->ranks(); r++) {
    const size_t process = size_t(comm->peers().process_of(r));
    bytes_[size_t(r)] = item<int64_t>(told[process], next[process]++);
  }
  try {
    views_.open(own, true);
  } catch (...) {
    views_.close();
    throw;
  }
  comm->windows++;
}

Window::~Window() {
  comm->windows--;
  comm->settle();
  views_.close();
}

}  // namespace mscclsh
