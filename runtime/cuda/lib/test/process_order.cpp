// Launches of one communicator from several streams and graphs, in one order.
#include "process_job.h"
#include "process_streams.h"

namespace {

// Doubling sums in place, so that each launch multiplies what is there by the number of
// ranks once all have the same: a launch that overlaps another, or is left out, shows.
struct Doubling {
  Doubling(Comm *comm, int32_t protocol, mscclsh_window *window, float *memory, int64_t elems)
      : job(comm, split_ring(comm->setting.ranks), protocol, 0, -1), memory(memory) {
    size.chunk_bytes = 4 * elems;
    size.regime = 1;
    const bool direct = protocol == MSCCLSH_DIRECT;
    std::vector<void *> buffers(size_t(2 * comm->setting.ranks), nullptr);
    buffers[size_t(2 * self)] = memory;
    const mscclsh_window *windows[2] = {window, nullptr};
    mscclsh_binding b = {};
    b.size = &size;
    b.buffers = buffers.data();
    b.windows = direct ? windows : nullptr;
    b.device = device = comm->devices[size_t(self)];
    OK(mscclsh_fits(job.prog, 0, 0, 0, nullptr, err, sizeof err));
    OK(mscclsh_bind(job.prog, &b, &call, nullptr, err, sizeof err));
  }
  ~Doubling() { OK(mscclsh_unbind(call, err, sizeof err)); }
  Doubling(const Doubling &) = delete;
  Doubling &operator=(const Doubling &) = delete;

  int64_t count() const { return job.p.chunks_total * (size.chunk_bytes / 4); }
  void launch(Stream &on) {
    OK(mscclsh_call_on(call, on.get(), err, sizeof err));
    launches++;
  }
  void copy(Stream &on, float *to, const float *from) {
    OK(mscclsh_copy_on(job.on->comm, device, on.get(), to, from, 4 * count(), err, sizeof err));
  }

  // check wants what so many launches make of the inputs.
  void check(const std::vector<float> &have, int seed, const char *what) const {
    const int32_t n = job.on->setting.ranks;
    for (int64_t i = 0; i < count(); i++) {
      float want = 0;
      for (int32_t r = 0; r < n; r++) want += value(r, i, seed);
      for (int k = 1; k < launches; k++) want *= float(n);
      if (have[size_t(i)] == want) continue;
      EXPECT(false, "%s, protocol %d, round %d, %d launches: element %lld is %g, want %g", what,
             job.protocol, seed, launches, (long long)i, double(have[size_t(i)]), double(want));
      return;
    }
  }

