// Binding a one-sided program to a size: the kernel's tables.
#include <algorithm>
#include <set>

#include "one_prog.h"

namespace mscclsh {

namespace {

constexpr int32_t kElemBytes[kDTypes] = {4, 8, 2, 2, 1, 1, 1, 1, 4, 4, 8, 8};
constexpr int64_t kMostBytes = int64_t(1) << 50;  // so that sums of sizes don't overflow

// cut is part k of n bytes in p parts, all multiples of unit; the first take the remainder.
struct Range {
  int64_t skip, bytes;
};
Range cut(int64_t n, int64_t unit, int64_t k, int64_t p) {
  const int64_t q = n / unit / p, rest = n / unit % p;
  return {(k * q + std::min(k, rest)) * unit, (q + (k < rest)) * unit};
}

// with_packets is whether blocks themselves read or write packets in an operation.
bool with_packets(const mscclsh_op &op) {
  return op.kind >= MSCCLSH_OP_CPKT && op.kind <= MSCCLSH_OP_RECSPKT;
}

bool reduces_packets(const mscclsh_op &op) {
  return op.kind >= MSCCLSH_OP_REPKT && op.kind <= MSCCLSH_OP_RECSPKT;
}

bool in_pairs(const mscclsh_op &op) {
  return (op.kind >= MSCCLSH_OP_PUT && op.kind <= MSCCLSH_OP_GET) || op.kind == MSCCLSH_OP_PPKT;
}

}  // namespace

void OneProg::set_size(const mscclsh_size &size) {
  if (size.dtype < 0 || size.dtype >= kDTypes || size.op < 0 || size.op >= kOps)
    invalid(format("data type %d or reduction %d is not known", size.dtype, size.op));
  const int32_t elem = kElemBytes[size.dtype];
  if (size.chunk_bytes < 0 || size.chunk_bytes > kMostBytes || size.chunk_bytes % elem ||
      size.misalign < 0 || size.misalign > 256 || size.misalign % elem || size.regime != 1)
    invalid(format("chunks of %lld bytes, %d a message, misaligned by %d bytes, elements of %d",
                   static_cast<long long>(size.chunk_bytes), size.regime, size.misalign, elem));
  if (size.chunk_bytes % alignment_ || (alignment_ % elem && size.chunk_bytes > 0))
    invalid(format("chunks of %lld bytes of elements of %d, cut at multiples of %d bytes",
                   static_cast<long long>(size.chunk_bytes), elem, alignment_));
  elem_ = elem;
  chunk_bytes_ = tile_bytes_ = size.chunk_bytes;
  tiles_ = 1;
  run_op_ = size.op;
  check_units(elem);
  const OneKernels *k = one_kernels_of(DType(size.dtype));
  const Kernels *others = kernels_of(DType(size.dtype));
  kernel_ = nullptr;
  divide_ = others ? others->divide : nullptr;
  if (k != nullptr) choose_kernel(*k, size);
  if (kernel_ == nullptr)
    refused(format("this build (%s) leaves data type %d with reduction %d out", build_name(),
                   size.dtype, size.op));
  if (threads_ < 1 || threads_ > kMaxThreads || threads_ % thread_unit())
    invalid(format("%d threads a block: want a multiple of %d up to %d", threads_, thread_unit(),
                   kMaxThreads));
}

// check_units refuses pipelines that cut elements or packets.
void OneProg::check_units(int32_t elem) const {
  for (const mscclsh_op &op : ops_) {
    if (op.kind != MSCCLSH_OP_PIPELINE) continue;
    if (op.unit_bytes % elem || (packets_ && op.unit_bytes % 4))
      invalid(format("units of %lld bytes cut elements of %d",
                     static_cast<long long>(op.unit_bytes), elem));
    if (turns(op) >= int64_t(1) << 31)
      refused(format("a pipeline would take %lld turns, more than 2^31",
                     static_cast<long long>(turns(op))));
  }
}

// choose_kernel takes the kernel of the reduction, or that for several, as many threads as
// have something to do, and packets that no range cuts.
void OneProg::choose_kernel(const OneKernels &k, const mscclsh_size &size) {
  std::set<int32_t> all;
  int64_t longest = 0, unit = kMostBytes;
  small_ = chunk_bytes_ % 8 != 0 || alignment_ % 8 != 0;
  for (const mscclsh_op &op : ops_) {
    if (op.kind == MSCCLSH_OP_PIPELINE) {
      unit = std::min(unit, op.unit_bytes);
      small_ |= op.unit_bytes % 8 != 0;
    }
    if (reduction(op) >= 0) all.insert(reduction(op));
    for (int32_t i = op.src_start; i < op.src_end; i++)
      longest = std::max(
          longest, cut(operands_[size_t(i)].size * chunk_bytes_, alignment_, 0, op.parts).bytes);
  }
  any_op_ = all.size() > 1;
  kernel_ = any_op_ ? k.any : k.at[all.empty() ? int32_t(kSum) : *all.begin()];
  threads_ = size.threads;
  if (threads_ != 0) return;
  const int32_t step = thread_unit(), most = default_threads();
  threads_ = block_threads_ > 0 ? std::min(most, (block_threads_ + step - 1) / step * step) : most;
  const int64_t need = (std::min(longest, unit) / (packets_ ? 8 : 16) + step - 1) / step * step;
  threads_ = int32_t(std::min<int64_t>(threads_, std::max<int64_t>(need, 2 * step)));
}

void OneProg::build_tables(const mscclsh_size &size) {
  count();
  clear_words();
  // Packets of earlier launches would be taken for those to come.
  for (int32_t r = 0; packets_ && r < comm->ranks(); r++) {
    if (!comm->local(r)) continue;
    const Buffer &b = buffers_[size_t(3 * r + 2)];
    if (reinterpret_cast<uintptr_t>(b.at) % 16)
      refused(
          format("the scratch of rank %d is for packets: it must begin at a multiple of 16 "
                 "bytes",
                 r));
    if (b.bytes > 0) device_of(r).fill(b.at, kGuardByte, size_t(b.bytes));
  }
  traced_.assign(size_t(comm->devices()), {});
  for (int32_t i = 0; i < comm->devices(); i++)
    if (!grids_[size_t(i)].blocks.empty()) build_grid(i, size.trace != 0);
}

// Filler makes the table of one thread block.
class OneProg::Filler {
 public:
  Filler(OneProg *prog, int32_t device, int32_t tb)
      : p_(*prog), device_(device), tb_(tb), rank_(prog->tbs_[size_t(tb)].rank) {}

