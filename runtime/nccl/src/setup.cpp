#include "setup.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>

#include "embedded.h"
#include "failure.h"
#include "gpu.h"
#include "log.h"
#include "options.h"
#include "parcel.h"
#include "watch.h"

namespace mscclsh::nccl {

namespace {

constexpr int32_t kLeastRanks = 2, kMostRanks = kMaxProcesses;

uint64_t random_number() {
  uint64_t v = 0;
  if (getrandom(&v, sizeof v, 0) != ssize_t(sizeof v))
    v = mix(uint64_t(getpid()),
            uint64_t(std::chrono::steady_clock::now().time_since_epoch().count()));
  return v;
}

// process_nonce is another one in a child of the process.
uint64_t process_nonce() {
  static std::mutex mu;
  static pid_t of = 0;
  static uint64_t nonce = 0;
  std::lock_guard<std::mutex> lock(mu);
  if (of != getpid()) {
    of = getpid();
    nonce = random_number();
  }
  return nonce;
}

// host_number is the machine's, until it is started anew, and that of the processes that
// see each other on it.
uint64_t host_number() {
  char boot[64] = "", pids[64] = "";
  if (FILE *f = std::fopen("/proc/sys/kernel/random/boot_id", "re")) {
    if (std::fgets(boot, sizeof boot, f) == nullptr) boot[0] = 0;
    std::fclose(f);
  }
  const ssize_t n = readlink("/proc/self/ns/pid", pids, sizeof pids - 1);
  return mix_bytes(mix_bytes(kDigest, boot, sizeof boot), pids, n > 0 ? uint64_t(n) : 0);
}

// Joining is one rank on its way.
struct Joining {
  Rank *rank;
  Hello hello;
  std::vector<Hello> all;
  Verdict verdict;
  std::unique_ptr<BoardFile> file;

  uint64_t key() const { return all[0].nonce; }
};

// off leaves a rank's calls to NCCL.
void off(Rank *rank, const std::string &why, bool loud) {
  rank->phase.store(Phase::kOff, std::memory_order_release);
  const std::string line =
      format("a communicator of %d ranks is left to NCCL: ", rank->ranks) + why;
  if (loud && rank->rank == 0) {
    static std::mutex mu;
    static std::set<std::string> &said = *new std::set<std::string>;
    std::lock_guard<std::mutex> lock(mu);
    if (said.insert(line).second) return say(line);
  }
  log_setup(format("rank %d: ", rank->rank) + line);
}

// end is for a rank that could not be set up. Where others did not answer, NCCL's communicator
// is of no use either, as it is still at work on the question.
void end(Rank *rank, const Failure &f) {
  if (f.code != MSCCLSH_ESTUCK) return off(rank, f.what(), true);
  rank->fail(f.what());
  rank->broken = ncclRemoteError;
  rank->phase.store(Phase::kOff, std::memory_order_release);
  say(f.what());
}

// Gather is one gather of a number of bytes of each rank, over NCCL.
class Gather {
 public:
  Gather(Rank *rank, const void *mine, void *all, size_t bytes)
      : rank_(rank), all_(all), bytes_(bytes) {
    const OnDevice on(rank_->device);
    parcel_ = take_parcel(rank_->device);
    std::memcpy(parcel_->host, mine, bytes_);
    parcel_->stream.send(parcel_->memory, parcel_->host, bytes_);
  }
  ncclResult_t enqueue() {
    const OnDevice on(rank_->device);
    return real().AllGather(parcel_->memory, parcel_->memory + bytes_, bytes_, ncclInt8,
                            rank_->comm, parcel_->stream.stream());
  }
  void settle(const Watch &watch) {
    wait(watch, [&] { return arrived(watch); });
    const OnDevice on(rank_->device);
    const size_t n = bytes_ * size_t(rank_->ranks);
    parcel_->stream.fetch(parcel_->host + bytes_, parcel_->memory + bytes_, n);
    int turn = 0;
    wait(watch, [&] {
      if (++turn % 256 == 0) arrived(watch);
      return parcel_->stream.done();
    });
    std::memcpy(all_, parcel_->host + bytes_, n);
    give_parcel(std::move(parcel_));
  }
  ~Gather() {
    // What NCCL may still be at work on stays: waiting for it here could take for ever.
    static_cast<void>(parcel_.release());
  }

