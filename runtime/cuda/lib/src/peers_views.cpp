#include "peers_views.h"

#include "comm.h"

namespace mscclsh {

void Views::open(const std::vector<unsigned char *> &own, bool share) {
  at_.assign(size_t(comm_->devices()), own);
  if (!share) return;
  const bool alone = comm_->peers().alone();
  shared_ = !alone;
  const std::vector<Bytes> told = comm_->peers().together("tell buffers", [&] {
    reach(own);
    return alone ? Bytes() : tell(own);
  });
  if (!alone) {
    pass(told);
    comm_->together("map buffers", [&] { learn(told); });
  }
  mine_.clear();
  theirs_.clear();
}

// reach opens buffers of this process to its other devices where they are not already.
void Views::reach(const std::vector<unsigned char *> &own) {
  for (size_t k = 0; k < own.size(); k++) {
    const int32_t rank = int32_t(k / 3);
    if (own[k] == nullptr || !comm_->local(rank)) continue;
    for (int32_t i = 0; i < comm_->devices(); i++) {
      Device &d = comm_->device(i);
      if (i == comm_->device_of(rank) || d.reaches(own[k])) continue;
      Fd fd;
      Export e = comm_->device(comm_->device_of(rank)).tell(own[k], &fd);
      if (!e.by_fd)
        refused(format("GPU %d can't reach memory of rank %d on GPU %d", d.id, rank,
                       comm_->device(comm_->device_of(rank)).id));
      e.fd = fd.get();
      import(i, comm_->peers().self(), e, k);
    }
  }
}

// tell lists all buffers of this process's ranks, in the order of the ranks.
Bytes Views::tell(const std::vector<unsigned char *> &own) {
  Bytes to;
  for (int32_t r = 0; r < comm_->ranks(); r++) {
    if (!comm_->local(r)) continue;
    for (int32_t b = 0; b < 3; b++) {
      const int32_t i = 3 * r + b;
      const unsigned char *p = own[size_t(i)];
      Fd fd;
      append(&to, p ? comm_->device(comm_->device_of(r)).tell(p, &fd) : Export{});
      if (fd.get() >= 0) mine_.emplace(i, std::move(fd));
    }
  }
  return to;
}

// pass hands out the descriptors of memory that is told by one, and takes the others'.
void Views::pass(const std::vector<Bytes> &told) {
  std::vector<int32_t> want;
  bool any = false;
  std::vector<size_t> next(told.size(), 0);
  for (int32_t i = 0; i < 3 * comm_->ranks(); i++) {
    const size_t process = size_t(comm_->peers().process_of(i / 3));
    const bool by_fd = item<Export>(told[process], next[process]++).by_fd != 0;
    any |= by_fd;
    if (by_fd && !comm_->local(i / 3)) want.push_back(i);
  }
  if (!any) return;
  theirs_ = FdPost::swap(&comm_->peers(), mine_, want);
}

void Views::learn(const std::vector<Bytes> &told) {
  std::vector<size_t> next(told.size(), 0);
  for (int32_t r = 0; r < comm_->ranks(); r++) {
    const int32_t process = comm_->peers().process_of(r);
    for (int32_t b = 0; b < 3; b++) {
      Export e = item<Export>(told[size_t(process)], next[size_t(process)]++);
      if (comm_->local(r) || e.bytes == 0) continue;
      if (e.by_fd) e.fd = theirs_.at(3 * r + b).get();
      for (int32_t i = 0; i < comm_->devices(); i++) import(i, process, e, size_t(3 * r + b));
    }
  }
}

// import opens memory to a device, as buffer at.
void Views::import(int32_t device, int32_t process, const Export &e, size_t at) {
  at_[size_t(device)][at] = comm_->imports().open(&comm_->device(device), process, e);
  opened_.emplace_back(device, process, e);
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
  mine_.clear();
  theirs_.clear();
  unmap();
  if (!shared_) return;
  shared_ = false;
  comm_->part("close buffers");
}

unsigned char *Views::at(int32_t device, int32_t rank, int32_t buf) const {
  return at_.empty() ? nullptr : at_[size_t(device)][size_t(3 * rank + buf)];
}

}  // namespace mscclsh
