#include "group.h"

#include <algorithm>
#include <chrono>
#include <system_error>

#include "failure.h"
#include "gpu.h"
#include "log.h"
#include "options.h"
#include "setup.h"

namespace mscclsh::nccl {

Group &group() {
  static thread_local Group own;
  return own;
}

namespace {

// failed notes that a launch failed, for good: see Rank::broken. What was to go into a graph
// is of no consequence outside it, and of a capture that fails there is no graph.
ncclResult_t failed(Rank *rank, const Request &r, const char *what, ncclResult_t result) {
  const std::string sentence =
      format("rank %d: %s: ", rank->rank, collective_name(r.collective)) + what;
  log_setup(sentence);
  if (captures(r.stream)) {
    last_error() = sentence;
    return result;
  }
  rank->fail(sentence);
  rank->broken = result;
  return result;
}

// prepare makes a call ready, so that nothing has to be allocated any more once the first
// of a group's kernels runs, and waits for those of the same thread's other devices.
void prepare(Rank *rank, const Request &r, int32_t entry, const All *all) try {
  if (rank == nullptr || !rank->ready() || rank->broken != ncclSuccess) return;
  const OnDevice on(rank->device);
  rank->calls->prepare(r, entry, all);
} catch (const std::exception &) {  // as the launch will tell
}

}  // namespace

ncclResult_t launch(Rank *rank, const Request &r, int32_t entry, const All *all) {
  if (rank->broken != ncclSuccess) {
    last_error() = rank->error();
    return rank->broken;
  }
  try {
    rank->launched = true;
    const OnDevice on(rank->device);
    rank->calls->launch(r, entry, all);
    return ncclSuccess;
  } catch (const Failure &f) {
    return failed(rank, r, f.what(), result_of(f.code));
  } catch (const std::exception &e) {
    return failed(rank, r, e.what(), ncclSystemError);
  }
}

bool as_alltoall(const std::vector<Message> &messages, int32_t ranks, Request *request) {
  if (messages.size() != size_t(2 * ranks)) return false;
  const Message &first = messages[0];
  std::vector<const Message *> from(size_t(ranks), nullptr), to(size_t(ranks), nullptr);
  for (const Message &m : messages) {
    if (m.peer < 0 || m.peer >= ranks || m.count != first.count || m.type != first.type ||
        m.stream != first.stream)
      return false;
    const Message *&place = (m.sends ? to : from)[size_t(m.peer)];
    if (place != nullptr) return false;
    place = &m;
  }
  const int32_t dtype = dtype_of(first.type);
  if (dtype < 0 || first.count == 0) return false;
  const uintptr_t block = uintptr_t(first.count) * uintptr_t(dtype_bytes(dtype));
  const auto at = [](const void *p) { return reinterpret_cast<uintptr_t>(p); };
  for (size_t p = 0; p < size_t(ranks); p++)
    if (to[p] == nullptr || from[p] == nullptr || at(to[p]->send) != at(to[0]->send) + p * block ||
        at(from[p]->recv) != at(from[0]->recv) + p * block)
      return false;
  *request = {MSCCLSH_ALLTOALL, to[0]->send, from[0]->recv, first.count, dtype, 0, 0,
              first.comm,       first.stream};
  return true;
}

ncclResult_t Group::start() {
  const ncclResult_t r = real().GroupStart();
  if (r == ncclSuccess) depth_++;
  return r;
}

void Group::clear() {
  calls_.clear();
  created_.clear();
  registered_.clear();
  messages_.clear();
  held_.clear();
  passed_.clear();
}

// pass gives messages to NCCL. What it has against one it says again at the group's end.
void Group::pass(const std::vector<Message> &messages) {
  for (const Message &m : messages) {
    if (m.sends)
      real().Send(m.send, m.count, m.type, m.peer, m.comm, m.stream);
    else
      real().Recv(m.recv, m.count, m.type, m.peer, m.comm, m.stream);
  }
}

// pass_messages makes an alltoall of each communicator's messages, or leaves them to NCCL.
void Group::pass_messages() {
  while (!messages_.empty()) {
    const ncclComm_t comm = messages_[0].comm;
    const auto others = std::stable_partition(messages_.begin(), messages_.end(),
                                              [&](const Message &m) { return m.comm == comm; });
    const std::vector<Message> own(messages_.begin(), others);
    messages_.erase(messages_.begin(), others);
    Rank *const rank = find(comm);
    Request r;
    int32_t entry = -1;
    if (rank != nullptr && rank->ready() && as_alltoall(own, rank->ranks, &r))
      entry = rank->calls->choose(r);
    if (entry < 0) {
      pass(own);
      continue;
    }
    stats().ours[MSCCLSH_ALLTOALL]++;
    rank->calls_made++;
    add(rank, r, entry);
  }
}

// launch_all launches the calls that waited; later: NCCL is still at work on its part, which
// must come before them on their streams on all ranks, and so they go on waiting.
ncclResult_t Group::launch_all(const std::vector<Call> &calls, bool later) {
  const bool several = std::any_of(calls.begin(), calls.end(),
                                   [&](const Call &c) { return c.comm != calls[0].comm; });
  for (const Call &c : calls)
    if (several && !later) prepare(find(c.comm), c.request, c.entry, c.all.get());
  ncclResult_t result = ncclSuccess;
  for (const Call &c : calls) {
    Rank *const rank = find(c.comm);  // it may have been aborted since
    if (later && rank != nullptr && c.all == nullptr) {
      std::lock_guard<std::mutex> lock(rank->later_mu);
      rank->later.emplace_back(c.request, c.entry);
      continue;
    }
    const ncclResult_t r = rank == nullptr || !rank->ready()
                               ? ncclInvalidUsage
                               : launch(rank, c.request, c.entry, c.all.get());
    if (result == ncclSuccess) result = r;
  }
  return result;
}

bool Group::holds(ncclComm_t comm) const {
  return std::any_of(held_.begin(), held_.end(), [&](const Held &h) { return h.comm == comm; });
}

ncclResult_t Group::deliver(ncclComm_t comm) {
  if (held_.empty()) return ncclSuccess;
  const auto others = std::stable_partition(
      held_.begin(), held_.end(), [&](const Held &h) { return comm == nullptr || h.comm == comm; });
  const std::vector<Held> held(std::make_move_iterator(held_.begin()),
                               std::make_move_iterator(others));
  held_.erase(held_.begin(), others);
  const std::vector<Decided> decided = decide(held, passed_);
  ncclResult_t result = ncclSuccess;
  for (size_t i = 0; i < held.size(); i++) {
    if (decided[i].entry >= 0) {
      calls_.push_back({held[i].comm, held[i].request, decided[i].entry, decided[i].all});
      continue;
    }
    const bool gone = find(held[i].comm) == nullptr;  // destroyed within the group
    const ncclResult_t r = gone ? ncclInvalidUsage : held[i].pass();
    if (result == ncclSuccess && r != ncclInProgress) result = r;
  }
  return result;
}

void Group::keep_apart(const std::vector<ncclComm_t> &comms) {
  for (const ncclComm_t c : comms)
    if (Rank *const rank = find(c); rank != nullptr && rank->engine != nullptr)
      rank->engine->apart = true;
}

ncclResult_t Group::end() {
  if (depth_ != 1) {
    const ncclResult_t r = real().GroupEnd();
    if (depth_ > 0) depth_--;
    return r;
  }
  std::vector<ncclComm_t> comms;
  for (const Held &h : held_) comms.push_back(h.comm);
  const ncclResult_t passed = deliver(nullptr);
  pass_messages();
  depth_ = 0;
  const ncclResult_t ended = real().GroupEnd();
  const ncclResult_t r = passed != ncclSuccess ? passed : ended;
  if (r != ncclSuccess && r != ncclInProgress) {
    keep_apart(comms);
    clear();
    return r;
  }
  const std::vector<Created> created = std::move(created_);
  const std::vector<Registered> windows = std::move(registered_);
  const std::vector<Call> calls = std::move(calls_);
  clear();  // whatever happens to these, the next group is another one
  const ncclResult_t set_up = made(created, r == ncclInProgress);
  registered(windows);
  const ncclResult_t ours = launch_all(calls, r == ncclInProgress);
  return set_up != ncclSuccess ? set_up : ours != ncclSuccess ? ours : r;
}

// simulate ends a group of which nothing is carried out.
ncclResult_t Group::simulate(ncclSimInfo_t *info) {
  if (depth_ == 1) {
    pass(messages_);
    for (const Held &h : held_) h.pass();
    clear();
  }
  const ncclResult_t r = real().GroupSimulateEnd(info);
  if (depth_ > 0) depth_--;
  return r;
}

namespace {

// set_up_beside sets a rank up on a thread of its own, for which nobody waits here:
// ncclCommGetAsyncError says when it is done. It is false where there is no thread to be had.
bool set_up_beside(Rank *rank) try {
  rank->setting_up = std::thread([rank] { set_up({rank}); });
  return true;
} catch (const std::system_error &e) {
  log_setup(std::string("a communicator is set up without a thread of its own: ") + e.what());
  return false;
}

// end_broken ends communicators of ranks that were set up and are broken.
ncclResult_t end_broken(const std::vector<Created> &created) {
  ncclResult_t result = ncclSuccess;
  for (const Created &c : created) {
    if (c.at == nullptr || *c.at == nullptr) continue;
    const Rank *const rank = find(*c.at);
    if (rank == nullptr || !rank->unanswered()) continue;
    result = rank->broken;
    const std::unique_ptr<Rank> gone = take(*c.at);
    if (!gone->ended) real().CommAbort(*c.at);
    *c.at = nullptr;
  }
  return result;
}

}  // namespace

ncclResult_t made(const std::vector<Created> &created, bool in_progress) {
  std::vector<Rank *> now;
  for (const Created &c : created) {
    if (Rank *const parent = in_progress && c.parent != nullptr ? find(c.parent) : nullptr) {
      std::lock_guard<std::mutex> lock(parent->later_mu);
      parent->awaited.push_back(c);
      continue;
    }
    if (c.at == nullptr || *c.at == nullptr) continue;
    Rank *const rank = new Rank(*c.at, c.config);
    add(rank);
    // What NCCL says is done may be used at once, whatever the configuration.
    if (!in_progress || !set_up_beside(rank)) now.push_back(rank);
  }
  if (now.empty()) return ncclSuccess;
  set_up(now);
  return in_progress ? ncclSuccess : end_broken(created);
}

ncclResult_t catch_up(Rank *rank) {
  std::lock_guard<std::mutex> lock(rank->later_mu);
  ncclResult_t result = ncclSuccess;
  for (const auto &c : rank->later) {
    const ncclResult_t r = rank->ready() ? launch(rank, c.first, c.second) : ncclInvalidUsage;
    if (result == ncclSuccess) result = r;
  }
  rank->later.clear();
  std::vector<Rank *> now;
  for (const Created &c : rank->awaited) {
    if (*c.at == nullptr) continue;  // of a rank that stays out
    Rank *const child = new Rank(*c.at, c.config);
    add(child);
    rank->children.push_back(child->comm);
    if (!set_up_beside(child)) now.push_back(child);
  }
  rank->awaited.clear();
  if (!now.empty()) set_up(now);
  for (const ncclComm_t c : rank->children) {
    const Rank *const child = find(c);
    if (child != nullptr && child->phase == Phase::kSettingUp)
      return result == ncclSuccess ? ncclInProgress : result;
  }
  rank->children.clear();
  return result;
}

void hasten(Rank *rank) {
  const auto waits = [&] {
    std::lock_guard<std::mutex> lock(rank->later_mu);
    return !rank->later.empty();
  };
  while (waits() && !rank->abandoned) {
    ncclResult_t state = ncclSuccess;
    if (real().CommGetAsyncError(rank->comm, &state) != ncclSuccess) return;
    if (state != ncclSuccess && state != ncclInProgress) return;
    if (state == ncclSuccess)
      catch_up(rank);
    else
      std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

void registered(const std::vector<Registered> &all) {
  struct Telling {
    Rank *rank;
    const Registered *from;
    int32_t number;
  };
  std::vector<Telling> telling;
  for (const Registered &r : all) {
    Rank *const rank = find(r.comm);
    if (rank == nullptr || !rank->ready() || !rank->opens_windows) continue;
    // What begins anywhere else, and what NCCL made no window of, is of no use to anyone,
    // but all ranks have to find that out.
    const bool use = r.at != nullptr && *r.at != nullptr && r.memory != nullptr && r.bytes > 0 &&
                     reinterpret_cast<uintptr_t>(r.memory) % kPage == 0;
    rank->calls->forget_freed();
    telling.push_back(
        {rank, &r, rank->engine->tell(rank->rank, use ? r.memory : nullptr, use ? r.bytes : 0)});
  }
  for (const Telling &t : telling) {
    Engine &engine = *t.rank->engine;
    const Engine::Window w = engine.opened(t.number, t.rank->abandoned);
    if (!w.why.empty()) {
      log_setup(format("rank %d: window %d is not used: ", t.rank->rank, t.number) + w.why);
      engine.drop(t.number);
      continue;
    }
    uint64_t identity = 0;
    char err[256];
    const OnDevice on(t.rank->device);
    std::lock_guard<std::mutex> lock(engine.mu(t.rank->rank));
    if (mscclsh_identity(engine.comm(), t.rank->device, t.from->memory, w.bytes, &identity, err,
                         sizeof err) != MSCCLSH_OK)
      identity = 0;
    t.rank->calls->windows.add({reinterpret_cast<uintptr_t>(t.from->memory), w.bytes, *t.from->at,
                                t.number, w.window, identity});
    log_setup(format("rank %d: window %d of %lld bytes", t.rank->rank, t.number,
                     static_cast<long long>(w.bytes)));
  }
}

}  // namespace mscclsh::nccl
