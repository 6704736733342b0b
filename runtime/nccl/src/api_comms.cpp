// Communicators, their errors, and memory that they register.
#include "api.h"
#include "log.h"

namespace mscclsh::nccl {

namespace {

bool good(ncclResult_t r) { return r == ncclSuccess || r == ncclInProgress; }

// created is for communicators that NCCL has made, or will have when the group ends.
ncclResult_t created(ncclResult_t result, const std::vector<Created> &all) {
  if (!good(result) || passing()) return result;
  if (!group().open()) {
    const ncclResult_t set_up = made(all, result == ncclInProgress);
    return set_up != ncclSuccess ? set_up : result;
  }
  for (const Created &c : all) group().add(c);
  return result;
}

// config_of_child is that of a communicator made from another one, which inherits what its
// parent has only where no configuration is given at all.
Config config_of_child(ncclComm_t parent, const ncclConfig_t *config) {
  const Rank *const r = parent == nullptr ? nullptr : find(parent);
  return config_of(config, config != nullptr || r == nullptr ? default_config() : r->config);
}

// stop ends what a rank of ours does, before NCCL does the same to its part.
void stop(Rank *rank) {
  rank->abandoned = true;
  if (rank->ready()) rank->engine->abort();
  if (rank->setting_up.joinable()) rank->setting_up.join();
}

}  // namespace

}  // namespace mscclsh::nccl

using namespace mscclsh::nccl;
using mscclsh::inside_real;
using mscclsh::real;

MSCCLSH_EXPORT ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id,
                                             int rank) {
  return guarded([&] {
    return created(real().CommInitRank(comm, ranks, id, rank), {{comm, default_config(), nullptr}});
  });
}
MSCCLSH_P(CommInitRank);

MSCCLSH_EXPORT ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id,
                                                   int rank, ncclConfig_t *config) {
  return guarded([&] {
    const Config c = config_of(config, default_config());
    return created(real().CommInitRankConfig(comm, ranks, id, rank, config), {{comm, c, nullptr}});
  });
}
MSCCLSH_P(CommInitRankConfig);

MSCCLSH_EXPORT ncclResult_t ncclCommInitRankScalable(ncclComm_t *comm, int ranks, int rank, int n,
                                                     ncclUniqueId *ids, ncclConfig_t *config) {
  return guarded([&] {
    const Config c = config_of(config, default_config());
    return created(real().CommInitRankScalable(comm, ranks, rank, n, ids, config),
                   {{comm, c, nullptr}});
  });
}
MSCCLSH_P(CommInitRankScalable);

MSCCLSH_EXPORT ncclResult_t ncclCommInitAll(ncclComm_t *comms, int n, const int *devices) {
  return guarded([&] {
    const ncclResult_t result = real().CommInitAll(comms, n, devices);
    std::vector<Created> all;
    for (int i = 0; good(result) && i < n; i++)
      all.push_back({&comms[i], default_config(), nullptr});
    return created(result, all);
  });
}
MSCCLSH_P(CommInitAll);

MSCCLSH_EXPORT ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *child,
                                          ncclConfig_t *config) {
  return guarded([&] {
    const Config c = config_of_child(comm, config);
    if (child != nullptr) *child = nullptr;
    return created(real().CommSplit(comm, color, key, child, config), {{child, c, comm}});
  });
}
MSCCLSH_P(CommSplit);

MSCCLSH_EXPORT ncclResult_t ncclCommShrink(ncclComm_t comm, int *excluded, int n, ncclComm_t *child,
                                           ncclConfig_t *config, int flags) {
  return guarded([&] {
    const Config c = config_of_child(comm, config);
    Rank *const parent = passing() ? nullptr : find(comm);
    if (parent != nullptr && (flags & NCCL_SHRINK_ABORT) != 0) {
      stop(parent);
      parent->phase = Phase::kOff;
    }
    if (child != nullptr) *child = nullptr;
    return created(real().CommShrink(comm, excluded, n, child, config, flags), {{child, c, comm}});
  });
}
MSCCLSH_P(CommShrink);

MSCCLSH_EXPORT ncclResult_t ncclCommGrow(ncclComm_t comm, int ranks, const ncclUniqueId *id,
                                         int rank, ncclComm_t *grown, ncclConfig_t *config) {
  return guarded([&] {
    const Config c = config_of_child(comm, config);
    return created(real().CommGrow(comm, ranks, id, rank, grown, config), {{grown, c, nullptr}});
  });
}
MSCCLSH_P(CommGrow);

