// The stub's functions that make communicators, ask them and end them.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "calls.h"
#include "group.h"

using namespace stub;

namespace {

struct Head {  // of every ncclConfig_t, whatever its version
  size_t size;
  unsigned int magic, version;
  int blocking;
};

bool blocking(const ncclConfig_t *config, bool otherwise) {
  if (config == nullptr) return otherwise;
  Head head;
  std::memcpy(&head, config, sizeof head);
  return head.blocking == NCCL_CONFIG_UNDEF_INT || head.blocking != 0;
}

bool valid(const ncclConfig_t *config) {
  return config == nullptr || reinterpret_cast<const Head *>(config)->magic == 0xcafebeef;
}

// make carries out a creation: at once, or on a thread of its own.
ncclResult_t make(ncclComm *c, const std::function<void()> &f) {
  if (c->blocking) {
    f();
    return c->state;
  }
  c->maker = std::thread(f);
  return ncclInProgress;
}

ncclResult_t init(ncclComm_t *comm, int ranks, const ncclUniqueId &id, int rank,
                  const ncclConfig_t *config) {
  if (!valid(config)) return fail(ncclInvalidArgument, "the configuration was not initialized");
  if (ranks < 1 || rank < 0 || rank >= ranks || id.internal[0] == 0)
    return fail(ncclInvalidArgument, "no such rank, or no identifier");
  ncclComm *c = take();
  c->ranks = ranks;
  c->rank = rank;
  c->device = device >= 0 ? device : rank;
  c->blocking = blocking(config, true);
  c->name = id.internal;
  *comm = c;
  return create(c->blocking, [c] { return make(c, [c] { enter(c); }); });
}

bool ready(const ncclComm *comm) {
  if (!live(comm)) {
    misuse(ncclInvalidArgument, "a communicator is used that is no more");
    return false;
  }
  if (comm->state == ncclInProgress) {
    misuse(ncclInvalidArgument, "a communicator is used before it is made");
    return false;
  }
  return true;
}

// Wish is what one rank says in a split.
struct Wish {
  int32_t color, key, rank, device;
};

ncclComm *child_of(ncclComm *parent, const ncclConfig_t *config) {
  ncclComm *c = take();
  c->blocking = blocking(config, parent->blocking);
  c->device = parent->device;
  return c;
}

// create_child carries a creation out as NCCL does: the parent is what blocks or not, and
// the child is told of when it is complete.
ncclResult_t create_child(ncclComm *parent, ncclComm *child, ncclComm_t *made,
                          const std::function<void()> &f) {
  const auto work = [=] {
    f();
    *made = child;
  };
  return create(parent->blocking, [=] {
    if (!parent->blocking) return behind(parent, false, work);
    work();
    return child == nullptr ? ncclSuccess : ncclResult_t(child->state);
  });
}

// split_now finds out who is in the child, and enters it.
void split_now(ncclComm *parent, ncclComm *child, Wish mine, int nth) {
  std::vector<Wish> all = all_tell(parent, mine);
  std::vector<Wish> in;
  for (const Wish &w : all)
    if (w.color == mine.color) in.push_back(w);
  if (child == nullptr) return;
  std::stable_sort(in.begin(), in.end(),
                   [](const Wish &a, const Wish &b) { return a.key < b.key; });
  child->ranks = int(in.size());
  for (size_t i = 0; i < in.size(); i++)
    if (in[i].rank == mine.rank) child->rank = int(i);
  child->name = parent->name + "-" + std::to_string(nth) + "." + std::to_string(mine.color);
  enter(child);
}

}  // namespace

STUB_API ncclResult_t ncclGetVersion(int *version) {
  STUB_CALL("ncclGetVersion");
  *version = NCCL_VERSION(2, 28, 9);
  return ncclSuccess;
}
STUB_P(GetVersion);

STUB_API ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  STUB_CALL("ncclGetUniqueId");
  static std::atomic<int> made{0};
  std::memset(id, 0, sizeof *id);
  std::snprintf(id->internal, sizeof id->internal, "%d-%lld-%d", int(getpid()),
                static_cast<long long>(now_ms()), made++);
  return ncclSuccess;
}
STUB_P(GetUniqueId);

STUB_API ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                             ncclConfig_t *config) {
  STUB_CALL("ncclCommInitRankConfig");
  return init(comm, ranks, id, rank, config);
}
STUB_P(CommInitRankConfig);

STUB_API ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank) {
  STUB_CALL("ncclCommInitRank");
  return init(comm, ranks, id, rank, nullptr);
}
STUB_P(CommInitRank);

