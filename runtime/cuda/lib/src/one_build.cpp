// Binding a one-sided program to a size: the kernel's tables.
#include <algorithm>
#include <set>

#include "one_prog.h"
#include "one_quick.h"

namespace mscclsh {

namespace {

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
  sizing_ = sizing(size);
  chunk_bytes_ = tile_bytes_ = size.chunk_bytes;
  tiles_ = 1;
  threads_ = sizing_.threads;
  kernel_ = sizing_.kernel;
  divide_ = sizing_.divide;
}

void OneProg::build_tables(const mscclsh_size &size) {
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
  const Run run = run_of(sizing_, false);
  Shape all;
  all.quick = true;
  for (int32_t i = 0; i < comm->devices(); i++)
    if (!grids_[size_t(i)].blocks.empty()) all.add(build_grid(run, i, size.trace != 0));
  size_t more = 0;
  choose(sizing_, all, &kernel_, &threads_, &more);
  for (Grid &g : grids_) g.shared += more;
}

// Filler makes the table of one thread block.
class OneProg::Filler {
 public:
  Filler(OneProg *prog, const Run &run, int32_t device, int32_t tb, const Places &places)
      : p_(*prog),
        run_(run),
        places_(places),
        device_(device),
        tb_(tb),
        rank_(prog->tbs_[size_t(tb)].rank) {}

  void fill(std::vector<Traced> *traced);
  void look(Shape *shape, uint32_t *wants) const;
  std::vector<unsigned char> table(uint64_t first_event, OneSum *sums) const;

 private:
  void pipeline(const mscclsh_op &op, int32_t index, std::vector<Traced> *traced);
  void add(const mscclsh_op &op, int32_t index);
  void does(const mscclsh_op &op, OneOp *x) const;
  void lanes(const mscclsh_op &op, OneOp *x);
  void area(const mscclsh_op &op, const mscclsh_operand &o);
  void ref(const mscclsh_op &op, const Use &u);
  void give(const Use &u, OneRef *r);
  void take(const mscclsh_op &op, const Use &u, OneRef *r);
  void sum(const Use &u, OneRef *r);
  void drain();
  const Counter &counter(const Use &u) const {
    return run_.counts[size_t(u.rank)][size_t(u.counter)];
  }
  uint64_t *counted(int32_t rank, int64_t line) const {
    return p_.word(device_, rank, p_.counted(rank, run_.bound) + line);
  }
  uint64_t *flushed(int32_t port) const {
    return p_.word(device_, rank_, p_.requests(rank_) + 1 + port);
  }
  // end is the number that the host has for a port.
  uint32_t end(int32_t port) const { return uint32_t(port + (run_.bound ? p_.ports(rank_) : 0)); }

  OneProg &p_;
  const Run &run_;
  const Places &places_;
  const int32_t device_, tb_, rank_;
  std::vector<OneOp> ops_;
  std::vector<OneArea> areas_;
  std::vector<OneRef> refs_;
  std::vector<OneSum> sums_;
  std::map<std::pair<int32_t, int32_t>, uint32_t> sum_of_;  // rank and counter
  Counts gave_, took_;                                      // by the operations so far
  Counts turn_gave_, turn_took_;                 // by one turn of the pipeline that is being filled
  std::set<std::pair<int32_t, int32_t>> ports_;  // port and channel
  uint32_t first_drain_ = 0;
};

// look says whether the kernel for short programs can run the block, and what to rehearse.
void OneProg::Filler::look(Shape *shape, uint32_t *wants) const {
  for (const OneOp &op : ops_) {
    if (op.does == kOneMeet) continue;
    *wants |= op.flags & kOneMany ? 2 : 1;
    shape->quick &= op.does == kOnePackets && !(op.flags & kOneSmall);
  }
  for (const OneArea &a : areas_)
    shape->quick &= a.packets != 0 || reinterpret_cast<uintptr_t>(a.at) % 8 == 0;
}

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
  x.turns = p_.turns(op, run_.chunk);
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
  const int32_t reduction = p_.reduction(op, run_.op);
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
  if (run_.small) x->flags |= kOneSmall;
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
  const int64_t chunk = run_.chunk;
  const size_t i = size_t(3 * o.rank + o.buf), base = size_t(3 * o.rank + p_.base_buf_[i]);
  const OneRange c = one_cut(o.size * chunk, p_.alignment_, op.part, op.parts);
  OneArea a = {};
  const int64_t at = (int64_t(p_.base_chunk_[i]) + o.index) * chunk + c.skip;
  a.at = places_[base] + (o.packets ? 2 * at : at);
  if (o.buf == 2 && p_.double_)
    a.half = uint64_t(p_.chunks(o.rank, 2) * (run_.bound ? p_.scratch_chunk_ : chunk) *
                      p_.scratch_times_ / 2);
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
    const int32_t port = p_.port_of(rank_, u.chan);
    r.index = end(port);
    r.flags |= kOnePlaced;
    r.at = flushed(port);
    ports_.insert({port, u.chan});
    if (u.gives) gave_[{u.rank, u.counter}]++;
  } else if (u.takes) {
    take(op, u, &r);
    if (u.gives) gave_[{u.rank, u.counter}]++;
  } else if (u.gives) {
    give(u, &r);
  }
  if (run_.bound && p_.sized_ && !u.ports) sum(u, &r);
  refs_.push_back(r);
}

