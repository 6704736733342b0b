// How long ranks wait for the others when a communicator is set up. What they tell each other
// then only processes take part in that have this library: one that has NCCL alone goes on
// without a word, and there is nothing to ask it by. NCCL itself waits for ever, often inside
// the call, so another thread looks at the clock.
#ifndef MSCCLSH_NCCL_WATCH_H
#define MSCCLSH_NCCL_WATCH_H

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "comms.h"

namespace mscclsh::nccl {

// Watch begins when it is made. It gives the ranks up after MSCCLSH_WATCHDOG, but not before 10
// seconds: NCCL's communicators of those that block are aborted, which ends calls of NCCL's
// that wait. After 30 seconds, or half of that time if that is less, it says that it waits.
class Watch {
 public:
  explicit Watch(std::vector<Rank *> ranks);
  ~Watch();
  Watch(const Watch &) = delete;
  Watch &operator=(const Watch &) = delete;

  // check fails once the ranks were given up. finish does, or else ends the watch, and ask
  // does, or else calls f of a communicator that is not given up meanwhile.
  void check() const;
  void finish();
  template <class F>
  ncclResult_t ask(F f) const {
    std::lock_guard<std::mutex> lock(mu_);
    fail_if_late();
    return f();
  }

 private:
  using Clock = std::chrono::steady_clock;
  void run();
  void give_up();
  void fail_if_late() const;
  std::string waited() const;

  const std::vector<Rank *> ranks_;
  const Clock::time_point begun_ = Clock::now();
  mutable std::mutex mu_;
  std::condition_variable changed_;
  bool over_ = false, late_ = false;
  std::thread thread_;
};

}  // namespace mscclsh::nccl

#endif
