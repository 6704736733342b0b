#include "group.h"

#include <algorithm>

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

ncclResult_t launch(Rank *rank, const Request &r, int32_t entry) try {
  rank->launched = true;
  const OnDevice on(rank->device);
  rank->calls->launch(r, entry);
  return ncclSuccess;
} catch (const Failure &f) {
  const std::string sentence =
      format("rank %d: %s: ", rank->rank, collective_name(r.collective)) + f.what();
  rank->fail(sentence);
  log_setup(sentence);
  return result_of(f.code);
} catch (const std::exception &e) {
  rank->fail(std::string(collective_name(r.collective)) + ": " + e.what());
  return ncclSystemError;
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
    add(rank, r, entry);
  }
}

ncclResult_t Group::launch_all() {
  const std::vector<Call> calls = std::move(calls_);
  calls_.clear();
  ncclResult_t result = ncclSuccess;
  for (const Call &c : calls) {
    Rank *const rank = find(c.comm);  // it may have been aborted since
    const ncclResult_t r =
        rank == nullptr || !rank->ready() ? ncclInvalidUsage : launch(rank, c.request, c.entry);
    if (result == ncclSuccess) result = r;
  }
  return result;
}

ncclResult_t Group::end() {
  if (depth_ != 1) {
    const ncclResult_t r = real().GroupEnd();
    if (depth_ > 0) depth_--;
    return r;
  }
  pass_messages();
  depth_ = 0;
  const ncclResult_t r = real().GroupEnd();
  if (r != ncclSuccess && r != ncclInProgress) {
    clear();
    return r;
  }
  const std::vector<Created> created = std::move(created_);
  const std::vector<Registered> windows = std::move(registered_);
  created_.clear();
  registered_.clear();
  made(created);
  registered(windows);
  const ncclResult_t ours = launch_all();
  return ours != ncclSuccess ? ours : r;
}

// simulate ends a group of which nothing is carried out.
ncclResult_t Group::simulate(ncclSimInfo_t *info) {
  if (depth_ == 1) {
    pass(messages_);
    clear();
  }
  const ncclResult_t r = real().GroupSimulateEnd(info);
  if (depth_ > 0) depth_--;
  return r;
}

void made(const std::vector<Created> &created) {
  std::vector<Rank *> now;
  for (const Created &c : created) {
    if (c.at == nullptr || *c.at == nullptr) continue;
    Rank *const rank = new Rank(*c.at, c.config);
    add(rank);
    if (c.config.blocking)
      now.push_back(rank);
    else  // nobody waits for it here: ncclCommGetAsyncError says when it is done
      rank->setting_up = std::thread([rank] { set_up({rank}); });
  }
  if (!now.empty()) set_up(now);
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
    std::lock_guard<std::mutex> lock(engine.mu);
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