MSCCLSH_EXPORT ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  return guarded([&] {
    Rank *const rank = passing() ? nullptr : find(comm);
    if (rank != nullptr) {
      hasten(rank);
      if (rank->config.blocking) rank->wait();
      rank->finalized = true;
    }
    return real().CommFinalize(comm);
  });
}
MSCCLSH_P(CommFinalize);

MSCCLSH_EXPORT ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  return guarded([&] {
    // It is forgotten first: NCCL may give another communicator the same address at once.
    const std::unique_ptr<Rank> rank = passing() ? nullptr : take(comm);
    if (rank != nullptr) {
      if (rank->phase == Phase::kSettingUp) rank->abandoned = true;
      hasten(rank.get());
      rank->finish(false);
    }
    return real().CommDestroy(comm);
  });
}
MSCCLSH_P(CommDestroy);

MSCCLSH_EXPORT ncclResult_t ncclCommAbort(ncclComm_t comm) {
  return guarded([&] {
    std::unique_ptr<Rank> rank = passing() ? nullptr : take(comm);
    if (rank != nullptr) stop(rank.get());
    const ncclResult_t result = real().CommAbort(comm);
    if (rank != nullptr) {
      bury(std::move(rank));
    }
    return result;
  });
}
MSCCLSH_P(CommAbort);

MSCCLSH_EXPORT ncclResult_t ncclCommRevoke(ncclComm_t comm, int flags) {
  return guarded([&] {
    Rank *const rank = passing() ? nullptr : find(comm);
    if (rank != nullptr) {
      stop(rank);
      rank->phase = Phase::kOff;
    }
    return real().CommRevoke(comm, flags);
  });
}
MSCCLSH_P(CommRevoke);

MSCCLSH_EXPORT ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *result) {
  return guarded([&] {
    Rank *const rank = passing() || result == nullptr ? nullptr : find(comm);
    if (rank != nullptr && rank->phase == Phase::kSettingUp) {
      *result = ncclInProgress;
      return ncclSuccess;
    }
    if (rank != nullptr && rank->unanswered()) {
      *result = rank->broken;
      return ncclSuccess;
    }
    const ncclResult_t r = real().CommGetAsyncError(comm, result);
    if (rank == nullptr || r != ncclSuccess || *result != ncclSuccess) return r;
    *result = catch_up(rank);
    if (!rank->ready() || !good(*result)) return r;
    if (rank->broken != ncclSuccess) {
      *result = rank->broken;
      return r;
    }
    std::string why;
    const int32_t code = rank->engine->poll(&why);
    if (code != MSCCLSH_OK) {
      rank->fail(why);
      *result = result_of(code);
    }
    return r;
  });
}
MSCCLSH_P(CommGetAsyncError);

MSCCLSH_EXPORT const char *ncclGetLastError(ncclComm_t comm) {
  if (passing()) return real().GetLastError(comm);
  Rank *const rank = find(comm);
  if (rank != nullptr && rank->error()[0] != 0) return rank->error();
  if (comm == nullptr && !last_error().empty()) return last_error().c_str();
  return real().GetLastError(comm);
}
MSCCLSH_P(GetLastError);

MSCCLSH_EXPORT ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *memory, size_t bytes,
                                                   ncclWindow_t *window, int flags) {
  return guarded([&] {
    const ncclResult_t result = real().CommWindowRegister(comm, memory, bytes, window, flags);
    if (!good(result) || passing() || (flags & NCCL_WIN_COLL_SYMMETRIC) == 0) return result;
    const Registered r = {comm, memory, int64_t(bytes), window};
    if (group().open())
      group().add(r);
    else
      registered({r});
    return result;
  });
}
MSCCLSH_P(CommWindowRegister);

MSCCLSH_EXPORT ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) {
  return guarded([&] {
    Rank *const rank = passing() ? nullptr : find(comm);
    if (rank != nullptr && rank->ready()) rank->calls->forget(window);
    return real().CommWindowDeregister(comm, window);
  });
}
MSCCLSH_P(CommWindowDeregister);

MSCCLSH_EXPORT ncclResult_t ncclMemAlloc(void **memory, size_t bytes) {
  return guarded([&] {
    const ncclResult_t result = real().MemAlloc(memory, bytes);
    if (result == ncclSuccess && !passing()) note_allocated(*memory, bytes);
    return result;
  });
}
MSCCLSH_P(MemAlloc);

MSCCLSH_EXPORT ncclResult_t ncclMemFree(void *memory) {
  return guarded([&] {
    if (!passing()) note_freed(memory);
    return real().MemFree(memory);
  });
}
MSCCLSH_P(MemFree);