 private:
  // arrived is whether NCCL has enqueued what it was given, and fails when it can't.
  bool arrived(const Watch &watch) const {
    ncclResult_t state = ncclSuccess;
    const ncclResult_t asked =
        watch.ask([&] { return real().CommGetAsyncError(rank_->comm, &state); });
    if (asked != ncclSuccess || (state != ncclSuccess && state != ncclInProgress))
      throw Failure(MSCCLSH_EPEER, "NCCL failed to carry a first message between the ranks");
    return state == ncclSuccess;
  }

  template <class F>
  void wait(const Watch &watch, F done) {
    for (int turn = 0; !done(); turn++) {
      watch.check();
      if (rank_->abandoned) throw Failure(MSCCLSH_EDEAD, "the communicator was aborted");
      std::this_thread::sleep_for(std::chrono::microseconds(turn < 1000 ? 20 : 500));
    }
  }

  Rank *const rank_;
  void *const all_;
  const size_t bytes_;
  std::unique_ptr<Parcel> parcel_;
};

// gather is an allgather of a T of each rank, on all the communicators at once: ranks of one
// thread wait for each other otherwise.
template <class T>
void gather(const std::vector<Joining *> &joining, const std::vector<T> &mine,
            std::vector<std::vector<T>> *all) {
  static_assert(sizeof(T) * size_t(kMostRanks + 1) <= kParcelBytes, "a parcel's room");
  std::vector<Rank *> ranks;
  for (Joining *j : joining) ranks.push_back(j->rank);
  Watch watch(std::move(ranks));
  std::vector<std::unique_ptr<Gather>> gathers;
  all->resize(joining.size());
  for (size_t i = 0; i < joining.size(); i++) {
    (*all)[i].resize(size_t(joining[i]->rank->ranks));
    gathers.emplace_back(new Gather(joining[i]->rank, &mine[i], (*all)[i].data(), sizeof(T)));
  }
  const bool group = joining.size() > 1;
  ncclResult_t result = group ? real().GroupStart() : ncclSuccess;
  for (auto &g : gathers) {
    const ncclResult_t r = g->enqueue();
    if (result == ncclSuccess && r != ncclInProgress) result = r;
  }
  if (group) {
    const ncclResult_t r = real().GroupEnd();
    if (result == ncclSuccess && r != ncclInProgress) result = r;
  }
  watch.check();
  if (result != ncclSuccess)
    throw Failure(MSCCLSH_EPEER,
                  std::string("NCCL failed to carry a first message between the ranks: ") +
                      real().GetErrorString(result));
  for (auto &g : gathers) g->settle(watch);
  watch.finish();
}

}  // namespace

const Table *process_table(const std::string **why) {
  struct Loaded {
    std::unique_ptr<Table> table;
    std::string why;
  };
  static const Loaded &loaded = *[] {
    Loaded *l = new Loaded;
    const size_t own = size_t(mscclsh_nccl_table_end - mscclsh_nccl_table);
    if (!options().wrong.empty())
      l->why = options().wrong;
    else if (!options().table.empty())
      l->table = Table::open(options().table, &l->why);
    else if (own > 0)
      l->table = Table::over(mscclsh_nccl_table, own, "of the library itself", &l->why);
    return l;
  }();
  *why = &loaded.why;
  return loaded.table.get();
}

namespace {

Hello hello_of(Rank *rank, BoardFile *board) {
  Hello h = {};
  h.magic = kMagic;
  h.process = process_nonce();
  h.host = host_number();
  const std::string *why;
  const Table *table = process_table(&why);
  h.table = table == nullptr ? 0 : table->digest();
  h.options = options().digest();
  h.build = mix_bytes(kDigest, mscclsh_build(), std::strlen(mscclsh_build()));
  h.abi = mscclsh_abi();
  h.pid = int32_t(getpid());
  h.board = board == nullptr ? -1 : board->fd();
  h.device = rank->device;
  h.max_ctas = rank->config.max_ctas;
  h.blocking = rank->config.blocking;
  h.failed = !why->empty();
  if (h.failed) log_setup(*why);
  try {
    const DeviceFacts f = device_facts(rank->device);
    h.gpu = f.identity;
    h.multiprocessors = f.multiprocessors;
    h.major = f.major;
    h.minor = f.minor;
  } catch (const Failure &f) {
    h.failed = 1;
    log_setup(f.what());
  }
  return h;
}

// exchange_hellos lets all ranks know all, and judges.
void exchange_hellos(const std::vector<Joining *> &joining) {
  std::vector<Hello> mine;
  for (Joining *j : joining) {
    const uint64_t nonce = random_number();
    if (j->rank->rank == 0) {
      try {
        j->file.reset(new BoardFile(nonce));
      } catch (const Failure &f) {
        log_setup(f.what());
      }
    }
    j->hello = hello_of(j->rank, j->file.get());
    j->hello.nonce = nonce;
    mine.push_back(j->hello);
  }
  std::vector<std::vector<Hello>> all;
  gather(joining, mine, &all);
  const std::string *why;
  const Table *table = process_table(&why);
  for (size_t i = 0; i < joining.size(); i++) {
    joining[i]->all = all[i];
    joining[i]->verdict = judge(all[i], joining[i]->rank->rank, table);
    if (mine[i].failed && !why->empty()) joining[i]->verdict.why = *why;
  }
}

// open_boards opens what rank 0 offers, and lets all ranks know who could.
void open_boards(const std::vector<Joining *> &joining) {
  std::vector<uint64_t> mine;
  for (Joining *j : joining) {
    const Hello &first = j->all[0];
    try {
      if (j->rank->rank != 0) j->file.reset(new BoardFile(first.pid, first.board, first.nonce));
    } catch (const Failure &f) {
      log_setup(format("rank %d: ", j->rank->rank) + f.what());
    }
    mine.push_back(j->file != nullptr);
  }
  std::vector<std::vector<uint64_t>> all;
  gather(joining, mine, &all);
  for (size_t i = 0; i < joining.size(); i++) {
    Verdict &v = joining[i]->verdict;
    const auto bad = std::find(all[i].begin(), all[i].end(), 0u);
    if (bad == all[i].end()) continue;
    v.together = false;
    v.why = format("rank %d could not open memory of rank 0's process", int(bad - all[i].begin()));
  }
}

// Meeting is where the ranks of one process come together. The last one makes the engine's
// communicator for all.
struct Meeting {
  std::mutex mu;
  std::condition_variable changed;
  size_t arrived = 0;
  bool done = false;
  std::shared_ptr<Engine> engine;
  std::string why;
};

struct Meetings {
  std::mutex mu;
  std::map<uint64_t, std::shared_ptr<Meeting>> open;

