#include "engine.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <list>
#include <map>
#include <thread>

#include "failure.h"
#include "gpu.h"
#include "log.h"
#include "options.h"

namespace mscclsh::nccl {

namespace {

constexpr int64_t kErr = 1024;  // bytes of a sentence

// kTogether is how long the last rank of a process waits, when it destroys a communicator,
// for other processes to do the same, ns. Memory goes back to the device later if they
// don't come, and a program that destroys communicators in another order on each rank
// loses no more than this time.
constexpr int64_t kTogether = int64_t(3) * 1000000000;

int32_t exchange_over(void *context, const void *mine, void *all, int64_t bytes) {
  return static_cast<Engine *>(context)->exchange(mine, all, bytes) ? 0 : 1;
}

// must turns what the engine returned into an exception.
void must(int32_t code, const char *err) {
  if (code != MSCCLSH_OK) throw Failure(code, err);
}

}  // namespace

Engine::Engine(const Table &table, const Layout &l, std::unique_ptr<BoardFile> file)
    : table(table),
      layout(l),
      mus_(l.process_of.size()),
      programs_(size_t(table.programs()), nullptr),
      one_memory_(size_t(table.programs()), 0),
      chunks_(size_t(table.programs()), 0),
      ready_(size_t(table.entries()), 0),
      attached_(l.local.size()),
      told_(l.process_of.size(), 0) {
  if (l.pids.size() > 1) board_.reset(new Board(std::move(file), l.pids, l.self));
  try {
    create(l);
    load();
    check_fit();
    reserve();
  } catch (...) {
    take_down();
    throw;
  }
}

Engine::~Engine() { take_down(); }

bool Engine::exchange(const void *mine, void *all, int64_t bytes) {
  return board_->exchange(mine, all, bytes);
}

void Engine::create(const Layout &l) {
  mscclsh_comm_options o = {};
  o.devices = l.devices.data();
  o.ranks = int32_t(l.devices.size());
  o.watchdog_ns = options().watchdog_ns;
  if (board_) {
    o.process_of = l.process_of.data();
    o.exchange = exchange_over;
    o.context = this;
    o.processes = int32_t(l.pids.size());
    o.process = l.self;
  }
  char err[kErr];
  must(mscclsh_comm_create(&o, &comm_, err, kErr), err);
}

bool Engine::wanted(const mscclsh_table_entry &e) const {
  return e.ranks == int32_t(layout.process_of.size()) && e.nodes == 1 &&
         e.collective != MSCCLSH_SENDRECV && !(options().deny >> e.collective & 1);
}

// load loads what wanted entries need. A program that is refused, because links are not
// what it wants, say, is refused in all processes.
void Engine::load() {
  std::vector<char> needed(programs_.size(), 0);
  for (int32_t i = 0; i < table.entries(); i++) {
    const mscclsh_table_entry &e = table.entry(i);
    if (!wanted(e)) continue;
    ready_[size_t(i)] = 1;
    if (table.one_memory(e)) one_memory_[size_t(e.in_place)] = 1;
    for (const int32_t p : {e.in_place, e.out_of_place})
      if (p >= 0) needed[size_t(p)] = 1;
  }
  for (int32_t i = 0; i < table.programs(); i++) {
    if (!needed[size_t(i)]) continue;
    char err[kErr];
    const int32_t code = load_program(i, err);
    if (code != MSCCLSH_EREFUSED && code != MSCCLSH_EINVAL) must(code, err);
    if (code != MSCCLSH_OK)
      refusals_.push_back(std::string(table.text(table.program(i).title)) + ": " + err);
  }
}

int32_t Engine::load_program(int32_t i, char *err) {
  mscclsh_prog **to = &programs_[size_t(i)];
  if (table.one(i) != nullptr) {
    const mscclsh_one_program p = table.one_flat(i);
    return mscclsh_one_load(comm_, &p, to, err, kErr);
  }
  const mscclsh_program p = table.flat(i);
  return mscclsh_load(comm_, &p, to, err, kErr);
}

bool Engine::fits(const mscclsh_table_entry &e, std::string *why) {
  // One block of any kernel fits a multiprocessor, or nothing could be launched. Where a
  // program has more blocks than there are multiprocessors each kernel must be asked.
  const bool all = e.max_blocks > layout.multiprocessors;
  for (const int32_t p : {e.in_place, e.out_of_place}) {
    if (p < 0) continue;
    if (programs_[size_t(p)] == nullptr) return false;  // refused, as has been noted
    bool asked = false;
    for (int32_t d = 0; d < kDtypes; d++) {
      if (!(e.dtypes >> d & 1)) continue;
      for (int32_t o = 0; o < (reduces(e.collective) ? kOps : 1); o++) {
        if ((reduces(e.collective) && !(e.ops >> o & 1)) || (asked && !all)) continue;
        asked = true;
        mscclsh_prepared out;
        char err[kErr];
        const int32_t code = mscclsh_fits(programs_[size_t(p)], d, o, e.threads, &out, err, kErr);
        if (code == MSCCLSH_OK) continue;
        *why = err;
        return false;
      }
    }
  }
  return true;
}

// check_fit keeps the entries that every process can run.
void Engine::check_fit() {
  const size_t n = ready_.size(), processes = layout.pids.size();
  for (size_t i = 0; i < n; i++) {
    std::string why;
    if (!ready_[i] || fits(table.entry(int32_t(i)), &why)) continue;
    ready_[i] = 0;
    if (!why.empty())
      refusals_.push_back(std::string(table.text(table.entry(int32_t(i)).name)) + ": " + why);
  }
  if (board_ && n > 0) {
    std::vector<char> all(n * processes);
    if (!exchange(ready_.data(), all.data(), int64_t(n)))
      throw Failure(MSCCLSH_EPEER, "another process ended while the communicator was set up");
    for (size_t i = 0; i < n * processes; i++)
      if (!all[i]) ready_[i % n] = 0;
  }
  allot();
  for (size_t i = 0; i < n; i++) {
    if (!ready_[i]) continue;
    serves_ |= uint32_t(1) << table.entry(int32_t(i)).collective;
    if (table.entry(int32_t(i)).memory == MSCCLSH_WINDOWS) serves_windows_ = true;
  }
}

// allot says how large the chunks of each one-sided program may be, whose scratch is its own:
// as large as its entries want, in their order, as long as all of that together is no more
// than the options allow. An entry that comes too late can't be run. All processes find the
// same.
void Engine::allot() {
  int64_t left = options().scratch;
  for (int32_t i = 0; i < table.entries(); i++) {
    const mscclsh_table_entry &e = table.entry(i);
    if (!ready_[size_t(i)]) continue;
    std::map<int32_t, int64_t> chunks;
    int64_t more = 0;
    for (const int32_t p : {e.in_place, e.out_of_place}) {
      if (p < 0 || table.one(p) == nullptr || chunks.count(p)) continue;
      const mscclsh_table_program &t = table.program(p);
      if (t.scratch_chunks == 0) continue;
      const int64_t block = int64_t(e.max_bytes) / blocks_of(e.collective, e.ranks);
      // No call is served that needs more than the options allow.
      const int64_t want = std::min(block / t.count_chunks, options().scratch / t.scratch_chunks);
      chunks[p] = std::max(want / e.unit * e.unit, chunks_[size_t(p)]);
      more += (chunks[p] - chunks_[size_t(p)]) * t.scratch_chunks;
    }
    if (more > left) {
      ready_[size_t(i)] = 0;
      refusals_.push_back(
          std::string(table.text(e.name)) +
          format(": its scratch takes %lld bytes more, and of MSCCLSH_SCRATCH earlier "
                 "entries leave %lld",
                 static_cast<long long>(more), static_cast<long long>(left)));
      continue;
    }
    left -= more;
    for (const auto &c : chunks) chunks_[size_t(c.first)] = c.second;
  }
}

// reserve sets aside the scratch that calls may need, up to what the options allow.
void Engine::reserve() {
  char err[kErr];
  for (size_t p = 0; p < programs_.size(); p++)
    if (chunks_[p] > 0) must(mscclsh_one_reserve(programs_[p], chunks_[p], err, kErr), err);
  int64_t most = 0;
  for (int32_t i = 0; i < table.entries(); i++) {
    const mscclsh_table_entry &e = table.entry(i);
    if (!ready_[size_t(i)]) continue;
    for (const int32_t p : {e.in_place, e.out_of_place}) {
      if (p < 0) continue;
      const mscclsh_table_program &t = table.program(p);
      const int64_t block = int64_t(e.max_bytes) / blocks_of(e.collective, e.ranks);
      const int64_t chunk = block / t.count_chunks + 1;
      if (t.scratch_chunks > 0 && t.one == 0)
        most =
            std::max(most, chunk > options().scratch / t.scratch_chunks ? options().scratch
                                                                        : chunk * t.scratch_chunks);
    }
  }
  if (most > 0) must(mscclsh_reserve(comm_, most, err, kErr), err);
}

int32_t Engine::poll(std::string *why) {
  char err[kErr] = "";
  const int32_t code = mscclsh_poll(comm_, err, kErr);
  if (code != MSCCLSH_OK) *why = err;
  return code;
}

void Engine::inherit(std::unique_ptr<Mapped> memory) {
  std::lock_guard<std::mutex> lock(attached_mu_);
  inherited_.push_back(std::move(memory));
}

void Engine::abort() {
  char err[kErr];
  mscclsh_abort(comm_, err, kErr);
  if (board_) board_->stop();
  std::lock_guard<std::mutex> lock(attached_mu_);
  aborted_ = true;
}

int32_t Engine::tell(int32_t rank, void *memory, int64_t bytes) {
  std::lock_guard<std::mutex> lock(windows_mu_);
  const int32_t number = told_[size_t(rank)]++;
  if (size_t(number) == registrations_.size()) {
    registrations_.emplace_back(new Registration);
    registrations_.back()->spans.resize(layout.process_of.size(), Span{0, 0});
  }
  Registration &r = *registrations_[size_t(number)];
  r.spans[size_t(rank)] = {uint64_t(reinterpret_cast<uintptr_t>(memory)), bytes};
  r.told++;
  return number;
}

Engine::Window Engine::opened(int32_t number, const std::atomic<bool> &abandoned) {
  for (;;) {
    {
      std::lock_guard<std::mutex> lock(windows_mu_);
      Registration &r = *registrations_[size_t(number)];
      const bool turn = number == 0 || registrations_[size_t(number) - 1]->open;
      if (!r.open && turn && r.told == int32_t(layout.local.size())) {
        // All ranks here wait for it, and have none of their mus.
        std::vector<std::unique_lock<std::mutex>> all;
        for (std::mutex &m : mus_) all.emplace_back(m);
        open(number);
      }
      if (r.open) return r.window;
    }
    if (abandoned) return {nullptr, 0, "the communicator was aborted"};
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

// open makes the window, a collective call. It is of use where every rank has memory that
// the others can reach; what they all have of it in common is what counts, because all
// ranks must decide alike.
void Engine::open(int32_t number) {
  Registration *r = registrations_[size_t(number)].get();
  r->open = true;
  close_dropped(size_t(number));
  if (!tell_all(r)) {
    r->window.why = "the processes could not tell each other where it is";
    return;
  }
  const auto less = [](const Span &a, const Span &b) { return a.bytes < b.bytes; };
  r->window.bytes = std::min_element(r->spans.begin(), r->spans.end(), less)->bytes;
  r->window.why = useless(size_t(number));
  if (!r->window.why.empty()) return;
  std::vector<void *> memory;
  std::vector<int64_t> bytes;
  for (const Span &p : r->spans) {
    memory.push_back(reinterpret_cast<void *>(uintptr_t(p.at)));
    bytes.push_back(p.bytes);
  }
  char err[kErr];
  if (mscclsh_window_open(comm_, memory.data(), bytes.data(), &r->window.window, err, kErr) !=
      MSCCLSH_OK) {
    r->window.window = nullptr;
    r->window.why = err;
  }
}

// tell_all lets all processes know all ranks' spans.
bool Engine::tell_all(Registration *r) {
  if (!board_) return true;
  const size_t ranks = r->spans.size();
  std::vector<Span> all(ranks * layout.pids.size());
  if (!exchange(r->spans.data(), all.data(), int64_t(ranks * sizeof(Span)))) return false;
  for (size_t i = 0; i < ranks; i++) r->spans[i] = all[size_t(layout.process_of[i]) * ranks + i];
  return true;
}

// useless says why a registration is of no use, in the same words on all ranks; "" it is.
std::string Engine::useless(size_t number) const {
  const Registration &r = *registrations_[number];
  if (r.window.bytes == 0) return "not every rank has memory in it, at a multiple of 4096";
  for (size_t i = 0; i < number; i++) {
    const Registration &before = *registrations_[i];
    if (before.closed || before.window.window == nullptr) continue;
    if (alike(before.spans, before.window.bytes, r.spans, r.window.bytes)) continue;
    return format("it overlaps with window %zu, and not alike on all ranks", i);
  }
  return "";
}

void Engine::drop(int32_t number) {
  std::lock_guard<std::mutex> lock(windows_mu_);
  registrations_[size_t(number)]->dropped++;
}

// close_dropped closes windows that no rank of any process has any more. Giving one up
// is nothing that ranks do together, so it waits for the next thing that they do. The first
// n windows are those that all processes have opened.
void Engine::close_dropped(size_t n) {
  const size_t processes = layout.pids.size();
  std::vector<char> mine(n, 0), all(n * processes, 0);
  for (size_t i = 0; i < n; i++)
    mine[i] = registrations_[i]->dropped == int32_t(layout.local.size());
  if (!board_)
    all = mine;
  else if (!exchange(mine.data(), all.data(), int64_t(n)))
    return;
  for (size_t i = 0; i < n; i++) {
    Registration &r = *registrations_[i];
    bool everybody = !r.closed;
    for (size_t p = 0; p < processes; p++) everybody &= all[p * n + i] != 0;
    if (!everybody) continue;
    char err[kErr];
    if (mscclsh_window_close(r.window.window, err, kErr) != MSCCLSH_OK)
      log_setup(std::string("closing a window: ") + err);
    r.window.window = nullptr;
    r.closed = true;
  }
}

void Engine::take_down() {
  char err[kErr];
  for (auto &r : registrations_) {
    mscclsh_window_close(r->window.window, err, kErr);
    r->window.window = nullptr;
  }
  for (mscclsh_prog *&p : programs_) {
    mscclsh_unload(p, err, kErr);
    p = nullptr;
  }
  if (comm_ != nullptr && mscclsh_comm_destroy(comm_, err, kErr) != MSCCLSH_OK)
    log_setup(std::string("destroying a communicator of the engine: ") + err);
  comm_ = nullptr;
  inherited_.clear();
}

namespace {

// Leavers are engines whose processes have not all left yet. They are never destroyed when
// the process ends: the driver takes its memory back.
struct Leavers {
  std::mutex mu;
  std::list<std::shared_ptr<Engine>> engines;
};
Leavers &leavers() {
  static Leavers &all = *new Leavers;
  return all;
}

}  // namespace

bool Engine::detach(bool aborted) {
  {
    std::lock_guard<std::mutex> lock(attached_mu_);
    aborted_ |= aborted;
    if (--attached_ > 0) return false;
  }
  char err[kErr];
  // Nobody of this process calls for the engine any more. What the watchdog ended is over as well.
  if (!aborted_) aborted_ = mscclsh_sync(comm_, err, kErr) != MSCCLSH_OK;
  if (!board_) {
    take_down();
  } else if (aborted_) {
    board_->leave_alone();
  } else if (board_->leave(kTogether)) {
    take_down();
  } else {
    board_->stop();
  }
  return comm_ != nullptr;
}

bool Engine::all_left() { return board_->all_left(); }

void release(std::shared_ptr<Engine> engine, bool aborted) {
  if (aborted) engine->abort();
  if (!engine->detach(aborted)) return;
  std::lock_guard<std::mutex> lock(leavers().mu);
  leavers().engines.push_back(std::move(engine));
}

void sweep() {
  std::lock_guard<std::mutex> lock(leavers().mu);
  leavers().engines.remove_if([](const std::shared_ptr<Engine> &e) { return e->all_left(); });
}

}  // namespace mscclsh::nccl
