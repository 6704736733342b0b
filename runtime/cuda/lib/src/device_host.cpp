// Devices that are threads of this process: a queue with a thread of its own, which
// starts one thread for each thread of each block of a launch.
#include <pthread.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <new>
#include <thread>
#include <vector>

#include "device.h"
#include "mscclsh_host_stream.h"

namespace mscclsh {

namespace {

// kHostDevices is how many devices there seem to be, kHostThreads how many threads
// one of them runs at once.
constexpr int32_t kHostDevices = 16;
constexpr int32_t kHostThreads = 2000;

}  // namespace

int32_t device_count() { return kHostDevices; }

mscclsh_device device_info(int32_t) {
  mscclsh_device d = {};
  std::strncpy(d.name, "host threads", sizeof d.name - 1);
  d.memory = int64_t(1) << 30;
  d.multiprocessors = int32_t(std::thread::hardware_concurrency());
  return d;
}

const char *build_name() { return "host"; }
int32_t default_threads() { return 4; }
int32_t thread_unit() { return 1; }

KeptDevice::KeptDevice() = default;
KeptDevice::~KeptDevice() = default;

HostFlag::HostFlag(std::unique_ptr<SharedFile> file)
    : file_(std::move(file)),
      here_(file_ ? static_cast<uint32_t *>(file_->at()) : new uint32_t[2]()),
      word_(here_) {}
HostFlag::~HostFlag() {
  if (!file_) delete[] here_;
}
bool HostFlag::raised() const { return load_flag(here_); }
void HostFlag::abort() {
  word32(here_ + 1).store(1, std::memory_order_release);
  word32(here_).store(1, std::memory_order_release);
}
bool HostFlag::aborted() const { return word32(here_ + 1).load(std::memory_order_acquire) != 0; }

namespace {

// Meeting lets two threads wait for each other.
class Meeting {
 public:
  void reach(int stage) {
    std::lock_guard<std::mutex> lock(mu_);
    stage_ = stage;
    changed_.notify_all();
  }
  void wait(int stage) {
    std::unique_lock<std::mutex> lock(mu_);
    changed_.wait(lock, [&] { return stage_ >= stage; });
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  int stage_ = 0;
};

}  // namespace

struct Device::Graph {
  std::vector<std::function<void()>> work;
};

struct Device::Impl {
  std::mutex mu;
  std::condition_variable changed;
  std::deque<std::function<void()>> queue;
  bool busy = false, closed = false;
  std::string error;  // of starting threads
  Graph *capturing = nullptr;
  int64_t begin = 0, end = 0;
  std::map<const unsigned char *, std::unique_ptr<SharedFile>> files;  // by their start
  struct Allocation {
    size_t bytes;
    uint64_t id;
  };
  std::map<const unsigned char *, Allocation> known;  // memory of alloc and alloc_shared
  uint64_t allocations = 0;                           // there have been so many
  uint64_t turn = 0, turns_done = 0;                  // the latter under mu
  std::thread runner;

  void push(std::function<void()> f) {
    if (capturing) {
      capturing->work.push_back(std::move(f));
      return;
    }
    std::lock_guard<std::mutex> lock(mu);
    queue.push_back(std::move(f));
    changed.notify_all();
  }

  // push_on puts f where the queue is and where the stream is, null or one of
  // mscclsh_host_stream.h, so that it keeps the order of both.
  void push_on(void *stream, std::function<void()> f) {
    if (stream == nullptr || capturing) {
      push(std::move(f));
      return;
    }
    const std::shared_ptr<Meeting> m = std::make_shared<Meeting>();
    push([m, f = std::move(f)] {
      m->wait(1);
      f();
      m->reach(2);
    });
    run_on(stream, [m] {
      m->reach(1);
      m->wait(2);
    });
  }

  void run() {
    std::unique_lock<std::mutex> lock(mu);
    for (;;) {
      changed.wait(lock, [&] { return closed || !queue.empty(); });
      if (queue.empty()) return;
      std::function<void()> f = std::move(queue.front());
      queue.pop_front();
      busy = true;
      lock.unlock();
      f();
      lock.lock();
      busy = false;
      changed.notify_all();
    }
  }