  void fill(std::vector<Traced> *traced);
  std::vector<unsigned char> table(uint64_t first_event) const;

 private:
  void pipeline(const mscclsh_op &op, int32_t index, std::vector<Traced> *traced);
  void add(const mscclsh_op &op, int32_t index);
  void does(const mscclsh_op &op, OneOp *x) const;
  void lanes(const mscclsh_op &op, OneOp *x);
  void area(const mscclsh_op &op, const mscclsh_operand &o);
  void ref(const mscclsh_op &op, const Use &u);
  void give(const Use &u, OneRef *r);
  void take(const mscclsh_op &op, const Use &u, OneRef *r);
  void drain();

  OneProg &p_;
  const int32_t device_, tb_, rank_;
  std::vector<OneOp> ops_;
  std::vector<OneArea> areas_;
  std::vector<OneRef> refs_;
  Counts gave_, took_;                           // by the operations so far
  Counts turn_gave_, turn_took_;                 // by one turn of the pipeline that is being filled
  std::set<std::pair<int32_t, int32_t>> ports_;  // port and channel
  uint32_t first_drain_ = 0;
};

void OneProg::Filler::fill(std::vector<Traced> *traced) {
  const mscclsh_span s = p_.blocks_[size_t(tb_)];
  for (int32_t i = s.start; i < s.end; i++) {
    const mscclsh_op &op = p_.ops_[size_t(i)];
    if (op.kind == MSCCLSH_OP_PIPELINE) {
      pipeline(op, i, traced);
      continue;
    }
    add(op, i);
    if (traced) traced->push_back({tb_, i, 0});
  }
  drain();
}

// pipeline adds a pipeline and its body. What the body does to counters in the first turn
// is counted as it stands, and the turns after it at its end.
void OneProg::Filler::pipeline(const mscclsh_op &op, int32_t index, std::vector<Traced> *traced) {
  OneOp x = {};
  x.does = kOnePipeline;
  x.index = uint32_t(index);
  x.unit = op.unit_bytes;
  x.turns = p_.turns(op);
  x.body = uint32_t(op.body_end - op.body_start);
  ops_.push_back(x);
  turn_gave_.clear();
  turn_took_.clear();
  for (int32_t k = op.body_start; k < op.body_end; k++)
    for (const Use &u : p_.uses(rank_, p_.ops_[size_t(k)])) {
      if (u.gives) turn_gave_[{u.rank, u.counter}]++;
      if (u.takes) turn_took_[{u.rank, u.counter}]++;
    }
  const Counts gave = gave_, took = took_;
  for (int32_t k = op.body_start; k < op.body_end; k++) add(p_.ops_[size_t(k)], k);
  gave_ = gave;
  took_ = took;
  for (const auto &c : turn_gave_) gave_[c.first] += uint64_t(x.turns) * c.second;
  for (const auto &c : turn_took_) took_[c.first] += uint64_t(x.turns) * c.second;
  turn_gave_.clear();
  turn_took_.clear();
  for (int32_t t = 0; traced && t < x.turns; t++)
    for (int32_t k = op.body_start; k < op.body_end; k++) traced->push_back({tb_, k, t});
}

// add appends one operation.
void OneProg::Filler::add(const mscclsh_op &op, int32_t index) {
  OneOp x = {};
  x.index = uint32_t(index);
  const int32_t reduction = p_.reduction(op);
  x.op = uint8_t(reduction < 0 ? int32_t(kSum) : reduction);
  x.first_area = uint32_t(areas_.size());
  x.first_ref = uint32_t(refs_.size());
  does(op, &x);
  if (op.dst_end > op.dst_start) lanes(op, &x);
  for (const Use &u : p_.uses(rank_, op)) ref(op, u);
  x.n_refs = uint32_t(refs_.size()) - x.first_ref;
  ops_.push_back(x);
}

// does says what an operation comes down to.
void OneProg::Filler::does(const mscclsh_op &op, OneOp *x) const {
  const bool port = op.via == MSCCLSH_VIA_PORT;
  if (p_.small_) x->flags |= kOneSmall;
  switch (op.kind) {
    case MSCCLSH_OP_NOP:
      x->does = kOneMeet;
      return;
    case MSCCLSH_OP_BARRIER:
      x->does = kOneBarrier;
      x->scope = MSCCLSH_WAIT_BARRIER;
      return;
    case MSCCLSH_OP_WAIT:
    case MSCCLSH_OP_RLXWAIT:
      x->does = kOneTake;
      x->scope = MSCCLSH_WAIT_SIGNAL;
      return;
    case MSCCLSH_OP_SEM_ACQUIRE:
      x->does = kOneTake;
      x->scope = MSCCLSH_WAIT_SEMAPHORE;
      return;
    case MSCCLSH_OP_SEM_RELEASE:
      x->does = kOneGive;
      return;
    case MSCCLSH_OP_SIGNAL:
    case MSCCLSH_OP_RLXSIGNAL:
      x->does = port ? kOnePort : kOneGive;
      if (port) x->flags |= kOneSignal;
      return;
    case MSCCLSH_OP_FLUSH:
      x->does = kOnePort;
      x->flags |= kOneFlush;
      return;
  }
  x->does = port ? kOnePort : with_packets(op) ? kOnePackets : kOnePlain;
  if (op.kind == MSCCLSH_OP_PWS || op.kind == MSCCLSH_OP_PWSF) x->flags |= kOneSignal;
  if (op.kind == MSCCLSH_OP_PWSF) x->flags |= kOneFlush;
  if (port && with_packets(op)) x->flags |= kOneRaw;
  if (port && op.kind == MSCCLSH_OP_RPPKT) x->flags |= kOneAwait;
  if (reduces_packets(op) && op.src_end - op.src_start > 3) x->flags |= kOneMany;
}

// lanes appends what is read and what is written.
void OneProg::Filler::lanes(const mscclsh_op &op, OneOp *x) {
  auto source = [&](int32_t i) { area(op, p_.operands_[size_t(i)]); };
  const int32_t n_dst = op.dst_end - op.dst_start;
  if (in_pairs(op) || x->does == kOnePort) {
    x->n_lanes = uint32_t(n_dst);
    x->n_reads = x->n_writes = 1;
    for (int32_t i = 0; i < n_dst; i++) {
      source(in_pairs(op) ? op.src_start + i : op.src_start);
      source(op.dst_start + i);
    }
    return;
  }
  x->n_lanes = 1;
  x->n_reads = uint32_t(op.src_end - op.src_start);
  x->n_writes = uint32_t(n_dst);
  // Packets are added up first, and then the rank's own.
  const bool own_last = reduces_packets(op);
  for (int32_t i = op.src_start + own_last; i < op.src_end; i++) source(i);
  if (own_last) source(op.src_start);
  for (int32_t i = op.dst_start; i < op.dst_end; i++) source(i);
}

void OneProg::Filler::area(const mscclsh_op &op, const mscclsh_operand &o) {
  const int64_t chunk = p_.chunk_bytes_;
  const size_t i = size_t(3 * o.rank + o.buf);
  const Range c = cut(o.size * chunk, p_.alignment_, op.part, op.parts);
  OneArea a = {};
  const int64_t at = (int64_t(p_.base_chunk_[i]) + o.index) * chunk + c.skip;
  a.at = p_.views_.at(device_, o.rank, p_.base_buf_[i]) + (o.packets ? 2 * at : at);
  if (o.buf == 2 && p_.double_) a.half = uint64_t(p_.buffer_bytes(o.rank, 2)) / 2;
  a.bytes = c.bytes;
  a.packets = o.packets != 0;
  areas_.push_back(a);
}

void OneProg::Filler::ref(const mscclsh_op &op, const Use &u) {
  OneRef r = {};
  r.peer = u.peer;
  r.chan = u.chan;
  if (op.kind == MSCCLSH_OP_RLXSIGNAL || op.kind == MSCCLSH_OP_RLXWAIT) r.flags |= kOneRelaxed;
  if (u.ports) {
    r.port = uint32_t(p_.port_of(rank_, u.chan));
    r.at = p_.word(device_, rank_, 2 * p_.counters(rank_) + 1 + int64_t(r.port));
    ports_.insert({int32_t(r.port), u.chan});
    if (u.gives) gave_[{u.rank, u.counter}]++;
  } else if (u.takes) {
    take(op, u, &r);
    if (u.gives) gave_[{u.rank, u.counter}]++;
  } else if (u.gives) {
    give(u, &r);
  }
  refs_.push_back(r);
}

// give is for signals and releases.
void OneProg::Filler::give(const Use &u, OneRef *r) {
  const Counter &c = p_.counter(u.rank, u.counter);
  const std::pair<int32_t, int32_t> key(u.rank, u.counter);
  r->at = p_.word(device_, u.rank, u.counter);
  r->per_launch = c.gives;
  r->before = int64_t(++gave_[key]);
  const auto turn = turn_gave_.find(key);
  if (turn != turn_gave_.end()) r->per_turn = uint32_t(turn->second);
  if (u.rank == rank_) {
    r->flags |= kOneDevice;  // a semaphore
    return;
  }
  if (c.givers.size() == 1 && c.thread >= 0) return;
  r->flags |= kOneAdd;
  if (!p_.comm->local(u.rank)) return;
  Device &there = p_.comm->device(p_.comm->device_of(u.rank));
  if (!p_.comm->device(device_).whole_lines(there))
    refused(
        format("several thread blocks of rank %d signal on one channel, which needs NVLink, "
               "which is not between GPUs %d and %d",
               rank_, p_.comm->device(device_).id, there.id));
}

// take is for waits, acquires and barriers.
void OneProg::Filler::take(const mscclsh_op &op, const Use &u, OneRef *r) {
  const Counter &c = p_.counter(u.rank, u.counter);
  const std::pair<int32_t, int32_t> key(u.rank, u.counter);
  r->at = p_.word(device_, u.rank, u.counter);
  r->tickets = p_.word(device_, u.rank, p_.counters(u.rank) + u.counter);
  r->per_launch = c.gives;
  r->drawn = c.takes;
  uint64_t before = ++took_[key];
  const auto turn = turn_took_.find(key);
  if (turn != turn_took_.end()) r->per_turn = uint32_t(turn->second);
  if (op.kind == MSCCLSH_OP_BARRIER) {
    r->flags |= kOneDevice;
    r->parts = uint32_t(c.parts);
    // Where the same blocks meet each time, each knows how many have been there.
    bool same = c.givers.size() == size_t(c.parts);
    for (const auto &g : c.givers) same &= g.second * uint64_t(c.parts) == c.gives;
    if (!same) r->flags |= kOneTicket;
    r->before = int64_t((before - 1) * r->parts + 1);
    r->per_turn *= r->parts;
    return;
  }
  if (c.takers.size() > 1) {
    r->flags |= kOneTicket;
    before = 1;
  }
  r->before = int64_t(before);
  if (op.kind != MSCCLSH_OP_SEM_ACQUIRE) return;
  r->flags |= kOneDevice;
  r->before -= p_.semaphores_[size_t(p_.first_semaphore_[size_t(rank_)] + u.chan)];
}

// drain appends the ports that are waited for at the end.
void OneProg::Filler::drain() {
  first_drain_ = uint32_t(refs_.size());
  for (const auto &port : ports_) {
    OneRef r = {};
    r.port = uint32_t(port.first);
    r.chan = port.second;
    r.peer = p_.channel(rank_, port.second).peer;
    r.at = p_.word(device_, rank_, 2 * p_.counters(rank_) + 1 + int64_t(r.port));
    refs_.push_back(r);
  }
}

std::vector<unsigned char> OneProg::Filler::table(uint64_t first_event) const {
  OneBlock b = {};
  b.first_event = first_event;
  if (p_.queues_[size_t(rank_)] != nullptr)
    b.port = p_.queues_[size_t(rank_)]->view(p_.word(device_, rank_, 2 * p_.counters(rank_)));
  b.first_drain = first_drain_;
  b.n_drain = uint32_t(ports_.size());
  b.n_ops = int32_t(ops_.size());
  b.rank = rank_;
  b.tb = p_.tbs_[size_t(tb_)].tb;
  b.areas_at = uint32_t(sizeof b + ops_.size() * sizeof(OneOp));
  b.refs_at = uint32_t(b.areas_at + areas_.size() * sizeof(OneArea));
  std::vector<unsigned char> to(b.refs_at + refs_.size() * sizeof(OneRef));
  std::memcpy(to.data(), &b, sizeof b);
  if (!ops_.empty()) std::memcpy(to.data() + sizeof b, ops_.data(), ops_.size() * sizeof(OneOp));
  if (!areas_.empty())
    std::memcpy(to.data() + b.areas_at, areas_.data(), areas_.size() * sizeof(OneArea));
  if (!refs_.empty())
    std::memcpy(to.data() + b.refs_at, refs_.data(), refs_.size() * sizeof(OneRef));
  return to;
}

// divide_runs lists what avg divides on a device.
std::vector<DivideRun> OneProg::divide_runs(int32_t device) const {
  std::vector<DivideRun> runs;
  for (const mscclsh_divide &d : divides_)
    if (run_op_ == kAvg && comm->device_of(d.rank) == device && d.count > 0 && d.divisor > 1 &&
        chunk_bytes_ > 0)
      runs.push_back({place(d.rank, 1, d.chunk), d.count * chunk_bytes_ / elem_, d.divisor});
  return runs;
}

// build_grid makes a device's tables.
void OneProg::build_grid(int32_t device, bool trace) {
  Grid &g = grids_[size_t(device)];
  Device &d = comm->device(device);
  std::vector<Traced> *traced = trace ? &traced_[size_t(device)] : nullptr;
  std::vector<std::vector<unsigned char>> tables;
  size_t longest = 0;
  for (int32_t tb : g.blocks) {
    Filler f(this, device, tb);
    const uint64_t first_event = traced_[size_t(device)].size();
    f.fill(traced);
    tables.push_back(f.table(first_event));
    longest = std::max(longest, tables.back().size());
  }
  const std::vector<DivideRun> divides = divide_runs(device);
  const size_t divides_at = tables.size() * longest;
  std::vector<unsigned char> all(divides_at + divides.size() * sizeof(DivideRun));
  for (size_t i = 0; i < tables.size(); i++)
    std::copy(tables[i].begin(), tables[i].end(), all.begin() + ptrdiff_t(i * longest));
  if (!divides.empty())
    std::memcpy(all.data() + divides_at, divides.data(), divides.size() * sizeof(DivideRun));
  g.tables = static_cast<unsigned char *>(d.alloc(all.size()));
  d.upload(g.tables, all.data(), all.size());
  g.divides = reinterpret_cast<DivideRun *>(g.tables + divides_at);
  g.n_divides = int64_t(divides.size());
  if (trace)
    g.events = static_cast<Event *>(d.alloc(traced_[size_t(device)].size() * sizeof(Event)));
  Args &a = g.args;
  a = Args{};
  a.blocks = g.tables;
  a.block_bytes = longest;
  a.head_bytes = longest <= kOneShared ? uint32_t(longest) : uint32_t(sizeof(OneBlock));
  g.shared = sizeof(Shared) + a.head_bytes;
  a.records = g.records;
  a.events = g.events;
  a.dead = comm->dead(device);
  a.abort = comm->abort_word();
  a.chunk_bytes = chunk_bytes_;
  a.watchdog_ns = comm->watchdog_ns;
  a.flag_mask = comm->flag_modulus - 1;
}

int64_t OneProg::events(mscclsh_event *to, int64_t n) {
  if (!prepared_) invalid("the program is not prepared for a size");
  comm->sync();
  int64_t have = 0;
  for (int32_t i = 0; i < comm->devices(); i++) {
    const Grid &g = grids_[size_t(i)];
    if (g.events == nullptr) continue;
    const std::vector<Traced> &traced = traced_[size_t(i)];
    std::vector<Event> events(traced.size());
    if (!events.empty())
      comm->device(i).download(events.data(), g.events, events.size() * sizeof(Event));
    for (size_t k = 0; k < traced.size(); k++, have++) {
      if (have >= n) continue;
      const ThreadBlock &tb = tbs_[size_t(traced[k].tb)];
      to[have] = {events[k].begin, events[k].end, tb.rank, tb.tb, traced[k].op, traced[k].turn};
    }
  }
  return have;
}

}  // namespace mscclsh
