#include "peers_views.h"

#include "comm.h"

namespace mscclsh {

void Views::open(const std::vector<unsigned char *> &own, bool share) {
  at_.assign(size_t(comm_->devices()), own);
  if (!share || comm_->peers().alone()) return;
  shared_ = true;
  std::vector<Bytes> told;
  told = comm_->peers().together("tell buffers", [&] { return tell(own); });
  comm_->together("map buffers", [&] { learn(told); });
}

// tell lists all buffers of this process's ranks, in the order of the ranks.
Bytes Views::tell(const std::vector<unsigned char *> &own) const {
  Bytes to;
  for (int32_t r = 0; r < comm_->ranks(); r++) {
    if (!comm_->local(r)) continue;
    for (int32_t b = 0; b < 3; b++) {
      const unsigned char *p = own[size_t(3 * r + b)];
      append(&to, p ? comm_->device(comm_->device_of(r)).tell(p) : Export{});
    }
  }
  return to;
}

void Views::learn(const std::vector<Bytes> &told) {
  std::vector<size_t> next(told.size(), 0);
  for (int32_t r = 0; r < comm_->ranks(); r++) {
    const int32_t process = comm_->peers().process_of(r);
    for (int32_t b = 0; b < 3; b++) {
      const Export e = item<Export>(told[size_t(process)], next[size_t(process)]++);
      if (comm_->local(r) || e.bytes == 0) continue;
      for (int32_t i = 0; i < comm_->devices(); i++) {
        at_[size_t(i)][size_t(3 * r + b)] = comm_->imports().open(&comm_->device(i), process, e);
        opened_.emplace_back(i, process, e);
      }
    }
  }
}

void Views::unmap() {
  for (auto &o : opened_) {
    try {
      comm_->imports().close(&comm_->device(std::get<0>(o)), std::get<1>(o), std::get<2>(o));
    } catch (const Failure &) {  // it goes with the process
    }
  }
  opened_.clear();
}

void Views::close() {
  at_.clear();
  unmap();
  if (!shared_) return;
  shared_ = false;
  comm_->part("close buffers");
}

unsigned char *Views::at(int32_t device, int32_t rank, int32_t buf) const {
  return at_.empty() ? nullptr : at_[size_t(device)][size_t(3 * rank + buf)];
}

}  // namespace mscclsh