  void drain() {
    std::unique_lock<std::mutex> lock(mu);
    changed.wait(lock, [&] { return queue.empty() && !busy; });
    if (!error.empty()) throw Failure(MSCCLSH_EDEVICE, error);
  }
};

namespace {

// HostBlock is what the threads of a block share.
struct HostBlock {
  HostBlock(int32_t threads, size_t shared)
      : barrier(uint32_t(threads)), memory(shared / sizeof(Pair) + 1) {}
  Barrier barrier;
  std::vector<Pair> memory;
};

// Gate holds the threads of a launch back until the last one is there: those of a
// launch that can't have all its threads would wait for the others for ever.
class Gate {
 public:
  bool wait() {
    std::unique_lock<std::mutex> lock(mu_);
    changed_.wait(lock, [&] { return decided_; });
    return open_;
  }
  void decide(bool open) {
    std::lock_guard<std::mutex> lock(mu_);
    decided_ = true;
    open_ = open;
    changed_.notify_all();
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  bool decided_ = false, open_ = false;
};

struct HostThread {
  Thread thread;
  Kernel kernel;
  const Args *args;
  unsigned char *shared;
  Gate *gate;
};

void *start(void *p) {
  const HostThread *t = static_cast<HostThread *>(p);
  if (t->gate->wait()) t->kernel(t->thread, *t->args, t->shared);
  return nullptr;
}

// run_blocks returns what went wrong, or nothing.
std::string run_blocks(Kernel kernel, int32_t blocks, int32_t threads, size_t shared,
                       const Args &args) {
  Gate gate;
  std::deque<HostBlock> state;
  std::vector<HostThread> all;
  all.reserve(size_t(blocks) * size_t(threads));
  for (int32_t b = 0; b < blocks; b++) {
    state.emplace_back(threads, shared);
    unsigned char *memory = reinterpret_cast<unsigned char *>(state.back().memory.data());
    for (int32_t i = 0; i < threads; i++)
      all.push_back({Thread{uint32_t(i), uint32_t(threads), uint32_t(b), &state.back().barrier},
                     kernel, &args, memory, &gate});
  }
  pthread_attr_t attr;
  pthread_attr_init(&attr);
  pthread_attr_setstacksize(&attr, 256 << 10);
  std::vector<pthread_t> ids(all.size());
  size_t made = 0;
  while (made < all.size() && pthread_create(&ids[made], &attr, start, &all[made]) == 0) made++;
  pthread_attr_destroy(&attr);
  gate.decide(made == all.size());
  for (size_t i = 0; i < made; i++) pthread_join(ids[i], nullptr);
  if (made == all.size()) return "";
  // The other devices must not wait for this one.
  raise_flag(args.dead);
  raise_flag(args.abort);
  return format("starting threads: got %zu of %zu", made, all.size());
}

}  // namespace

Device::Device(int32_t id) : id(id), impl_(new Impl) {
  impl_->runner = std::thread([this] { impl_->run(); });
}

Device::~Device() {
  {
    std::lock_guard<std::mutex> lock(impl_->mu);
    impl_->closed = true;
    impl_->changed.notify_all();
  }
  impl_->runner.join();
}

void Device::open_peer(const Device &) {}
bool Device::whole_lines(const Device &) { return true; }

void *Device::alloc(size_t bytes) {
  void *p = alloc_now(bytes);
  std::memset(p, 0, bytes);
  impl_->known[static_cast<unsigned char *>(p)] = {bytes, ++impl_->allocations};
  return p;
}

void *Device::alloc_now(size_t bytes) {
  void *p = ::operator new(bytes + 1, std::align_val_t(256), std::nothrow);
  if (p == nullptr) refused(format("allocating %zu bytes of host memory failed", bytes));
  return p;
}

void *Device::alloc_shared(size_t bytes) {
  std::unique_ptr<SharedFile> f(new SharedFile(bytes + 1));
  unsigned char *p = static_cast<unsigned char *>(f->at());
  impl_->files[p] = std::move(f);
  impl_->known[p] = {bytes, ++impl_->allocations};
  return p;
}

void Device::free(void *p) {
  impl_->known.erase(static_cast<unsigned char *>(p));
  if (impl_->files.erase(static_cast<unsigned char *>(p)) == 0)
    ::operator delete(p, std::align_val_t(256));
}

bool Device::reaches(const void *) { return true; }

uint64_t Device::identity(const void *p, size_t bytes) {
  const unsigned char *at = static_cast<const unsigned char *>(p);
  auto f = impl_->known.upper_bound(at);
  if (f == impl_->known.begin() || (--f, size_t(at - f->first) >= f->second.bytes)) return 0;
  if (bytes > f->second.bytes - size_t(at - f->first))
    refused(format("%zu bytes from %p on reach beyond their allocation of %zu bytes", bytes, p,
                   f->second.bytes));
  return f->second.id;
}

Export Device::tell(const void *p, Fd *) {
  const unsigned char *at = static_cast<const unsigned char *>(p);
  auto f = impl_->files.upper_bound(at);
  if (f == impl_->files.begin() || (--f, size_t(at - f->first) >= f->second->bytes()))
    refused(
        format("memory at %p can't be told to other processes, as that of mscclsh_alloc can", p));
  Export to = {};
  static_assert(sizeof(FileRef) <= sizeof to.handle, "a handle's size");
  std::memcpy(to.handle, &f->second->ref(), sizeof(FileRef));
  to.offset = at - f->first;
  to.bytes = int64_t(f->second->bytes());
  return to;
}

unsigned char *Device::map(const Export &e) {
  FileRef ref;
  std::memcpy(&ref, e.handle, sizeof ref);
  std::unique_ptr<SharedFile> f(new SharedFile(ref));
  unsigned char *p = static_cast<unsigned char *>(f->at());
  impl_->files[p] = std::move(f);
  return p;
}

void Device::unmap(unsigned char *start) { impl_->files.erase(start); }

void Device::upload(void *to, const void *from, size_t bytes) {
  sync();
  std::memcpy(to, from, bytes);
}
void Device::download(void *to, const void *from, size_t bytes) {
  sync();
  std::memcpy(to, from, bytes);
}
void Device::fill(void *to, int value, size_t bytes) {
  sync();
  std::memset(to, value, bytes);
}

void Device::place(void *to, const void *from, size_t bytes) { std::memcpy(to, from, bytes); }

Fit Device::fit(Kernel, int32_t threads, size_t) { return {kHostThreads / threads, 0}; }

void Device::load(DivideKernel) {}

void Device::launch(Kernel kernel, int32_t blocks, int32_t threads, size_t shared,
                    const Args &args) {
  launch(kernel, blocks, threads, shared, args, nullptr);
}

void Device::launch(Kernel kernel, int32_t blocks, int32_t threads, size_t shared, const Args &args,
                    void *stream, bool) {
  Impl *impl = impl_.get();
  impl->push_on(stream, [=] {
    std::string error = run_blocks(kernel, blocks, threads, shared, args);
    if (error.empty()) return;
    std::lock_guard<std::mutex> lock(impl->mu);
    impl->error = error;
  });
}

void Device::divide(DivideKernel kernel, const DivideRun *runs, int64_t n) {
  divide(kernel, runs, n, nullptr);
}

void Device::divide(DivideKernel kernel, const DivideRun *runs, int64_t n, void *stream,
                    const Bases &bases) {
  impl_->push_on(stream, [=] { kernel(runs, n, bases); });
}

void Device::copy(void *to, const void *from, size_t bytes, void *stream) {
  impl_->push_on(stream, [=] { std::memcpy(to, from, bytes); });
}

// The queue keeps turns in order.
Device::Turn Device::begin_turn(void *) { return {false, true}; }

void Device::end_turn(void *) {
  Impl *impl = impl_.get();
  const uint64_t turn = ++impl->turn;
  impl->push([=] {
    std::lock_guard<std::mutex> lock(impl->mu);
    impl->turns_done = turn;
  });
}

uint64_t Device::turn() const { return impl_->turn; }

uint64_t Device::turns_done() {
  std::lock_guard<std::mutex> lock(impl_->mu);
  return impl_->turns_done;
}

void Device::load(DataKernel) {}

void Device::launch(DataKernel kernel, const DataArgs &args) {
  impl_->push([=] { kernel(args); });
}

void Device::begin_capture() { impl_->capturing = new Graph; }

Device::Graph *Device::end_capture() {
  Graph *g = impl_->capturing;
  impl_->capturing = nullptr;
  return g;
}

void Device::replay(Graph *graph) {
  for (const std::function<void()> &f : graph->work) impl_->push(f);
}

void Device::drop(Graph *graph) { delete graph; }

void Device::begin_timing() {
  Impl *impl = impl_.get();
  impl->push([=] { impl->begin = now(); });
}
void Device::end_timing() {
  Impl *impl = impl_.get();
  impl->push([=] { impl->end = now(); });
}
double Device::timed_ns() { return double(impl_->end - impl_->begin); }

void Device::sync() { impl_->drain(); }

}  // namespace mscclsh
