#include "watch.h"

#include <algorithm>
#include <system_error>

#include "failure.h"
#include "log.h"
#include "options.h"

namespace mscclsh::nccl {

namespace {

// kSilence is the longest that ranks wait without a word.
constexpr std::chrono::seconds kSilence(30);

// kLeast is what NCCL may take for its first message, to make connections.
constexpr std::chrono::seconds kLeast(10);

std::chrono::nanoseconds patience() {
  return std::max<std::chrono::nanoseconds>(std::chrono::nanoseconds(options().watchdog_ns),
                                            kLeast);
}

double seconds(std::chrono::nanoseconds t) { return double(t.count()) / 1e9; }

}  // namespace

Watch::Watch(std::vector<Rank *> ranks) : ranks_(std::move(ranks)) {
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error &e) {
    log_setup(std::string("ranks that don't answer are waited for without end: ") + e.what());
  }
}

Watch::~Watch() {
  {
    std::lock_guard<std::mutex> lock(mu_);
    over_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void Watch::check() const {
  std::lock_guard<std::mutex> lock(mu_);
  fail_if_late();
}

void Watch::finish() {
  std::lock_guard<std::mutex> lock(mu_);
  fail_if_late();
  over_ = true;
}

void Watch::fail_if_late() const {
  if (late_) throw Failure(MSCCLSH_ESTUCK, waited() + "it is given up");
}

std::string Watch::waited() const {
  return format(
      "rank %d of a communicator of %d ranks has waited %.3g s for the others to tell what they "
      "have: all processes must have this library, and the same MSCCLSH_NCCL, or none; ",
      ranks_[0]->rank, ranks_[0]->ranks, seconds(Clock::now() - begun_));
}

void Watch::run() {
  const std::chrono::nanoseconds most = patience();
  const auto silent_until = begun_ + std::min<std::chrono::nanoseconds>(kSilence, most / 2);
  std::unique_lock<std::mutex> lock(mu_);
  if (changed_.wait_until(lock, silent_until, [&] { return over_; })) return;
  say(waited() + format("it is given up after %.3g s", seconds(most)));
  if (changed_.wait_until(lock, begun_ + most, [&] { return over_; })) return;
  late_ = true;
  give_up();
}

void Watch::give_up() {
  for (Rank *r : ranks_) {
    // Those that don't block are the application's to abort, which is told.
    if (!r->config.blocking) continue;
    r->ended = true;
    real().CommAbort(r->comm);
  }
}

}  // namespace mscclsh::nccl