// sum takes the counter of a reference among those whose launches count differently.
void OneProg::Filler::sum(const Use &u, OneRef *r) {
  const auto known = sum_of_.insert({{u.rank, u.counter}, uint32_t(sums_.size())});
  r->index = known.first->second;
  if (known.second) sums_.push_back({r->per_launch, 0});
  if (r->flags & kOneTicket) sums_[r->index].drawn = r->drawn;
  r->per_launch = r->drawn = 0;
}

// give is for signals and releases.
void OneProg::Filler::give(const Use &u, OneRef *r) {
  const Counter &c = counter(u);
  const std::pair<int32_t, int32_t> key(u.rank, u.counter);
  r->at = counted(u.rank, u.counter);
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
  const Counter &c = counter(u);
  const std::pair<int32_t, int32_t> key(u.rank, u.counter);
  r->at = counted(u.rank, u.counter);
  r->tickets = counted(u.rank, p_.counters(u.rank) + u.counter);
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
    r.index = end(port.first);
    r.flags = kOnePlaced;
    r.chan = port.second;
    r.peer = p_.channel(rank_, port.second).peer;
    r.at = flushed(port.first);
    refs_.push_back(r);
  }
}

std::vector<unsigned char> OneProg::Filler::table(uint64_t first_event, OneSum *sums) const {
  OneBlock b = {};
  b.first_event = first_event;
  if (p_.queues_[size_t(rank_)] != nullptr)
    b.port = p_.queues_[size_t(rank_)]->view(p_.word(device_, rank_, p_.requests(rank_)));
  b.first_drain = first_drain_;
  b.n_drain = uint32_t(ports_.size());
  b.n_ops = int32_t(ops_.size());
  b.rank = rank_;
  b.tb = p_.tbs_[size_t(tb_)].tb;
  b.areas_at = uint32_t(sizeof b + ops_.size() * sizeof(OneOp));
  b.refs_at = uint32_t(b.areas_at + areas_.size() * sizeof(OneArea));
  b.sums_at = uint32_t(b.refs_at + refs_.size() * sizeof(OneRef));
  b.n_sums = uint32_t(sums_.size());
  b.sums = sums;
  std::vector<unsigned char> to(b.sums_at + sums_.size() * sizeof(OneSum));
  std::memcpy(to.data(), &b, sizeof b);
  if (!ops_.empty()) std::memcpy(to.data() + sizeof b, ops_.data(), ops_.size() * sizeof(OneOp));
  if (!areas_.empty())
    std::memcpy(to.data() + b.areas_at, areas_.data(), areas_.size() * sizeof(OneArea));
  if (!refs_.empty())
    std::memcpy(to.data() + b.refs_at, refs_.data(), refs_.size() * sizeof(OneRef));
  if (!sums_.empty())
    std::memcpy(to.data() + b.sums_at, sums_.data(), sums_.size() * sizeof(OneSum));
  return to;
}