  std::shared_ptr<Meeting> at(uint64_t key) {
    std::lock_guard<std::mutex> lock(mu);
    std::shared_ptr<Meeting> &m = open[key];
    if (m == nullptr) m.reset(new Meeting);
    return m;
  }
  void close(uint64_t key) {
    std::lock_guard<std::mutex> lock(mu);
    open.erase(key);
  }
};
Meetings &meetings() {
  static Meetings &all = *new Meetings;
  return all;
}

void build(Joining *j, Meeting *m) {
  const std::string *why;
  try {
    m->engine.reset(new Engine(*process_table(&why), j->verdict.layout, std::move(j->file)));
  } catch (const std::exception &e) {
    m->why = e.what();
  }
}

// meet brings the ranks of one communicator that this thread has to their meeting.
void meet(const std::vector<Joining *> &ranks) {
  Joining *const first = ranks[0];
  const std::shared_ptr<Meeting> m = meetings().at(first->key());
  std::unique_lock<std::mutex> lock(m->mu);
  m->arrived += ranks.size();
  if (m->arrived == first->verdict.layout.local.size()) {
    build(first, m.get());
    m->done = true;
    meetings().close(first->key());
    m->changed.notify_all();
  }
  while (!m->done) {
    m->changed.wait_for(lock, std::chrono::milliseconds(20));
    if (!m->done && first->rank->abandoned) m->why = "the communicator was aborted";
    if (first->rank->abandoned) break;
  }
  for (Joining *j : ranks) {
    Rank *const r = j->rank;
    if (!m->done || m->engine == nullptr) {
      off(r, m->why, true);
      continue;
    }
    if (r->rank == 0)
      for (const std::string &refusal : m->engine->refusals()) log_setup("not loaded: " + refusal);
    r->engine = m->engine;
    r->calls.reset(new Calls(m->engine, r->rank, r->device, j->verdict.max_ctas));
    r->opens_windows = j->verdict.blocking && m->engine->serves_windows();
    log_setup(format("rank %d of %d: device %d, process %d of %zu, table %016llx", r->rank,
                     r->ranks, r->device, m->engine->layout.self, m->engine->layout.pids.size(),
                     static_cast<unsigned long long>(m->engine->table.digest())));
    r->phase.store(Phase::kReady, std::memory_order_release);
  }
}

// identify asks NCCL who a rank is; false if there is nothing to set up.
bool identify(Rank *r) {
  int ranks = 0, rank = 0, device = 0;
  if (real().CommCount(r->comm, &ranks) != ncclSuccess ||
      real().CommUserRank(r->comm, &rank) != ncclSuccess ||
      real().CommCuDevice(r->comm, &device) != ncclSuccess)
    return false;
  r->ranks = ranks;
  r->rank = rank;
  r->device = device;
  return ranks >= kLeastRanks && ranks <= kMostRanks;
}

// settled waits for NCCL to have made a communicator that doesn't block.
bool settled(Rank *r) {
  ncclResult_t state = ncclInProgress;
  while (!r->abandoned) {
    if (real().CommGetAsyncError(r->comm, &state) != ncclSuccess) return false;
    if (state != ncclInProgress) return state == ncclSuccess;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return false;
}

// drop_apart takes those out that can't go on.
void drop_apart(std::vector<Joining *> *joining) {
  auto apart = [](Joining *j) {
    if (j->verdict.together) return false;
    off(j->rank, j->verdict.why, !j->verdict.plain);
    return true;
  };
  joining->erase(std::remove_if(joining->begin(), joining->end(), apart), joining->end());
}

void join(std::vector<Joining *> joining) {
  exchange_hellos(joining);
  drop_apart(&joining);
  std::vector<Joining *> apart;
  for (Joining *j : joining)
    if (j->verdict.layout.pids.size() > 1) apart.push_back(j);
  if (!apart.empty()) open_boards(apart);
  drop_apart(&joining);
  // All threads and processes take communicators in this order, so none waits in a circle.
  std::map<uint64_t, std::vector<Joining *>> by_comm;
  for (Joining *j : joining) by_comm[j->key()].push_back(j);
  for (const auto &c : by_comm) meet(c.second);
}

}  // namespace

void set_up(const std::vector<Rank *> &ranks) {
  clear_graves();
  sweep();
  std::vector<std::unique_ptr<Joining>> own;
  std::vector<Joining *> joining;
  for (Rank *r : ranks) {
    if (!settled(r) || !identify(r)) {
      r->phase.store(Phase::kOff, std::memory_order_release);
      continue;
    }
    own.emplace_back(new Joining{r, {}, {}, {}, nullptr});
    joining.push_back(own.back().get());
  }
  if (joining.empty()) return;
  try {
    join(joining);
  } catch (const Failure &f) {
    for (Joining *j : joining)
      if (j->rank->phase == Phase::kSettingUp) end(j->rank, f);
  } catch (const std::exception &e) {
    for (Joining *j : joining)
      if (j->rank->phase == Phase::kSettingUp) off(j->rank, e.what(), true);
  }
}

}  // namespace mscclsh::nccl
