// Running a prepared program and reaching its buffers.
#include "prog.h"

#include <algorithm>

namespace mscclsh {

Buffer &Prog::owner(int32_t rank, int32_t buf) {
  if (rank < 0 || rank >= comm->ranks() || buf < 0 || buf > 2)
    invalid(format("buffer %d of rank %d", buf, rank));
  comm->need_local(rank);
  return buffers_[size_t(3 * rank + base_buf_[size_t(3 * rank + buf)])];
}

void Prog::ready() const {
  comm->check_alive();
  if (!prepared_) invalid("the program is not prepared for a size");
}

unsigned char *Prog::range(int32_t rank, int32_t buf, int64_t offset, int64_t bytes) {
  if (!prepared_) invalid("the program is not prepared for a size");
  owner(rank, buf);
  const int64_t have = buffer_bytes(rank, buf);
  if (offset < 0 || bytes < 0 || offset > have || bytes > have - offset)
    invalid(format("bytes %lld to %lld of buffer %d of rank %d, which has %lld",
                   static_cast<long long>(offset), static_cast<long long>(offset + bytes), buf,
                   rank, static_cast<long long>(have)));
  return place(rank, buf, 0) + offset;
}

void Prog::attach(int32_t rank, int32_t buf, void *memory, int64_t bytes) {
  Buffer &b = owner(rank, buf);
  if (base_buf_[size_t(3 * rank + buf)] != buf)
    invalid(format("buffer %d of rank %d lies inside buffer %d: attach that", buf, rank,
                   base_buf_[size_t(3 * rank + buf)]));
  comm->sync();
  prepared_ = false;
  b.attached = static_cast<unsigned char *>(memory);
  b.attached_bytes = memory ? bytes : 0;
}

void Prog::upload(int32_t rank, int32_t buf, int64_t offset, const void *from, int64_t bytes) {
  unsigned char *at = range(rank, buf, offset, bytes);
  comm->sync();
  if (bytes > 0) device_of(rank).upload(at, from, size_t(bytes));
}

void Prog::download(int32_t rank, int32_t buf, int64_t offset, void *to, int64_t bytes) {
  unsigned char *at = range(rank, buf, offset, bytes);
  comm->sync();
  if (bytes > 0) device_of(rank).download(to, at, size_t(bytes));
}

void Prog::fill(int32_t rank, int32_t buf, int32_t value) {
  owner(rank, buf);
  const int64_t bytes = buffer_bytes(rank, buf);
  unsigned char *at = range(rank, buf, 0, bytes);
  comm->sync();
  if (bytes > 0) device_of(rank).fill(at, value, size_t(bytes));
}

void Prog::check_guards() {
  if (!prepared_) invalid("the program is not prepared for a size");
  comm->sync();
  static const char *const names[] = {"input", "output", "scratch"};
  for (size_t i = 0; i < buffers_.size(); i++) {
    const Buffer &b = buffers_[i];
    if (b.allocated == nullptr) continue;
    Device &d = device_of(int32_t(i / 3));
    const int64_t before = b.at - b.allocated, after = b.allocated_bytes - before - b.bytes;
    std::vector<unsigned char> guard(size_t(before + after));
    d.download(guard.data(), b.allocated, size_t(before));
    d.download(guard.data() + before, b.at + b.bytes, size_t(after));
    for (int64_t k = 0; k < before + after; k++) {
      if (guard[size_t(k)] == kGuardByte) continue;
      const int64_t at = k < before ? k - before : k - before + b.bytes;
      throw Failure(
          MSCCLSH_EDEVICE,
          format("rank %zu: byte %lld of its %s of %lld bytes was written", i / 3,
                 static_cast<long long>(at), names[i % 3], static_cast<long long>(b.bytes)));
    }
  }
}

void Prog::launch_once() {
  for (int32_t i = 0; i < comm->devices(); i++) {
    Grid &g = grids_[size_t(i)];
    if (g.blocks.empty()) continue;
    Device &d = comm->device(i);
    d.launch(kernel_, int32_t(g.blocks.size()), threads_, g.shared, g.args);
    if (g.n_divides > 0) d.divide(divide_, g.divides, g.n_divides);
  }
}

void Prog::enqueue(int32_t launches) {
  ready();
  for (int32_t i = 0; i < launches; i++) launch_once();
}

void Prog::enqueue_on(int32_t device_id, void *stream) {
  ready();
  int32_t i = 0;
  while (i < comm->devices() && comm->device(i).id != device_id) i++;
  if (i == comm->devices()) invalid(format("no rank of this process is on device %d", device_id));
  const Grid &g = grids_[size_t(i)];
  if (g.blocks.empty()) return;
  comm->device(i).launch(kernel_, int32_t(g.blocks.size()), threads_, g.shared, g.args, stream);
  if (g.n_divides > 0) comm->device(i).divide(divide_, g.divides, g.n_divides, stream);
}

double Prog::timed() {
  for (int32_t i = 0; i < comm->devices(); i++) comm->device(i).end_timing();
  comm->sync();
  double ns = 0;
  for (int32_t i = 0; i < comm->devices(); i++) ns = std::max(ns, comm->device(i).timed_ns());
  return ns;
}

double Prog::run(int32_t launches) {
  ready();
  for (int32_t i = 0; i < comm->devices(); i++) comm->device(i).begin_timing();
  for (int32_t i = 0; i < launches; i++) launch_once();
  return timed();
}

void Prog::drop_graphs() {
  for (int32_t i = 0; i < comm->devices(); i++) {
    Grid &g = grids_[size_t(i)];
    comm->device(i).drop(g.graph);
    g.graph = nullptr;
  }
  recorded_.clear();
}

void Prog::capture(int32_t launches, const std::vector<Prog *> &then) {
  ready();
  for (Prog *p : then) {
    if (p->comm != comm) invalid("programs of one graph must be of one communicator");
    p->ready();
  }
  if (launches < 1) invalid(format("a graph of %d launches", launches));
  comm->sync();
  drop_graphs();
  int32_t begun = 0;
  try {
    for (; begun < comm->devices(); begun++) comm->device(begun).begin_capture();
    for (int32_t i = 0; i < launches; i++) {
      launch_once();
      for (Prog *p : then) p->launch_once();
    }
    while (begun > 0) {
      begun--;
      grids_[size_t(begun)].graph = comm->device(begun).end_capture();
    }
  } catch (...) {
    while (begun-- > 0) {
      try {
        comm->device(begun).drop(comm->device(begun).end_capture());
      } catch (const Failure &) {  // the first failure is what counts
      }
    }
    drop_graphs();
    throw;
  }
  for (const Prog *p : then) recorded_.push_back(p->turn_);
}

double Prog::replay(int32_t replays) {
  ready();
  for (int32_t i = 0; i < comm->devices(); i++)
    if (grids_[size_t(i)].graph == nullptr) invalid("no graph was captured");
  for (const std::weak_ptr<int> &turn : recorded_)
    if (turn.expired()) invalid("a program of the graph was prepared anew or unloaded");
  for (int32_t i = 0; i < comm->devices(); i++) comm->device(i).begin_timing();
  for (int32_t k = 0; k < replays; k++)
    for (int32_t i = 0; i < comm->devices(); i++) comm->device(i).replay(grids_[size_t(i)].graph);
  return timed();
}

void Prog::waits(std::vector<mscclsh_wait> *to) {
  for (int32_t i = 0; i < comm->devices(); i++) {
    const Grid &g = grids_[size_t(i)];
    std::vector<Record> records(g.blocks.size());
    if (records.empty()) continue;
    comm->device(i).download(records.data(), g.records, records.size() * sizeof(Record));
    for (size_t b = 0; b < records.size(); b++) {
      const Record &r = records[b];
      if (r.cause == 0) continue;
      const ThreadBlock &tb = tbs_[size_t(g.blocks[b])];
      mscclsh_wait w = {};
      w.tile = r.tile;
      w.want = int64_t(r.want);
      w.have = int64_t(r.have);
      w.rank = tb.rank;
      w.tb = tb.tb;
      w.step = r.step;
      w.waits_for = r.waits_for;
      w.peer = r.peer;
      w.chan = r.chan;
      w.timed_out = r.cause == 1;
      to->push_back(w);
    }
  }
}

int64_t Prog::events(mscclsh_event *to, int64_t n) {
  if (!prepared_) invalid("the program is not prepared for a size");
  comm->sync();
  int64_t have = 0;
  for (int32_t i = 0; i < comm->devices(); i++) {
    const Grid &g = grids_[size_t(i)];
    if (g.events == nullptr) continue;
    size_t count = 0;
    for (int32_t t : g.blocks) count += size_t(tiles_) * size_t(tbs_[size_t(t)].steps);
    std::vector<Event> events(count);
    if (count > 0) comm->device(i).download(events.data(), g.events, count * sizeof(Event));
    size_t k = 0;
    for (int32_t t : g.blocks) {
      const ThreadBlock &tb = tbs_[size_t(t)];
      for (int64_t tile = 0; tile < tiles_; tile++) {
        for (int32_t s = 0; s < tb.steps; s++, k++, have++) {
          if (have >= n) continue;
          to[have] =
              mscclsh_event{events[k].begin, events[k].end, tb.rank, tb.tb, s, int32_t(tile)};
        }
      }
    }
  }
  return have;
}

}  // namespace mscclsh
