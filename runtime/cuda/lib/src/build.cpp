// The kernel's tables: what prepare and bind have in common.
#include "build.h"

#include <algorithm>

namespace mscclsh {

namespace {

// A launch may ask for 48 KiB of shared memory without further ado.
static_assert(sizeof(Shared) + sizeof(Block) + kMaxEnds * sizeof(End) + kWindow * sizeof(Step) +
                      kMaxDeps * sizeof(Dep) + sizeof(Nothing) <=
                  48 << 10,
              "a block's table is too large for shared memory");

}  // namespace

// work_out finds what is asked of a program's steps whatever the size, once.
void Prog::work_out() {
  if (wire_.protocol == kDirect) match_messages();
  if (wire_.protocol == kLL || wire_.protocol == kLL128) find_shared();
}

Image Prog::image(const Sizing &s, int32_t device, const Places &at) {
  work_out();
  return Builder(*this, s, device, at).image();
}

// choose takes a kernel for short programs where it suits. A thread carries a packet there,
// a warp a unit.
void Prog::choose(const Sizing &s, const Shape &shape, Kernel *kernel, int32_t *threads,
                  size_t *shared) const {
  *kernel = s.kernel;
  *threads = s.threads;
  if (!shape.quick || s.quick[0] == nullptr || s.tiles != 1 || s.size.trace) return;
  const int64_t unit = thread_unit();
  const int64_t want = wire_.protocol == kLL ? (shape.longest / 8 + unit - 1) / unit * unit
                                             : (shape.longest + kUnitBytes - 1) / kUnitBytes * unit;
  if (s.size.threads == 0)
    *threads = int32_t(std::min<int64_t>(std::max<int64_t>(want, 2 * unit), s.threads));
  *kernel = s.quick[shape.has_deps];
  *shared += sizeof(Nothing);
}

// place is where a chunk of a rank's buffer lies for the device.
unsigned char *Prog::Builder::place(int32_t rank, int32_t buf, int32_t chunk) const {
  const size_t i = size_t(3 * rank + buf);
  return at_[size_t(3 * rank + p_.base_buf_[i])] +
         (int64_t(p_.base_chunk_[i]) + chunk) * chunk_bytes_;
}

Image Prog::Builder::image() {
  const Grid &g = p_.grids_[size_t(device_)];
  Image to;
  Args &a = to.args;
  set_args(&a);
  to.shared = p_.shared_bytes(g);
  to.bytes.resize(g.blocks.size() * a.block_bytes);
  to.shape.quick = a.head_bytes == a.block_bytes;
  for (size_t b = 0; b < g.blocks.size(); b++) {
    const ThreadBlock &tb = p_.tbs_[size_t(g.blocks[b])];
    unsigned char *table = to.bytes.data() + b * a.block_bytes;
    fill_table(tb, table, a, int32_t(b));
    const End *ends = reinterpret_cast<const End *>(table + sizeof(Block));
    to.shape.add(shape(tb, reinterpret_cast<const Step *>(ends + a.max_ends), ends));
    reinterpret_cast<Block *>(table)->first_event = to.events;
    to.events += uint64_t(s_.tiles) * uint64_t(tb.steps);
  }
  if (s_.size.op == kAvg) add_divides(&to);
  return to;
}

// set_args sets all but where things lie that are made later.
void Prog::Builder::set_args(Args *args) const {
  const Grid &g = p_.grids_[size_t(device_)];
  Args &a = *args;
  const size_t steps_at = sizeof(Block) + g.max_ends * sizeof(End);
  a.max_ends = int32_t(g.max_ends);
  a.window = kWindow;
  a.deps_at = uint32_t(steps_at + g.max_steps * sizeof(Step));
  a.block_bytes = a.deps_at + g.max_deps * sizeof(Dep);
  a.head_bytes = uint32_t(p_.shared_bytes(g) - sizeof(Shared));
  a.records = g.records;
  a.dead = p_.comm->dead(device_);
  a.abort = p_.comm->abort_word();
  a.chunk_bytes = chunk_bytes_;
  a.tile_bytes = s_.tile_bytes;
  a.tiles = s_.tiles;
  a.watchdog_ns = p_.comm->watchdog_ns;
  a.flag_mask = p_.comm->flag_modulus - 1;
  a.slot_lines = uint32_t(p_.wire_.lines());
  a.regime = regime_;
  a.slots = p_.wire_.depth();
  a.withheld = p_.wire_.withheld();
}

// shared_bytes is the shared memory of a block: as much of its table as fits comes there at
// once.
size_t Prog::shared_bytes(const Grid &g) const {
  const bool whole = g.max_steps <= size_t(kWindow) && g.max_deps <= size_t(kMaxDeps);
  return sizeof(Shared) + sizeof(Block) + g.max_ends * sizeof(End) +
         std::min(g.max_steps, size_t(kWindow)) * sizeof(Step) +
         (whole ? g.max_deps * sizeof(Dep) : 0);
}

// shape says whether the kernel for short programs can run a thread block, whose steps are
// resolved.
Shape Prog::Builder::shape(const ThreadBlock &tb, const Step *steps, const End *ends) const {
  const uintptr_t unit = p_.wire_.protocol == kLL ? 8 : 16;
  Shape to;
  to.quick = true;
  uintptr_t bits = uintptr_t(chunk_bytes_);
  for (int32_t i = 0; i < tb.steps; i++) {
    const Step &s = steps[i];
    to.quick &= s.count <= regime_ && !(s.flags & kStrict);
    to.has_deps |= s.deps > 0 || s.post;
    bits |= uintptr_t(s.x) | uintptr_t(s.y) | uintptr_t(s.dst);
    to.longest = std::max(to.longest, s.count * chunk_bytes_);
  }
  for (size_t i = 0; i < tb.ends.size(); i++)
    to.quick &= ends[i].per_tile < uint32_t(p_.wire_.withheld());
  to.quick &= bits % unit == 0;
  return to;
}

void Prog::Builder::fill_table(const ThreadBlock &tb, unsigned char *table, const Args &a,
                               int32_t block) const {
  const Grid &g = p_.grids_[size_t(device_)];
  Block &b = *reinterpret_cast<Block *>(table);
  End *ends = reinterpret_cast<End *>(table + sizeof(Block));
  Step *steps = reinterpret_cast<Step *>(ends + a.max_ends);
  // A rank's thread blocks stand together in its device's grid.
  b.posted = g.posted + (block - tb.tb);
  b.launches = g.launches + block;
  b.n_steps = tb.steps;
  b.n_ends = int32_t(tb.ends.size());
  b.rank = tb.rank;
  b.tb = tb.tb;
  set_ends(tb, ends);
  set_steps(tb, steps, reinterpret_cast<Dep *>(table + a.deps_at));
  // A rendezvous takes a step whole.
  const int32_t protocol = p_.wire_.protocol, each = protocol == kDirect ? INT32_MAX : regime_;
  count_messages(tb, each, steps, ends);
  if (protocol == kDirect) set_ways(tb, steps);
  if (protocol == kLL || protocol == kLL128)
    for (int32_t i = 0; i < tb.steps; i++)
      if (p_.shares(tb, i)) steps[i].flags |= kStrict;
  join_steps(tb, each, a.window, ends, steps);
  set_meetings(tb, each, steps);
}

void Prog::Builder::set_ends(const ThreadBlock &tb, End *ends) const {
  for (size_t i = 0; i < tb.ends.size(); i++) {
    const ThreadBlock::Use &u = tb.ends[i];
    End &e = ends[i];
    e.seq = u.sends ? u.conn->send_seq : u.conn->recv_seq;
    e.mine = u.sends ? u.conn->taken : u.conn->sent;
    e.theirs = u.sends ? u.conn->sent : u.conn->taken;
    e.slots = u.conn->slots;
    e.stride = uint64_t(p_.wire_.stride());
    e.sends = u.sends;
    e.peer = u.peer;
    e.chan = u.chan;
  }
}

void Prog::Builder::set_steps(const ThreadBlock &tb, Step *steps, Dep *deps) const {
  uint32_t n_deps = 0;
  for (int32_t i = 0; i < tb.steps; i++) {
    const mscclsh_step &from = p_.steps_[size_t(tb.first_step + i)];
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
      const mscclsh_dep &d = p_.deps_[size_t(k)];
      const ThreadBlock &other = p_.tbs_[size_t(p_.first_tb_[size_t(tb.rank)] + d.tb)];
      deps[n_deps++] = Dep{uint32_t(d.tb), uint32_t(d.step), uint64_t(other.steps)};
    }
  }
}

// count_messages numbers the messages of a tile, which carry so many chunks each.
void Prog::Builder::count_messages(const ThreadBlock &tb, int32_t each, Step *steps,
                                   End *ends) const {
  for (int32_t i = 0; i < tb.steps; i++) {
    Step &s = steps[i];
    const uint32_t messages = uint32_t((int64_t(s.count) + each - 1) / each);
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

// add_divides lists what avg divides.
void Prog::Builder::add_divides(Image *to) const {
  to->divides_at = to->bytes.size();  // a multiple of 16, as tables are
  for (const mscclsh_divide &d : p_.divides_) {
    if (p_.comm->device_of(d.rank) != device_ || d.count == 0 || d.divisor < 2 || chunk_bytes_ == 0)
      continue;
    append(&to->bytes,
           DivideRun{place(d.rank, 1, d.chunk), d.count * chunk_bytes_ / s_.elem, d.divisor});
    to->n_divides++;
  }
}

}  // namespace mscclsh