// divide_runs lists what avg divides on a device.
std::vector<DivideRun> OneProg::divide_runs(const Run &run, int32_t device,
                                            const Places &at) const {
  std::vector<DivideRun> runs;
  for (const mscclsh_divide &d : divides_) {
    if (run.op != kAvg || comm->device_of(d.rank) != device || d.count == 0 || d.divisor < 2 ||
        run.chunk == 0)
      continue;
    const size_t i = size_t(3 * d.rank + 1), base = size_t(3 * d.rank + base_buf_[i]);
    runs.push_back({at[base] + (int64_t(base_chunk_[i]) + d.chunk) * run.chunk,
                    d.count * run.chunk / run.elem, d.divisor});
  }
  return runs;
}

// make_image makes a device's tables. Those of a bound call that are too long for shared memory
// have room behind each for what a launch changes.
Image OneProg::make_image(const Run &run, int32_t device, const Places &at,
                          std::vector<Traced> *traced) {
  const Grid &g = grids_[size_t(device)];
  std::vector<std::vector<unsigned char>> tables;
  size_t longest = 0;
  Image to;
  to.shape.quick = traced == nullptr;
  for (size_t b = 0; b < g.blocks.size(); b++) {
    Filler f(this, run, device, g.blocks[b], at);
    const uint64_t first_event = traced ? traced->size() : 0;
    f.fill(traced);
    OneSum *sums = sums_[size_t(device)];
    f.look(&to.shape, &to.args.wants);
    tables.push_back(f.table(first_event, sums ? sums + b * most_sums_ : nullptr));
    longest = std::max(longest, tables.back().size());
  }
  const bool apart = run.bound && longest > kOneShared;
  Args &a = to.args;
  a.block_bytes = (apart ? 2 : 1) * longest;
  a.head_bytes = longest <= kOneShared ? uint32_t(longest) : uint32_t(sizeof(OneBlock));
  to.shared = sizeof(Shared) + a.head_bytes;
  to.shape.quick &= longest <= kOneQuick;
  to.bytes.resize(tables.size() * a.block_bytes);
  for (size_t b = 0; b < tables.size(); b++) {
    if (apart) reinterpret_cast<OneBlock *>(tables[b].data())->copy_at = uint32_t(longest);
    std::copy(tables[b].begin(), tables[b].end(), to.bytes.begin() + ptrdiff_t(b * a.block_bytes));
  }
  to.divides_at = to.bytes.size();
  for (const DivideRun &d : divide_runs(run, device, at)) {
    append(&to.bytes, d);
    to.n_divides++;
  }
  a.records = g.records;
  a.dead = comm->dead(device);
  a.abort = comm->abort_word();
  a.chunk_bytes = run.chunk;
  a.watchdog_ns = comm->watchdog_ns;
  a.flag_mask = comm->flag_modulus - 1;
  a.launches = g.launches + (run.bound ? g.blocks.size() : 0);
  a.rebases = run.bound && (apart || most_sums_ > 0);
  return to;
}

// choose takes the kernel for short programs where it can.
void OneProg::choose(const Sizing &s, const Shape &shape, Kernel *kernel, int32_t *threads,
                     size_t *shared) const {
  *kernel = s.kernel;
  *threads = s.threads;
  if (!shape.quick || s.quick[0] == nullptr || s.threads <= int32_t(kWarp)) return;
  *kernel = s.quick[0];
  *shared += sizeof(OneRehearsal);
}

// build_grid makes what a device has of the size that is prepared.
Shape OneProg::build_grid(const Run &run, int32_t device, bool trace) {
  Grid &g = grids_[size_t(device)];
  Device &d = comm->device(device);
  std::vector<Traced> *traced = trace ? &traced_[size_t(device)] : nullptr;
  const Image image = make_image(run, device, views_.of(device), traced);
  g.tables = static_cast<unsigned char *>(d.alloc(image.bytes.size()));
  d.upload(g.tables, image.bytes.data(), image.bytes.size());
  g.divides = reinterpret_cast<DivideRun *>(g.tables + image.divides_at);
  g.n_divides = image.n_divides;
  g.shared = image.shared;
  if (trace) g.events = static_cast<Event *>(d.alloc(traced->size() * sizeof(Event)));
  g.args = image.args;
  g.args.blocks = g.tables;
  g.args.events = g.events;
  return image.shape;
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
