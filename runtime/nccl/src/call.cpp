#include "call.h"

#include <algorithm>

#include "failure.h"
#include "gpu.h"
#include "log.h"
#include "options.h"

namespace mscclsh::nccl {

namespace {

constexpr size_t kDecisions = 512;  // remembered; a power of two
constexpr size_t kBound = 1024;     // calls that are kept bound
constexpr int64_t kErr = 1024;      // bytes of a sentence
constexpr int64_t kLeastStaging = 64 << 10;

// kMostBytes is more than the buffers of any call are: NCCL is to say what it thinks of it.
// It leaves room for sums of several.
constexpr uint64_t kMostBytes = uint64_t(1) << 56;

void must(int32_t code, const char *err) {
  if (code != MSCCLSH_OK) throw Failure(code, err);
}

uint64_t scrambled(uint64_t v) {
  v ^= v >> 33;
  v *= 0xff51afd7ed558ccdu;
  return v ^ v >> 33;
}

uint64_t number(const void *p) { return uint64_t(reinterpret_cast<uintptr_t>(p)); }

// alignment_of is what a rank's buffers are aligned to, at most kPage, bytes. In place one
// buffer lies in the other, on each rank elsewhere: the other one counts.
int32_t alignment_of(const Buffers &b, bool in_place) {
  uint64_t at = kPage;
  if (!in_place || b.send_bytes() >= b.recv_bytes()) at |= number(b.send);
  if (!in_place || b.send_bytes() < b.recv_bytes()) at |= number(b.recv);
  return int32_t(at & ~(at - 1));
}

// lies_at is all that a bound call knows of a buffer.
int64_t lies_at(const void *p) { return p == nullptr ? -1 : int64_t(number(p) % MSCCLSH_PLACE); }

}  // namespace

int32_t dtype_of(ncclDataType_t t) {
  // fp32 0, fp64, fp16, bf16, fp8e4m3, fp8e5m2, int8, uint8, int32, uint32, int64, uint64.
  static constexpr int32_t kOf[] = {6, 7, 8, 9, 10, 11, 2, 0, 1, 3, 4, 5};
  return uint32_t(t) < sizeof kOf / sizeof kOf[0] ? kOf[uint32_t(t)] : -1;
}

int32_t op_of(ncclRedOp_t o) {
  static constexpr int32_t kOf[] = {0, 1, 3, 2, 4};  // sum, prod, max, min, avg
  return uint32_t(o) < sizeof kOf / sizeof kOf[0] ? kOf[uint32_t(o)] : -1;
}

bool Calls::BoundKey::operator==(const BoundKey &o) const {
  return program == o.program && threads == o.threads && dtype == o.dtype && op == o.op &&
         chunk == o.chunk && at[0] == o.at[0] && at[1] == o.at[1] && windows[0] == o.windows[0] &&
         windows[1] == o.windows[1] && all == o.all;
}

size_t Calls::BoundHash::operator()(const BoundKey &k) const {
  uint64_t h = scrambled(uint64_t(k.at[0]) + 0x9e3779b97f4a7c15u * uint64_t(k.chunk));
  h = scrambled(h ^ uint64_t(k.at[1]));
  h = scrambled(h ^ number(k.windows[0]) ^ number(k.windows[1]) << 1 ^ k.all << 40);
  return scrambled(h ^ uint64_t(k.program) << 16 ^ uint64_t(k.dtype) << 8 ^ uint64_t(k.op));
}

Calls::Calls(std::shared_ptr<Engine> engine, int32_t rank, int32_t device, int32_t max_ctas)
    : engine_(std::move(engine)),
      rank_(rank),
      ranks_(int32_t(engine_->layout.process_of.size())),
      device_(device),
      max_ctas_(max_ctas),
      decisions_(kDecisions, Decision{{}, -1, false}),
      buffers_(size_t(2 * ranks_), nullptr),
      spoils_(size_t(engine_->table.programs()), -1) {}

Calls::~Calls() { free(); }

// key_of is what all ranks know alike of a call. Windows are looked at only for
// collectives in which every rank has both buffers: see mscclsh_table.h.
Calls::Key Calls::key_of(const Request &r) {
  if (!windows.empty()) forget_freed();
  Key k = {r.count,
           r.collective,
           r.dtype,
           reduces(r.collective) ? r.op : 0,
           rooted(r.collective) ? r.root : 0,
           false,
           false,
           false,
           0};
  if (windows.empty() || rooted(r.collective)) return k;
  const Buffers b = {r.collective, rank_, ranks_, 0, int64_t(r.count) * dtype_bytes(r.dtype),
                     r.send,       r.recv};
  const Place place = place_of(b);
  if (place != Place::kIn && place != Place::kOut) return k;
  if (!in_window(r.send, b.send_bytes()) || !in_window(r.recv, b.recv_bytes())) return k;
  k.registered = true;
  k.in_place = place == Place::kIn;
  k.alignment = alignment_of(b, k.in_place);
  if (k.alignment < dtype_bytes(r.dtype)) k.registered = false;
  return k;
}

// in_window is whether all of the bytes lie in a window. Memory that was freed, and what was
// allocated in its place since, is in none: a window that is found to be of such memory ends
// here, since it can't become good again, and leaves its place to a later one.
bool Calls::in_window(const void *p, int64_t bytes) {
  for (;;) {
    const Window *const w = windows.at(p, bytes);
    if (w == nullptr) return false;
    if (current(*w)) return true;
    windows.remove_one(w->number, [this](const Window &old) { gone(old); });
  }
}

bool Calls::current(const Window &w) const {
  if (w.identity == 0) return true;
  uint64_t now = 0;
  char err[kErr];
  std::lock_guard<std::mutex> lock(engine_->mu(rank_));
  return mscclsh_identity(engine_->comm(), device_, reinterpret_cast<const void *>(w.base), w.bytes,
                          &now, err, kErr) == MSCCLSH_OK &&
         now == w.identity;
}

// possible is whether there may be a program for a call at all.
bool Calls::possible(const Request &r) const {
  return r.dtype >= 0 && (!reduces(r.collective) || r.op >= 0) && r.count > 0 &&
         r.count <= kMostBytes / 8 / uint64_t(ranks_);
}

int32_t Calls::choose(const Request &r) { return possible(r) ? decided(key_of(r)) : -1; }

int32_t Calls::choose_all(const std::vector<Request> &ranks) {
  const Request &r = ranks[0];
  if (!possible(r) || rooted(r.collective)) return -1;
  Key k = {r.count, r.collective, r.dtype,       reduces(r.collective) ? r.op : 0, 0, true,
           false,   true,         int32_t(kPage)};
  for (int32_t i = 0; i < ranks_; i++) {
    const Request &q = ranks[size_t(i)];
    const Buffers b = {r.collective, i,     ranks_, 0, int64_t(r.count) * dtype_bytes(r.dtype),
                       q.send,       q.recv};
    const Place place = place_of(b);
    if (place != Place::kIn && place != Place::kOut) return -1;
    if (i > 0 && k.in_place != (place == Place::kIn)) return -1;
    k.in_place = place == Place::kIn;
    k.alignment = std::min(k.alignment, alignment_of(b, k.in_place));
  }
  if (k.alignment < dtype_bytes(r.dtype)) return -1;
  const int32_t entry = decided(k);
  if (entry < 0) return -1;
  const Table &t = engine_->table;
  const mscclsh_table_entry &e = t.entry(entry);
  const int32_t program = k.in_place ? e.in_place : e.out_of_place;
  return e.memory == MSCCLSH_WINDOWS && t.one(program) == nullptr ? entry : -1;
}

void Calls::identify(const Request &r, std::vector<uint64_t> *to) {
  const Buffers b = {r.collective, rank_, ranks_, 0, int64_t(r.count) * dtype_bytes(r.dtype),
                     r.send,       r.recv};
  const std::pair<const void *, int64_t> both[2] = {{r.send, b.send_bytes()},
                                                    {r.recv, b.recv_bytes()}};
  std::lock_guard<std::mutex> lock(engine_->mu(rank_));
  for (const auto &[at, bytes] : both) {
    uint64_t identity = 0;
    char err[kErr];
    must(mscclsh_identity(engine_->comm(), device_, at, bytes, &identity, err, kErr), err);
    to->push_back(identity);
  }
}

// decided finds what was chosen for such a call, or chooses.
int32_t Calls::decided(const Key &k) {
  const uint64_t h =
      scrambled(k.count << 20 ^ uint64_t(k.collective) << 16 ^ uint64_t(k.dtype) << 12 ^
                uint64_t(k.op) << 9 ^ uint64_t(k.root) << 2 ^ uint64_t(k.registered) << 1 ^
                uint64_t(k.in_place) ^ uint64_t(k.alignment) << 32 ^ uint64_t(k.all) << 48);
  Decision &d = decisions_[h & (kDecisions - 1)];
  if (!d.known || !(d.key == k)) d = {k, decide(k), true};
  return d.entry;
}

int32_t Calls::decide(const Key &k) {
  Query q;
  q.collective = k.collective;
  q.ranks = ranks_;
  q.dtype = k.dtype;
  q.op = k.op;
  q.root = k.root;
  q.bytes = call_bytes(k.collective, k.count, k.dtype, ranks_);
  q.count = int64_t(k.count);
  q.in_place = k.in_place;
  q.registered = k.registered;
  if (k.registered) q.alignment = k.alignment;
  q.max_ctas = max_ctas_;
  q.scratch = options().scratch;
  if (!options().log_choice) return engine_->table.choose(q, &engine_->ready(), nullptr);
  std::vector<Reason> reasons;
  const int32_t entry = engine_->table.choose(q, &engine_->ready(), &reasons);
  if (told_
          .insert(std::string(reinterpret_cast<const char *>(&k), sizeof k.count) +
                  format(" %d %d %d %d %d %d %d %d", k.collective, k.dtype, k.op, k.root,
                         k.registered, k.in_place, k.all, k.alignment))
          .second)
    tell(k, entry, reasons);
  return entry;
}

// tell writes one line: the call, what was chosen, and why each other entry of its
// collective was not.
void Calls::tell(const Key &k, int32_t entry, const std::vector<Reason> &reasons) const {
  const Table &t = engine_->table;
  std::string line =
      format("rank %d of %d: %s of %lld bytes, count %llu, %s", rank_, ranks_,
             collective_name(k.collective),
             static_cast<long long>(call_bytes(k.collective, k.count, k.dtype, ranks_)),
             static_cast<unsigned long long>(k.count), dtype_name(k.dtype));
  if (reduces(k.collective)) line += std::string(", ") + op_name(k.op);
  if (rooted(k.collective)) line += format(", root %d", k.root);
  if (k.registered) line += k.all ? ", all ranks in one group" : ", in windows";
  if (k.registered && k.in_place) line += ", in place";
  line += std::string(": ") + (entry < 0 ? "nccl" : t.text(t.entry(entry).name));
  const char *sep = "; ";
  for (int32_t i = 0; i < t.entries(); i++) {
    const Reason why = reasons[size_t(i)];
    if (why == kWanted || why == kCollective) continue;
    line += std::string(sep) + t.text(t.entry(i).name) + ": " + reason_word(why);
    sep = ", ";
  }
  log_choice(line);
}

bool Calls::spoils(int32_t program) {
  signed char &known = spoils_[size_t(program)];
  if (known < 0) {
    int32_t collective = 0, root = -1;  // of an entry that has the program
    for (int32_t i = 0; i < engine_->table.entries(); i++) {
      const mscclsh_table_entry &e = engine_->table.entry(i);
      if (e.in_place != program && e.out_of_place != program) continue;
      collective = e.collective;
      root = e.root;
    }
    known = spoils_input(engine_->table, program, rank_, collective, root);
  }
  return known != 0;
}

// form_of chooses among an entry's programs. Where ranks may mix them each takes the one
// that its own call wants; else all take the same one.
Form Calls::form_of(const mscclsh_table_entry &e, const Buffers &b, int32_t *program) {
  bool in_place = e.out_of_place < 0;
  if (e.mixable || e.memory == MSCCLSH_WINDOWS) in_place = place_of(b) == Place::kIn;
  *program = in_place ? e.in_place : e.out_of_place;
  return {in_place, spoils(*program), e.alignment};
}

// staging is memory for the copies of a call. The engine's launches and copies on a device
// follow each other, so all calls share it; what a graph may have captured stays.
void *Calls::staging(int64_t bytes) {
  for (const auto &s : staging_)
    if (int64_t(s->bytes()) >= bytes) return s->at();
  int64_t size = kLeastStaging;
  while (size < bytes) size *= 2;
  staging_.emplace_back(new Mapped(device_, size_t(size)));
  return staging_.back()->at();
}

// bind finds or makes the call for a key. Without windows buffers are the first that it is
// launched with.
mscclsh_call *Calls::bind(const BoundKey &k, void *const *buffers) {
  const auto known = find_.find(k);
  if (known != find_.end()) {
    bound_.splice(bound_.begin(), bound_, known->second);
    return known->second->call;
  }
  if (bound_.size() >= kBound) unbind(std::prev(bound_.end()));
  mscclsh_size size = {};
  size.chunk_bytes = k.chunk;
  size.regime = regime(engine_->table.program(k.program), k.chunk);
  size.dtype = k.dtype;
  size.op = k.op;
  size.threads = k.threads;
  mscclsh_binding b = {};
  b.size = &size;
  b.device = device_;
  if (k.windows[0] != nullptr || k.windows[1] != nullptr) {
    b.windows = k.windows;
    b.offset[0] = k.at[0];
    b.offset[1] = k.at[1];
  } else {
    b.buffers = buffers;
    b.one_memory = engine_->one_memory(k.program);
  }
  mscclsh_call *call = nullptr;
  char err[kErr];
  must(mscclsh_bind(engine_->program(k.program), &b, &call, nullptr, err, kErr), err);
  bound_.push_front({k, call});
  find_[k] = bound_.begin();
  return call;
}

void Calls::unbind(Order::iterator b) {
  char err[kErr];
  if (mscclsh_unbind(b->call, err, kErr) != MSCCLSH_OK) log_setup(std::string("unbinding: ") + err);
  find_.erase(b->key);
  bound_.erase(b);
}

void Calls::copy(const Copy &c, cudaStream_t stream) {
  char err[kErr];
  must(mscclsh_copy_on(engine_->comm(), device_, stream, c.to, c.from, c.bytes, err, kErr), err);
}

Calls::BoundKey Calls::bound_key(const Request &r, const mscclsh_table_entry &e,
                                 int32_t program) const {
  BoundKey k = {};
  k.program = program;
  k.threads = e.threads;
  k.dtype = r.dtype;
  k.op = reduces(r.collective) ? r.op : 0;
  k.chunk = chunk_bytes(engine_->table.program(program), int64_t(r.count), r.dtype);
  return k;
}

void Calls::launch(const Request &r, int32_t entry, const All *all) {
  carry_out(r, entry, all, true);
}
void Calls::prepare(const Request &r, int32_t entry, const All *all) {
  carry_out(r, entry, all, false);
}

void Calls::carry_out(const Request &r, int32_t entry, const All *all, bool enqueues) {
  const mscclsh_table_entry &e = engine_->table.entry(entry);
  std::lock_guard<std::mutex> lock(engine_->mu(rank_));
  if (all != nullptr)
    launch_all(r, e, *all, enqueues);
  else if (e.memory == MSCCLSH_WINDOWS)
    launch_direct(r, e, enqueues);
  else
    launch_staged(r, e, enqueues);
}

// launch_direct has nothing to copy: choose found both buffers in windows, and the call in
// a place that the entry has a program for.
void Calls::launch_direct(const Request &r, const mscclsh_table_entry &e, bool enqueues) {
  const Buffers b = {r.collective, rank_, ranks_, r.root, int64_t(r.count) * dtype_bytes(r.dtype),
                     r.send,       r.recv};
  int32_t program;
  const Form f = form_of(e, b, &program);
  BoundKey k = bound_key(r, e, program);
  const void *const at[2] = {r.send, r.recv};
  const int64_t bytes[2] = {b.send_bytes(), b.recv_bytes()};
  const int32_t *base = engine_->table.flat(program).base_buf + 3 * rank_;
  for (int32_t i = 0; i < 2; i++) {
    // Of a buffer that lies in the other one the place follows, and it may well be at
    // another offset on each rank.
    if (f.in_place && base[i] != i) continue;
    const Window *w = windows.at(at[i], bytes[i]);
    if (w == nullptr) throw Failure(MSCCLSH_EINVAL, "a window was deregistered within a group");
    k.windows[i] = w->opened;
    k.at[i] = int64_t(number(at[i]) - w->base);
  }
  mscclsh_call *const call = bind(k, nullptr);
  if (!enqueues) return;
  char err[kErr];
  must(mscclsh_call_on(call, r.stream, err, kErr), err);
}

// launch_all has all ranks' buffers, which a call is bound to: others, or what was allocated in
// their place since, make another call.
void Calls::launch_all(const Request &r, const mscclsh_table_entry &e, const All &all,
                       bool enqueues) {
  const Buffers b = {r.collective, rank_, ranks_, r.root, int64_t(r.count) * dtype_bytes(r.dtype),
                     r.send,       r.recv};
  int32_t program;
  form_of(e, b, &program);
  BoundKey k = bound_key(r, e, program);
  if (all_.size() >= kBound) all_.clear();  // what is bound for these is not found any more
  uint64_t &known = all_[all];
  if (known == 0) known = ++last_all_;
  k.all = known;
  mscclsh_call *const call = bind(k, all.buffers.data());
  if (!enqueues) return;
  char err[kErr];
  must(mscclsh_call_on(call, r.stream, err, kErr), err);
}

void Calls::launch_staged(const Request &r, const mscclsh_table_entry &e, bool enqueues) {
  const Buffers b = {r.collective, rank_, ranks_, r.root, int64_t(r.count) * dtype_bytes(r.dtype),
                     r.send,       r.recv};
  int32_t program;
  Form f = form_of(e, b, &program);
  f.alignment = std::max(f.alignment, dtype_bytes(r.dtype));
  const int64_t need = staging_need(b, f);
  const Staged s = stage(b, f, need > 0 ? staging(need) : nullptr);
  BoundKey k = bound_key(r, e, program);
  void *const at[2] = {s.input, s.output};
  for (int32_t i = 0; i < 2; i++) {
    k.at[i] = lies_at(at[i]);
    buffers_[size_t(2 * rank_ + i)] = at[i];
  }
  mscclsh_call *const call = bind(k, buffers_.data());
  if (!enqueues) return;
  if (!s.before.empty() || !s.after.empty()) stats().copies++;
  for (const Copy &c : s.before) copy(c, r.stream);
  char err[kErr];
  must(mscclsh_call_at(call, buffers_.data(), r.stream, err, kErr), err);
  for (const Copy &c : s.after) copy(c, r.stream);
}

void Calls::forget(ncclWindow_t window) {
  windows.remove(window, [this](const Window &w) { gone(w); });
}

void Calls::forget_freed() {
  windows.remove_freed([this](const Window &w) { gone(w); });
}

void Calls::gone(const Window &w) {
  {
    std::lock_guard<std::mutex> lock(engine_->mu(rank_));
    for (auto b = bound_.begin(); b != bound_.end();) {
      const auto next = std::next(b);
      if (b->key.windows[0] == w.opened || b->key.windows[1] == w.opened) unbind(b);
      b = next;
    }
  }
  engine_->drop(w.number);
}

void Calls::free() {
  std::lock_guard<std::mutex> lock(engine_->mu(rank_));
  while (!bound_.empty()) unbind(bound_.begin());
  // Launches may be on their way still: the engine frees it when it has waited for them.
  for (auto &s : staging_) engine_->inherit(std::move(s));
  staging_.clear();
}

}  // namespace mscclsh::nccl
