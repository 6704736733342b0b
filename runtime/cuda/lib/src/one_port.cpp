#include "one_port.h"

#include <chrono>

namespace mscclsh {

namespace {

// kServeAtOnce bounds what one queue may ask for while others wait.
constexpr int kServeAtOnce = 64;

// How long the thread looks for wishes without sleeping, and how long it sleeps then.
constexpr std::chrono::milliseconds kAwake(2);
constexpr std::chrono::microseconds kNap(20);

// These words are shared with kernels.
uint64_t load(const uint64_t *p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
void store(uint64_t *p, uint64_t v) { __atomic_store_n(p, v, __ATOMIC_RELEASE); }

}  // namespace

PortQueue::PortQueue(int32_t device, std::vector<PortEnd> ends)
    : memory_((kPortDepth + 1) * sizeof(PortRequest)), lines_(device), ends_(std::move(ends)) {}

PortView PortQueue::view(uint64_t *made) const {
  unsigned char *at = memory_.there();
  return {reinterpret_cast<PortRequest *>(at), made,
          reinterpret_cast<const uint64_t *>(at + kPortDepth * sizeof(PortRequest))};
}

bool PortQueue::serve() {
  uint64_t *taken = reinterpret_cast<uint64_t *>(requests() + kPortDepth);
  int n = 0;
  for (; n < kServeAtOnce; n++) {
    const PortRequest &at = requests()[next_ % kPortDepth];
    if (load(&at.turn) != next_ + 1) break;
    const PortWish q = at.wish;
    store(taken, ++next_);
    PortEnd &end = ends_[q.port];
    const uint32_t line = q.port % PortLines::kLines;
    if ((q.what & kPortPut) && q.bytes > 0)
      lines_.copy(line, reinterpret_cast<void *>(q.dst), reinterpret_cast<const void *>(q.src),
                  q.bytes);
    if (q.what & kPortSignal) lines_.write(line, end.signals, ++end.given);
    if (q.what & kPortFlush) lines_.write(line, end.flushed, next_);
  }
  return n > 0;
}

void PortQueue::reset(uint32_t first) {
  for (uint32_t i = 0; i < first; i++) ends_[i].given = 0;
}

void PortQueue::settle() { lines_.settle(); }

Ports::Ports(std::function<void()> failed) : failed_(std::move(failed)) {
  thread_ = std::thread([this] { run(); });
}

Ports::~Ports() {
  {
    std::lock_guard<std::mutex> lock(mu_);
    stop_ = true;
  }
  thread_.join();
}

PortQueue *Ports::open(int32_t device, std::vector<PortEnd> ends) {
  std::unique_ptr<PortQueue> q(new PortQueue(device, std::move(ends)));
  PortQueue *p = q.get();
  std::lock_guard<std::mutex> lock(mu_);
  queues_.push_back(std::move(q));
  return p;
}

void Ports::close(PortQueue *queue) {
  std::lock_guard<std::mutex> lock(mu_);
  try {
    queue->settle();
  } catch (const Failure &) {  // of a device that is beyond use
  }
  queues_.remove_if([&](const std::unique_ptr<PortQueue> &q) { return q.get() == queue; });
}

void Ports::reset(PortQueue *queue, uint32_t first) {
  std::lock_guard<std::mutex> lock(mu_);
  queue->reset(first);
}

std::string Ports::error() const {
  std::lock_guard<std::mutex> lock(mu_);
  return error_;
}

// serve goes round the queues once; false when there was nothing to do.
bool Ports::serve() {
  bool any = false;
  for (const std::unique_ptr<PortQueue> &q : queues_) any |= q->serve();
  return any;
}

void Ports::run() {
  using Clock = std::chrono::steady_clock;
  Clock::time_point last = Clock::now();
  for (;;) {
    bool any = false, failed = false;
    {
      std::lock_guard<std::mutex> lock(mu_);
      if (stop_) return;
      try {
        any = error_.empty() && serve();
      } catch (const Failure &e) {
        error_ = e.what();
        failed = true;
      }
    }
    if (failed) failed_();
    if (any)
      last = Clock::now();
    else if (Clock::now() - last > kAwake)
      std::this_thread::sleep_for(kNap);
    else
      std::this_thread::yield();
  }
}

}  // namespace mscclsh