  Job job;
  float *const memory;
  mscclsh_size size = {};
  int32_t device = 0;
  mscclsh_call *call = nullptr;
  int launches = 0;
};

// kTurns is more than any number of turns after which a stream could be taken for the only
// one there is.
constexpr int kTurns = 70;

// in_turns launches on three streams in turns, then from graphs captured over two of them,
// which run between other launches.
void in_turns(Doubling *d, Stream *streams, int round, float *copy) {
  std::vector<float> from, last(size_t(d->count())), saved(size_t(d->count()));
  for (int64_t i = 0; i < d->count(); i++) from.push_back(value(self, i, round));
  d->launches = 0;
  d->copy(streams[0], d->memory, from.data());
  for (int i = 0; i < 5; i++) d->launch(streams[(round + i) % 3]);
  d->copy(streams[round % 3], copy, d->memory);
  d->copy(streams[(round + 1) % 3], saved.data(), copy);
  OK(mscclsh_sync(d->job.on->comm, err, sizeof err));
  d->check(saved, round, "streams");

  Stream &first = streams[round % 3], &second = streams[(round + 1) % 3],
         &third = streams[(round + 2) % 3];
  const int before = d->launches;
  Graph graph(first, round % 3);
  second.follow(first);
  d->launch(first);
  d->launch(second);
  d->copy(second, copy, d->memory);
  d->launch(first);
  first.follow(second);
  graph.end(first);
  const int each = d->launches - before;
  d->launches = before + each * graph.recorded();
  d->launches += each * graph.launch(third);
  d->launch(second);
  d->launches += each * graph.launch(first);
  d->copy(third, last.data(), d->memory);
  OK(mscclsh_sync(d->job.on->comm, err, sizeof err));
  d->check(last, round, "graphs");
}

// after_one_stream has many turns on one stream, which then is captured at once: launches on
// another stream meanwhile, and of the graph on a third, come behind all that it had before.
// A communicator of its own has seen no other stream yet.
void after_one_stream(Doubling *d, Stream *streams, int round, float *copy) {
  std::vector<float> from, last(size_t(d->count()));
  for (int64_t i = 0; i < d->count(); i++) from.push_back(value(self, i, round));
  d->launches = 0;
  for (int i = 0; i < kTurns; i++) d->copy(streams[0], copy, from.data());
  d->copy(streams[0], d->memory, copy);
  for (int i = 0; i < 4; i++) d->launch(streams[0]);
  const int before = d->launches;
  Graph graph(streams[0], round % 3);
  d->launch(streams[0]);
  d->launch(streams[0]);
  const int each = d->launches - before;
  d->launches = before + each * graph.recorded();
  if (round % 2 == 1) d->launch(streams[1]);  // is captured by nobody
  graph.end(streams[0]);
  d->launches += each * graph.launch(streams[2]);
  d->launches += each * graph.launch(streams[1]);
  d->copy(streams[2], last.data(), d->memory);
  OK(mscclsh_sync(d->job.on->comm, err, sizeof err));
  d->check(last, round, "after one stream");
}

// One is a communicator with a window. Another one of the same memory was there before, and
// is closed.
struct One {
  explicit One(const Setting &s)
      : comm(s, 0),
        n(s.ranks),
        device(comm.devices[size_t(self)]),
        elems(on_gpu() ? 1 << 18 : 90),
        bytes(4 * n * elems),
        mapped(device, bytes) {
    OK(mscclsh_alloc(comm.comm, self, bytes, &own, err, sizeof err));
    OK(mscclsh_alloc(comm.comm, self, bytes, &kept, err, sizeof err));
    memory = static_cast<float *>(mapped.at ? mapped.at : own);
    std::vector<void *> at(static_cast<size_t>(n), nullptr);
    std::vector<int64_t> sizes(size_t(n), 0);
    at[size_t(self)] = memory;
    sizes[size_t(self)] = bytes;
    mscclsh_window *before = nullptr;
    OK(mscclsh_window_open(comm.comm, at.data(), sizes.data(), &before, err, sizeof err));
    OK(mscclsh_window_open(comm.comm, at.data(), sizes.data(), &window, err, sizeof err));
    OK(mscclsh_window_close(before, err, sizeof err));
  }
  ~One() {
    OK(mscclsh_window_close(window, err, sizeof err));
    OK(mscclsh_free(comm.comm, self, own, err, sizeof err));
    OK(mscclsh_free(comm.comm, self, kept, err, sizeof err));
  }
  One(const One &) = delete;
  One &operator=(const One &) = delete;

  Comm comm;
  const int32_t n, device;
  const int64_t elems, bytes;
  const Virtual mapped;
  void *own = nullptr, *kept = nullptr;
  float *memory = nullptr;
  mscclsh_window *window = nullptr;
};

}  // namespace

// test_order has turns on several streams and of graphs, all without waiting in between. The
// memory is one that other processes open by descriptors.
void test_order(const Setting &s) {
  for (const int32_t protocol : {MSCCLSH_LL, MSCCLSH_SIMPLE, MSCCLSH_DIRECT}) {
    for (int round = 0; round < 6; round++) {
      One one(s);
      Doubling d(&one.comm, protocol, one.window, one.memory, one.elems);
      Stream streams[3] = {Stream(one.device), Stream(one.device), Stream(one.device)};
      after_one_stream(&d, streams, round, static_cast<float *>(one.kept));
    }
    One one(s);
    Doubling d(&one.comm, protocol, one.window, one.memory, one.elems);
    Stream streams[3] = {Stream(one.device), Stream(one.device), Stream(one.device)};
    for (int round = 0; round < 6; round++)
      in_turns(&d, streams, round, static_cast<float *>(one.kept));
  }
}
