#include "together.h"

#include <algorithm>
#include <map>
#include <utility>

#include "failure.h"
#include "gpu.h"
#include "log.h"
#include "options.h"

namespace mscclsh::nccl {

namespace {

// whole says whether a call is one that NCCL would carry out as well. What it would refuse
// goes to it, to be refused in its words.
bool whole(const Rank &rank, const Request &r) {
  if (r.root < 0 || r.root >= rank.ranks) return false;
  const Buffers b = {r.collective, rank.rank, rank.ranks, r.root, 1, r.send, r.recv};
  return (b.send_bytes() == 0 || r.send != nullptr) && (b.recv_bytes() == 0 || r.recv != nullptr);
}

bool same(const Request &a, const Request &b) {
  return a.collective == b.collective && a.count == b.count && a.dtype == b.dtype && a.op == b.op &&
         a.root == b.root;
}

// Set is the calls of one number of all ranks of a communicator.
struct Set {
  std::vector<Rank *> ranks;
  std::vector<Request> requests;  // [ranks]
};

// in_windows is whether the call of some rank has a program by its windows already.
bool in_windows(const Set &s) {
  for (size_t r = 0; r < s.ranks.size(); r++) {
    const int32_t entry = s.ranks[r]->calls->choose(s.requests[r]);
    if (entry >= 0 && s.ranks[r]->engine->table.entry(entry).memory == MSCCLSH_WINDOWS) return true;
  }
  return false;
}

// worth is whether it pays to look at the buffers of all. In a graph that is done once.
bool worth(const Set &s) {
  const Request &r = s.requests[0];
  return call_bytes(r.collective, r.count, r.dtype, int32_t(s.ranks.size())) >=
             options().group_direct ||
         captures(r.stream);
}

// decide_set is all -1 and null where the calls are each rank's own.
Decided decide_set(const Set &s) {
  for (size_t r = 0; r < s.ranks.size(); r++)
    if (!whole(*s.ranks[r], s.requests[r]) || !same(s.requests[r], s.requests[0])) return {};
  if (in_windows(s) || !worth(s)) return {};
  All all;
  for (size_t r = 0; r < s.ranks.size(); r++) {
    all.buffers.push_back(const_cast<void *>(s.requests[r].send));
    all.buffers.push_back(s.requests[r].recv);
  }
  int32_t entry = -1;
  try {
    for (size_t r = 0; r < s.ranks.size(); r++) {
      const OnDevice on(s.ranks[r]->device);
      s.ranks[r]->calls->identify(s.requests[r], &all.identities);
    }
    for (size_t r = 0; r < s.ranks.size(); r++) {
      const OnDevice on(s.ranks[r]->device);
      entry = s.ranks[r]->calls->choose_all(s.requests);
      if (entry < 0) return {};
      s.ranks[r]->calls->prepare(s.requests[r], entry, &all);
    }
  } catch (const Failure &f) {  // memory that some device does not reach, say
    log_setup(std::string("calls of one group are not served together: ") + f.what());
    return {};
  }
  return {entry, std::make_shared<const All>(std::move(all))};
}

}  // namespace

int32_t entry_of(Rank *rank, const Request &r) {
  int32_t entry = -1;
  if (rank->engine->serves(r.collective) || options().log_choice)
    entry = whole(*rank, r) ? rank->calls->choose(r) : -1;
  if (options().stats) (entry < 0 ? stats().left : stats().ours)[r.collective]++;
  return entry;
}

namespace {

// Numbered is the calls of one communicator in a group: by their numbers, indexes of those of
// the ranks.
struct Numbered {
  std::map<uint64_t, std::vector<size_t>> of;
  bool messages = false;

  bool whole(const Engine &e) const {
    const size_t ranks = e.layout.process_of.size();
    return !messages && !e.apart && std::all_of(of.begin(), of.end(), [&](const auto &n) {
      return n.second.size() == ranks;
    });
  }
};

Rank *ready_rank(ncclComm_t comm) {
  Rank *const rank = find(comm);
  return rank != nullptr && rank->ready() ? rank : nullptr;
}

}  // namespace

std::vector<Decided> decide(const std::vector<Held> &held, const std::vector<ncclComm_t> &others) {
  std::map<const Engine *, Numbered> comms;
  std::vector<Rank *> ranks;
  for (size_t i = 0; i < held.size(); i++) {
    ranks.push_back(ready_rank(held[i].comm));
    if (ranks[i] != nullptr) comms[ranks[i]->engine.get()].of[held[i].number].push_back(i);
  }
  for (const ncclComm_t c : others)
    if (const Rank *const rank = ready_rank(c)) comms[rank->engine.get()].messages = true;
  std::vector<Decided> all(held.size());
  for (size_t i = 0; i < held.size(); i++) {
    if (ranks[i] == nullptr) continue;
    const Engine &engine = *ranks[i]->engine;
    const Numbered &calls = comms[&engine];
    const std::vector<size_t> &members = calls.of.at(held[i].number);
    if (members[0] == i && calls.whole(engine)) {
      Set s{std::vector<Rank *>(members.size()), std::vector<Request>(members.size())};
      for (const size_t m : members) {
        s.ranks[size_t(ranks[m]->rank)] = ranks[m];
        s.requests[size_t(ranks[m]->rank)] = held[m].request;
      }
      const Decided d = decide_set(s);
      for (const size_t m : members) all[m] = d;
    }
    if (all[i].all == nullptr)
      all[i].entry = entry_of(ranks[i], held[i].request);
    else if (options().stats)
      stats().ours[held[i].request.collective]++;
  }
  return all;
}

}  // namespace mscclsh::nccl
