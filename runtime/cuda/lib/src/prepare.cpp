// Binding a program to a size: memory, message numbers, the kernel's tables.
#include <algorithm>

#include "prog.h"

namespace mscclsh {

namespace {

constexpr int32_t kElemBytes[kDTypes] = {4, 8, 2, 2, 1, 1, 1, 1, 4, 4, 8, 8};

// A launch may ask for 48 KiB of shared memory without further ado.
static_assert(sizeof(Shared) + sizeof(Block) + kMaxEnds * sizeof(End) + kWindow * sizeof(Step) +
                      kMaxDeps * sizeof(Dep) + sizeof(Nothing) <=
                  48 << 10,
              "a block's table is too large for shared memory");

// kMostBytes keeps sums of sizes from overflowing.
constexpr int64_t kMostBytes = int64_t(1) << 50;

}  // namespace

void Prog::prepare(const mscclsh_size &size, mscclsh_prepared *out) {
  comm->agree("prepare", [&] {
    comm->sync();
    prepared_ = false;
    set_size(size);
    return digest(0, &size, 1);
  });
  free_prepared();
  mscclsh_prepared info = {};
  const int32_t elem = kElemBytes[size.dtype];
  try {
    comm->together("allocate", [&] { allocate(size.misalign, elem); });
    std::vector<unsigned char *> at;
    for (const Buffer &b : buffers_) at.push_back(b.at);
    views_.open(at, wire_.protocol == kDirect);
    comm->together("build", [&] {
      build_tables(size);
      add_divides(size.op == kAvg ? elem : 0);
      fit(&info);
    });
  } catch (...) {
    free_prepared();
    throw;
  }
  prepared_ = true;
  if (out != nullptr) *out = info;
}

// set_size checks a size and cuts it into tiles as the CPU interpreter does.
void Prog::set_size(const mscclsh_size &size) {
  if (size.dtype < 0 || size.dtype >= kDTypes || size.op < 0 || size.op >= kOps)
    invalid(format("data type %d or reduction %d is not known", size.dtype, size.op));
  const Kernels *k = kernels_of(DType(size.dtype));
  const int32_t op = size.op == kAvg ? int32_t(kSum) : size.op;
  kernel_ = k ? k->at[op][wire_.protocol] : nullptr;
  for (int32_t i = 0; i < 2; i++) kernel_quick_[i] = k ? k->quick[i][op][wire_.protocol] : nullptr;
  divide_ = k ? k->divide : nullptr;
  if (kernel_ == nullptr)
    refused(format("this build (%s) leaves data type %d with reduction %d out", build_name(),
                   size.dtype, size.op));
  threads_ = size.threads ? size.threads : default_threads();
  if (threads_ < 1 || threads_ > kMaxThreads || threads_ % thread_unit())
    invalid(format("%d threads a block: want a multiple of %d up to %d", threads_, thread_unit(),
                   kMaxThreads));
  const int32_t elem = kElemBytes[size.dtype];
  if (size.chunk_bytes < 0 || size.chunk_bytes > kMostBytes || size.chunk_bytes % elem ||
      size.misalign < 0 || size.misalign > 256 || size.misalign % elem || size.regime < 1)
    invalid(format("chunks of %lld bytes, %d a message, misaligned by %d bytes, elements of %d",
                   static_cast<long long>(size.chunk_bytes), size.regime, size.misalign, elem));
  const bool direct = wire_.protocol == kDirect;
  if (!direct && wire_.slot_bytes < elem)
    refused(format("slots of %lld bytes can't carry elements of %d",
                   static_cast<long long>(wire_.slot_bytes), elem));
  chunk_bytes_ = size.chunk_bytes;
  tile_bytes_ = direct ? chunk_bytes_ : std::min(wire_.slot_bytes / elem * elem, chunk_bytes_);
  tiles_ = tile_bytes_ ? (chunk_bytes_ + tile_bytes_ - 1) / tile_bytes_ : 0;
  if (!direct && size.regime > 1 && (tiles_ > 1 || chunk_bytes_ > wire_.slot_bytes / size.regime))
    invalid(format("%d chunks of %lld bytes don't fit a slot of %lld bytes", size.regime,
                   static_cast<long long>(chunk_bytes_), static_cast<long long>(wire_.slot_bytes)));
  for (const ThreadBlock &tb : tbs_)
    if (tiles_ * int64_t(tb.steps) >= int64_t(1) << 31)
      refused(format("rank %d thread block %d would do %lld tiles of %d steps, more than 2^31",
                     tb.rank, tb.tb, static_cast<long long>(tiles_), tb.steps));
}

void Prog::free_prepared() {
  drop_graphs();
  turn_ = std::make_shared<int>(0);
  views_.close();
  for (size_t i = 0; i < buffers_.size(); i++) {
    Buffer &b = buffers_[i];
    if (!comm->local(int32_t(i / 3))) continue;
    device_of(int32_t(i / 3)).free(b.allocated);
    b.allocated = b.at = nullptr;
    b.bytes = 0;
  }
  for (int32_t i = 0; i < comm->devices(); i++) {
    Grid &g = grids_[size_t(i)];
    Device &d = comm->device(i);
    d.free(g.tables);
    d.free(g.events);
    d.free(g.divides);
    g.tables = nullptr;
    g.events = nullptr;
    g.divides = nullptr;
    g.n_divides = 0;
  }
}

void Prog::allocate(int32_t misalign, int32_t elem) {
  for (int32_t i = 0; i < int32_t(buffers_.size()); i++) {
    if (base_buf_[size_t(i)] != i % 3 || !comm->local(i / 3)) continue;
    Buffer &b = buffers_[size_t(i)];
    if (chunk_bytes_ > 0 && chunks_[size_t(i)] > kMostBytes / chunk_bytes_)
      refused(format("rank %d needs %d chunks of %lld bytes", i / 3, chunks_[size_t(i)],
                     static_cast<long long>(chunk_bytes_)));
    b.bytes = chunks_[size_t(i)] * chunk_bytes_;
    if (b.attached != nullptr) {
      if (b.attached_bytes < b.bytes || reinterpret_cast<uintptr_t>(b.attached) % uint32_t(elem))
        refused(
            format("the memory attached as buffer %d of rank %d has %lld bytes, needed are "
                   "%lld, aligned to %d",
                   i % 3, i / 3, static_cast<long long>(b.attached_bytes),
                   static_cast<long long>(b.bytes), elem));
      b.at = b.attached;
      continue;
    }
    b.allocated_bytes = 2 * kGuard + misalign + b.bytes;
    Device &d = device_of(i / 3);
    b.allocated = static_cast<unsigned char *>(comm->alloc_buffer(
        comm->device_of(i / 3), size_t(b.allocated_bytes), wire_.protocol == kDirect));
    d.fill(b.allocated, kGuardByte, size_t(b.allocated_bytes));
    b.at = b.allocated + kGuard + misalign;
  }
}

unsigned char *Prog::place(int32_t rank, int32_t buf, int32_t chunk) const {
  const size_t i = size_t(3 * rank + buf), base = size_t(3 * rank + base_buf_[i]);
  return buffers_[base].at + (int64_t(base_chunk_[i]) + chunk) * chunk_bytes_;
}

void Prog::build_tables(const mscclsh_size &size) {
  if (wire_.protocol == kDirect) match_messages();
  if (wire_.protocol == kLL || wire_.protocol == kLL128) find_shared();
  longest_ = 0;
  has_deps_ = false;
  bool quick = kernel_quick_[0] != nullptr && tiles_ == 1 && !size.trace;
  for (int32_t i = 0; i < comm->devices(); i++)
    if (!grids_[size_t(i)].blocks.empty()) quick &= build_grid(size, i);
  if (!quick) return;
  // A thread carries a packet, a warp a unit.
  const int64_t threads = wire_.protocol == kLL
                              ? (longest_ / 8 + thread_unit() - 1) / thread_unit() * thread_unit()
                              : (longest_ + kUnitBytes - 1) / kUnitBytes * thread_unit();
  if (size.threads == 0)
    threads_ = int32_t(std::min<int64_t>(std::max<int64_t>(threads, 2 * thread_unit()), threads_));
  kernel_ = kernel_quick_[has_deps_];
  for (Grid &g : grids_) g.shared += sizeof(Nothing);
}

// is_quick says whether the kernel for short programs can run a thread block; steps are
// resolved.
bool Prog::is_quick(const ThreadBlock &tb, int32_t regime, const Step *steps, const End *ends) {
  const uintptr_t unit = wire_.protocol == kLL ? 8 : 16;
  uintptr_t bits = uintptr_t(chunk_bytes_);
  for (int32_t i = 0; i < tb.steps; i++) {
    const Step &s = steps[i];
    if (s.count > regime || (s.flags & kStrict)) return false;
    has_deps_ |= s.deps > 0 || s.post;
    bits |= uintptr_t(s.x) | uintptr_t(s.y) | uintptr_t(s.dst);
    longest_ = std::max(longest_, s.count * chunk_bytes_);
  }
  for (size_t i = 0; i < tb.ends.size(); i++)
    if (ends[i].per_tile >= uint32_t(wire_.withheld())) return false;
  return bits % unit == 0;
}

// build_grid makes a device's tables, and says whether the kernel for short programs can
// run all of it.
bool Prog::build_grid(const mscclsh_size &size, int32_t device) {
  bool quick = true;
  Grid &g = grids_[size_t(device)];
  size_t ends = 0, steps = 0, deps = 0;
  uint64_t events = 0;
  for (int32_t t : g.blocks) {
    const ThreadBlock &tb = tbs_[size_t(t)];
    size_t own = 0;
    for (int32_t i = 0; i < tb.steps; i++) {
      const mscclsh_step &s = steps_[size_t(tb.first_step + i)];
      own += size_t(s.dep_end - s.dep_start);
    }
    ends = std::max(ends, tb.ends.size());
    steps = std::max(steps, size_t(tb.steps));
    deps = std::max(deps, own);
  }
  Args &a = g.args;
  a = Args{};
  a.max_ends = int32_t(ends);
  a.window = kWindow;
  const size_t steps_at = sizeof(Block) + ends * sizeof(End);
  a.deps_at = uint32_t(steps_at + steps * sizeof(Step));
  a.block_bytes = a.deps_at + deps * sizeof(Dep);
  const bool whole = steps <= size_t(kWindow) && deps <= size_t(kMaxDeps);
  a.head_bytes = whole ? uint32_t(a.block_bytes)
                       : uint32_t(steps_at + std::min(steps, size_t(kWindow)) * sizeof(Step));
  g.shared = sizeof(Shared) + a.head_bytes;
  std::vector<unsigned char> tables(g.blocks.size() * a.block_bytes);
  for (size_t b = 0; b < g.blocks.size(); b++) {
    const ThreadBlock &tb = tbs_[size_t(g.blocks[b])];
    unsigned char *table = tables.data() + b * a.block_bytes;
    fill_table(tb, table, g, int32_t(b), size.regime);
    const End *own_ends = reinterpret_cast<const End *>(table + sizeof(Block));
    quick &= is_quick(tb, size.regime, reinterpret_cast<const Step *>(own_ends + ends), own_ends);
    reinterpret_cast<Block *>(table)->first_event = events;
    events += uint64_t(tiles_) * uint64_t(tb.steps);
  }
  Device &d = comm->device(device);
  if (size.trace) {
    if (events > uint64_t(1) << 28)
      refused(format("%llu steps are too many to record", static_cast<unsigned long long>(events)));
    g.events = static_cast<Event *>(d.alloc(events * sizeof(Event)));
  }
  g.tables = static_cast<unsigned char *>(d.alloc(tables.size()));
  d.upload(g.tables, tables.data(), tables.size());
  a.blocks = g.tables;
  a.records = g.records;
  a.events = g.events;
  a.dead = comm->dead(device);
  a.abort = comm->abort_word();
  a.chunk_bytes = chunk_bytes_;
  a.tile_bytes = tile_bytes_;
  a.tiles = tiles_;
  a.watchdog_ns = comm->watchdog_ns;
  a.flag_mask = comm->flag_modulus - 1;
  a.slot_lines = uint32_t(wire_.lines());
  a.regime = size.regime;
  a.slots = wire_.depth();
  a.withheld = wire_.withheld();
  return quick && whole;
}

void Prog::fill_table(const ThreadBlock &tb, unsigned char *table, const Grid &grid, int32_t block,
                      int32_t regime) const {
  const Args &a = grid.args;
  Block &b = *reinterpret_cast<Block *>(table);
  End *ends = reinterpret_cast<End *>(table + sizeof(Block));
  Step *steps = reinterpret_cast<Step *>(ends + a.max_ends);
  Dep *deps = reinterpret_cast<Dep *>(table + a.deps_at);
  // A rank's thread blocks stand together in its device's grid.
  b.posted = grid.posted + (block - tb.tb);
  b.launches = grid.launches + block;
  b.n_steps = tb.steps;
  b.n_ends = int32_t(tb.ends.size());
  b.rank = tb.rank;
  b.tb = tb.tb;
  for (size_t i = 0; i < tb.ends.size(); i++) {
    const ThreadBlock::Use &u = tb.ends[i];
    End &e = ends[i];
    e.seq = u.sends ? u.conn->send_seq : u.conn->recv_seq;
    e.mine = u.sends ? u.conn->taken : u.conn->sent;
    e.theirs = u.sends ? u.conn->sent : u.conn->taken;
    e.slots = u.conn->slots;
    e.stride = uint64_t(wire_.stride());
    e.sends = u.sends;
    e.peer = u.peer;
    e.chan = u.chan;
  }
  uint32_t n_deps = 0;
  for (int32_t i = 0; i < tb.steps; i++) {
    const mscclsh_step &from = steps_[size_t(tb.first_step + i)];
    Step &s = steps[i];
    s.kind = uint8_t(from.kind);
    s.post = from.post != 0;
    s.deps = uint16_t(from.dep_end - from.dep_start);
    s.count = from.kind == kNop ? 0 : from.count;
    s.dep_start = n_deps;
    s.flags = uint8_t((receives(from.kind) ? kIn : 0) | (sends(from.kind) ? kOut : 0));
    unsigned char *src = nullptr;
    if (reads_src(from.kind)) src = place(tb.rank, from.src_buf, from.src_chunk);
    if (writes_dst(from.kind)) s.dst = place(tb.rank, from.dst_buf, from.dst_chunk);
    (receives(from.kind) ? s.y : s.x) = src;
    if (from.kind == kReduce) s.y = s.dst;
    for (int32_t k = from.dep_start; k < from.dep_end; k++) {
      const mscclsh_dep &d = deps_[size_t(k)];
      const ThreadBlock &other = tbs_[size_t(first_tb_[size_t(tb.rank)] + d.tb)];
      deps[n_deps++] = Dep{uint32_t(d.tb), uint32_t(d.step), uint64_t(other.steps)};
    }
  }
  // A rendezvous takes a step whole.
  const int32_t each = wire_.protocol == kDirect ? INT32_MAX : regime;
  count_messages(tb, each, steps, ends);
  if (wire_.protocol == kDirect) set_ways(tb, steps);
  if (wire_.protocol == kLL || wire_.protocol == kLL128)
    for (int32_t i = 0; i < tb.steps; i++)
      if (shares(tb, i)) steps[i].flags |= kStrict;
  join_steps(tb, each, a.window, ends, steps);
  set_meetings(tb, each, steps);
}

// far_place is memory of another rank as rank from's device reaches it.
unsigned char *Prog::far_place(int32_t from, int32_t rank, int32_t buf, int32_t chunk) const {
  const size_t i = size_t(3 * rank + buf);
  return views_.at(comm->device_of(from), rank, base_buf_[i]) +
         (int64_t(base_chunk_[i]) + chunk) * chunk_bytes_;
}

// count_messages numbers the messages of a tile.
void Prog::count_messages(const ThreadBlock &tb, int32_t regime, Step *steps, End *ends) const {
  for (int32_t i = 0; i < tb.steps; i++) {
    Step &s = steps[i];
    const uint32_t messages = uint32_t((int64_t(s.count) + regime - 1) / regime);
    s.in = int16_t(tb.in[size_t(i)]);
    s.out = int16_t(tb.out[size_t(i)]);
    if (s.in >= 0) {
      s.in_before = ends[s.in].per_tile;
      ends[s.in].per_tile += messages;
    }
    if (s.out >= 0) {
      s.out_before = ends[s.out].per_tile;
      ends[s.out].per_tile += messages;
    }
  }
}

// add_divides lists what avg divides, elements of elem bytes; nothing when elem is 0.
void Prog::add_divides(int32_t elem) {
  for (int32_t i = 0; elem != 0 && i < comm->devices(); i++) {
    std::vector<DivideRun> runs;
    for (const mscclsh_divide &d : divides_)
      if (comm->device_of(d.rank) == i && d.count > 0 && d.divisor > 1 && chunk_bytes_ > 0)
        runs.push_back({place(d.rank, 1, d.chunk), d.count * chunk_bytes_ / elem, d.divisor});
    if (runs.empty()) continue;
    Grid &g = grids_[size_t(i)];
    const size_t bytes = runs.size() * sizeof(DivideRun);
    g.divides = static_cast<DivideRun *>(comm->device(i).alloc(bytes));
    g.n_divides = int64_t(runs.size());
    comm->device(i).upload(g.divides, runs.data(), bytes);
  }
}

// fit refuses what can't be resident at once: blocks wait for one another.
void Prog::fit(mscclsh_prepared *out) {
  *out = mscclsh_prepared{};
  out->tile_bytes = tile_bytes_;
  out->tiles = tiles_;
  out->threads = threads_;
  for (int32_t i = 0; i < comm->devices(); i++) {
    Grid &g = grids_[size_t(i)];
    if (g.blocks.empty()) continue;
    const Fit f = comm->device(i).fit(kernel_, threads_, g.shared);
    const int32_t need = int32_t(g.blocks.size());
    if (need > f.blocks)
      refused(format("device %d needs %d thread blocks of %d threads at once, but %d fit",
                     comm->device(i).id, need, threads_, f.blocks));
    if (g.n_divides > 0) comm->device(i).load(divide_);
    if (need <= out->blocks_needed) continue;
    out->blocks_needed = need;
    out->blocks_resident = f.blocks;
    out->registers = f.registers;
  }
}

}  // namespace mscclsh