STUB_API ncclResult_t ncclCommInitRankScalable(ncclComm_t *comm, int ranks, int rank, int ids,
                                               ncclUniqueId *id, ncclConfig_t *config) {
  STUB_CALL("ncclCommInitRankScalable");
  if (ids < 1 || ids > ranks) return fail(ncclInvalidArgument, "so many identifiers");
  return init(comm, ranks, id[0], rank, config);
}
STUB_P(CommInitRankScalable);

// As NCCL's does, it calls exported functions, which may be others of the same names.
STUB_API ncclResult_t ncclCommInitAll(ncclComm_t *comms, int n, const int *devices) {
  STUB_CALL("ncclCommInitAll");
  ncclUniqueId id;
  if (const ncclResult_t r = ncclGetUniqueId(&id); r != ncclSuccess) return r;
  const int before = device;
  start();
  ncclResult_t result = ncclSuccess;
  for (int i = 0; i < n && result == ncclSuccess; i++) {
    device = devices != nullptr ? devices[i] : i;
    result = init(&comms[i], n, id, i, nullptr);
  }
  device = before;
  const ncclResult_t ended = end(result == ncclSuccess);
  return result != ncclSuccess ? result : ended;
}
STUB_P(CommInitAll);

STUB_API ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *made,
                                    ncclConfig_t *config) {
  STUB_CALL("ncclCommSplit");
  *made = nullptr;
  if (!ready(comm) || !valid(config)) return ncclInvalidArgument;
  ncclComm *child = color == NCCL_SPLIT_NOCOLOR ? nullptr : child_of(comm, config);
  const Wish mine = {color, key, comm->rank, comm->device};
  const int nth = comm->children++;
  const uint64_t turn = comm->take_turn();
  return create_child(comm, child, made,
                      [=] { comm->in_turn(turn, [&] { split_now(comm, child, mine, nth); }); });
}
STUB_P(CommSplit);

STUB_API ncclResult_t ncclCommShrink(ncclComm_t comm, int *excluded, int n, ncclComm_t *made,
                                     ncclConfig_t *config, int) {
  STUB_CALL("ncclCommShrink");
  *made = nullptr;
  if (!ready(comm) || !valid(config) || n < 1) return ncclInvalidArgument;
  const auto out = [&](int rank) { return std::count(excluded, excluded + n, rank) != 0; };
  if (out(comm->rank)) return fail(ncclInvalidArgument, "a rank shrinks that is left out");
  ncclComm *child = child_of(comm, config);
  for (int r = 0; r < comm->ranks; r++) {
    if (out(r)) continue;
    if (r == comm->rank) child->rank = child->ranks;
    child->ranks++;
  }
  child->name = comm->name + "-" + std::to_string(comm->children++) + ".less";
  return create_child(comm, child, made, [child] { enter(child); });
}
STUB_P(CommShrink);

STUB_API ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  STUB_CALL("ncclCommFinalize");
  if (!ready(comm)) return ncclInvalidArgument;
  comm->settle();
  comm->finalized = true;
  return ncclSuccess;
}
STUB_P(CommFinalize);

STUB_API ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  STUB_CALL("ncclCommDestroy");
  if (comm == nullptr) return ncclSuccess;
  if (!ready(comm)) return ncclInvalidArgument;
  comm->settle();
  give(comm);
  return ncclSuccess;
}
STUB_P(CommDestroy);

STUB_API ncclResult_t ncclCommAbort(ncclComm_t comm) {
  STUB_CALL("ncclCommAbort");
  if (comm == nullptr) return ncclSuccess;
  if (!live(comm)) return misuse(ncclInvalidArgument, "a communicator is aborted that is no more");
  comm->stop = true;
  if (comm->maker.joinable()) comm->maker.join();
  comm->settle();
  give(comm);
  return ncclSuccess;
}
STUB_P(CommAbort);

STUB_API ncclResult_t ncclCommRevoke(ncclComm_t comm, int) {
  STUB_CALL("ncclCommRevoke");
  if (!ready(comm)) return ncclInvalidArgument;
  comm->stop = true;
  comm->settle();
  comm->stop = false;
  return ncclSuccess;
}
STUB_P(CommRevoke);

STUB_API ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) {
  STUB_CALL("ncclCommGetAsyncError");
  if (!live(comm)) return misuse(ncclInvalidArgument, "a communicator is asked that is no more");
  *error = comm->state;
  return ncclSuccess;
}
STUB_P(CommGetAsyncError);

#define STUB_QUESTION(name, field)                                   \
  STUB_API ncclResult_t nccl##name(const ncclComm_t comm, int *to) { \
    STUB_CALL("nccl" #name);                                         \
    if (!ready(comm)) return ncclInvalidArgument;                    \
    *to = comm->field;                                               \
    return ncclSuccess;                                              \
  }                                                                  \
  STUB_P(name)
STUB_QUESTION(CommCount, ranks);
STUB_QUESTION(CommCuDevice, device);
STUB_QUESTION(CommUserRank, rank);
