// Checking a program and finding its connections.
#include <algorithm>
#include <map>

#include "prog.h"

namespace mscclsh {

Prog::Prog(Comm *comm, const mscclsh_program &p)
    : comm(comm), wire_{p.protocol, p.slots, p.slot_bytes}, views_(comm) {
  try {
    comm->connect_all([&] { return build(p); });
    comm->together("load", [&] {
      for (int32_t i = 0; i < comm->devices(); i++) {
        Grid &g = grids_[size_t(i)];
        const size_t n = g.blocks.size();
        g.posted = static_cast<uint64_t *>(comm->device(i).alloc(n * sizeof(uint64_t)));
        g.launches = static_cast<uint64_t *>(comm->device(i).alloc(n * sizeof(uint64_t)));
        g.records = static_cast<Record *>(comm->device(i).alloc(n * sizeof(Record)));
      }
    });
  } catch (...) {
    free_loaded();
    throw;
  }
  comm->add(this);
}

// build takes over the tables of all ranks, makes grids of those of this process and
// finds the connections. It returns a digest of all of it.
uint64_t Prog::build(const mscclsh_program &p) {
  comm->check_alive();
  check_shape(p);
  const int32_t ranks = comm->ranks();
  chunks_.assign(p.chunks, p.chunks + 3 * ranks);
  base_buf_.assign(p.base_buf, p.base_buf + 3 * ranks);
  base_chunk_.assign(p.base_chunk, p.base_chunk + 3 * ranks);
  deps_.assign(p.deps, p.deps + p.n_deps);
  divides_.assign(p.divides, p.divides + p.n_divides);
  buffers_.resize(size_t(3 * ranks));
  grids_.resize(size_t(comm->devices()));
  int32_t steps = 0;
  first_tb_.push_back(0);
  for (int32_t r = 0; r < ranks; r++) {
    for (int32_t t = 0; t < p.tbs[r]; t++) {
      ThreadBlock tb = {};
      tb.rank = r;
      tb.tb = t;
      tb.first_step = steps;
      tb.steps = p.steps_per_tb[tbs_.size()];
      if (tb.steps < 0 || steps > INT32_MAX - tb.steps)
        invalid(format("rank %d thread block %d has %d steps", r, t, tb.steps));
      steps += tb.steps;
      if (comm->local(r)) {
        Grid &g = grids_[size_t(comm->device_of(r))];
        block_of_.push_back(int32_t(g.blocks.size()));
        g.blocks.push_back(int32_t(tbs_.size()));
      } else {
        block_of_.push_back(-1);
      }
      tbs_.push_back(tb);
    }
    first_tb_.push_back(int32_t(tbs_.size()));
  }
  steps_.assign(p.steps, p.steps + steps);
  find_ends();
  find_extents();
  uint64_t d = digest(0, steps_.data(), steps_.size());
  d = digest(digest(d, &wire_.protocol, 1), &wire_.slots, 1);
  d = digest(digest(d, &wire_.slot_bytes, 1), first_tb_.data(), first_tb_.size());
  d = digest(digest(d, deps_.data(), deps_.size()), divides_.data(), divides_.size());
  d = digest(digest(d, chunks_.data(), chunks_.size()), base_buf_.data(), base_buf_.size());
  return digest(digest(d, base_chunk_.data(), base_chunk_.size()), p.steps_per_tb, tbs_.size());
}

Prog::~Prog() {
  comm->remove(this);
  comm->settle();
  try {
    free_prepared();
    free_loaded();
  } catch (const Failure &) {  // of a device that is beyond use
  }
}

void Prog::free_loaded() {
  for (int32_t i = 0; i < int32_t(grids_.size()); i++) {
    Grid &g = grids_[size_t(i)];
    comm->device(i).free(g.posted);
    comm->device(i).free(g.launches);
    comm->device(i).free(g.records);
    g.posted = g.launches = nullptr;
    g.records = nullptr;
  }
}

void Prog::check_shape(const mscclsh_program &p) const {
  if (p.protocol < 0 || p.protocol >= kProtocols) invalid(format("protocol %d", p.protocol));
  if (p.protocol == kDirect && (p.slots != 0 || p.slot_bytes != 0))
    invalid(format("%d slots of %lld bytes: Direct has none", p.slots,
                   static_cast<long long>(p.slot_bytes)));
  if (p.protocol != kDirect &&
      (p.slots < 1 || p.slots > 1 << 20 || p.slot_bytes < 1 || p.slot_bytes > int64_t(1) << 32))
    invalid(format("%d slots of %lld bytes", p.slots, static_cast<long long>(p.slot_bytes)));
  if (uint64_t(wire_.depth()) * 4 > comm->flag_modulus)
    invalid(format("%d slots need a flag modulus of at least %lld", p.slots, 4LL * wire_.depth()));
  // Only an empty table may be null: of a program without thread blocks, say.
  if (p.n_deps < 0 || p.n_divides < 0 || !p.tbs || !p.chunks || !p.base_buf || !p.base_chunk ||
      (p.n_deps && !p.deps) || (p.n_divides && !p.divides))
    invalid("a program lacks a table");
  int64_t blocks = 0, steps = 0;
  for (int32_t r = 0; r < comm->ranks(); r++) {
    if (p.tbs[r] < 0) invalid(format("rank %d has %d thread blocks", r, p.tbs[r]));
    blocks += p.tbs[r];
  }
  if (blocks && !p.steps_per_tb) invalid("a program lacks a table");
  for (int64_t i = 0; i < blocks; i++) steps += p.steps_per_tb[i] > 0;
  if (steps && !p.steps) invalid("a program lacks a table");
  for (int32_t r = 0; r < comm->ranks(); r++) {
    for (int32_t b = 0; b < 3; b++) {
      const int32_t i = 3 * r + b, owner = p.base_buf[i];
      if (p.chunks[i] < 0 || owner < 0 || owner > 2 || p.base_buf[3 * r + owner] != owner ||
          p.base_chunk[i] < 0 || (owner == b && p.base_chunk[i] != 0) ||
          int64_t(p.base_chunk[i]) + p.chunks[i] > p.chunks[3 * r + owner])
        invalid(format("rank %d buffer %d: %d chunks inside buffer %d from chunk %d on", r, b,
                       p.chunks[i], owner, p.base_chunk[i]));
    }
  }
  for (int64_t i = 0; i < p.n_divides; i++) {
    const mscclsh_divide &d = p.divides[i];
    if (d.rank < 0 || d.rank >= comm->ranks() || d.chunk < 0 || d.count < 0 || d.divisor < 1 ||
        int64_t(d.chunk) + d.count > p.chunks[3 * d.rank + 1])
      invalid(format("division %lld is out of range", static_cast<long long>(i)));
  }
}

std::string Prog::name(const ThreadBlock &tb, int32_t step) const {
  return format("rank %d thread block %d step %d", tb.rank, tb.tb, step);
}

void Prog::check_step(const ThreadBlock &tb, int32_t i) const {
  const mscclsh_step &s = steps_[size_t(tb.first_step + i)];
  if (s.kind < kNop || s.kind > kReduce)
    invalid(name(tb, i) + format(": %d is no kind of step", s.kind));
  if (s.kind != kNop && s.count < 1) invalid(name(tb, i) + format(": %d chunks", s.count));
  auto place = [&](const char *what, int32_t buf, int32_t chunk) {
    if (buf < 0 || buf > 2 || chunk < 0 ||
        int64_t(chunk) + s.count > chunks_[size_t(3 * tb.rank + buf)])
      invalid(name(tb, i) + format(": its %s is chunks %d to %lld of buffer %d", what, chunk,
                                   static_cast<long long>(chunk) + s.count, buf));
  };
  if (reads_src(s.kind)) place("source", s.src_buf, s.src_chunk);
  if (writes_dst(s.kind)) place("destination", s.dst_buf, s.dst_chunk);
  if (s.dep_start < 0 || s.dep_end < s.dep_start || size_t(s.dep_end) > deps_.size() ||
      s.dep_end - s.dep_start > UINT16_MAX)
    invalid(name(tb, i) + format(": dependencies %d to %d", s.dep_start, s.dep_end));
  for (int32_t k = s.dep_start; k < s.dep_end; k++) {
    const mscclsh_dep &d = deps_[size_t(k)];
    const int32_t first = first_tb_[size_t(tb.rank)], last = first_tb_[size_t(tb.rank) + 1];
    if (d.tb < 0 || d.tb >= last - first || d.step < 0 ||
        d.step >= tbs_[size_t(first + d.tb)].steps)
      invalid(name(tb, i) + format(": it waits for thread block %d step %d", d.tb, d.step));
  }
  auto peer = [&](int32_t r) {
    if (r < 0 || r >= comm->ranks() || r == tb.rank || s.chan < 0)
      invalid(name(tb, i) + format(": peer %d on channel %d", r, s.chan));
  };
  if (sends(s.kind)) peer(s.send_peer);
  if (receives(s.kind)) peer(s.recv_peer);
}

// find_ends gives every step its connections and sees to it that each end of a
// connection has one thread block.
void Prog::find_ends() {
  std::map<uint64_t *, const ThreadBlock *> owners;
  for (ThreadBlock &tb : tbs_) {
    tb.in.assign(size_t(tb.steps), -1);
    tb.out.assign(size_t(tb.steps), -1);
    for (int32_t i = 0; i < tb.steps; i++) {
      check_step(tb, i);
      const int32_t kind = steps_[size_t(tb.first_step + i)].kind;
      if (receives(kind)) use_end(&tb, i, false);
      if (sends(kind)) use_end(&tb, i, true);
    }
    for (const ThreadBlock::Use &u : tb.ends) {
      if (!comm->local(tb.rank)) break;  // its own process looks at it
      const ThreadBlock *&owner = owners[u.sends ? u.conn->send_seq : u.conn->recv_seq];
      if (owner != nullptr)
        invalid(
            format("rank %d: thread blocks %d and %d share the connection %s rank %d on "
                   "channel %d",
                   tb.rank, owner->tb, tb.tb, u.sends ? "to" : "from", u.peer, u.chan));
      owner = &tb;
    }
    if (tb.ends.size() > size_t(kMaxEnds))
      refused(format("rank %d thread block %d has %zu connections, more than %d", tb.rank, tb.tb,
                     tb.ends.size(), kMaxEnds));
  }
}

// find_extents finds what each device's tables take, and which part of each buffer steps
// touch; peers, too, touch only what is some step's.
void Prog::find_extents() {
  touched_.assign(chunks_.size(), Touched());
  auto touch = [&](int32_t rank, int32_t buf, int32_t chunk, int32_t count) {
    const size_t i = size_t(3 * rank + buf);
    Touched &t = touched_[size_t(3 * rank + base_buf_[i])];
    const int32_t begin = base_chunk_[i] + chunk, end = begin + count;
    const bool first = t.begin == t.end;
    t.begin = first ? begin : std::min(t.begin, begin);
    t.end = first ? end : std::max(t.end, end);
  };
  for (const ThreadBlock &tb : tbs_) {
    size_t deps = 0;
    for (int32_t i = tb.first_step; i < tb.first_step + tb.steps; i++) {
      const mscclsh_step &s = steps_[size_t(i)];
      if (reads_src(s.kind)) touch(tb.rank, s.src_buf, s.src_chunk, s.count);
      if (writes_dst(s.kind)) touch(tb.rank, s.dst_buf, s.dst_chunk, s.count);
      deps += size_t(s.dep_end - s.dep_start);
    }
    if (!comm->local(tb.rank)) continue;
    Grid &g = grids_[size_t(comm->device_of(tb.rank))];
    g.max_ends = std::max(g.max_ends, tb.ends.size());
    g.max_steps = std::max(g.max_steps, size_t(tb.steps));
    g.max_deps = std::max(g.max_deps, deps);
  }
  for (const mscclsh_divide &d : divides_)
    if (d.count > 0) touch(d.rank, 1, d.chunk, d.count);
}

void Prog::use_end(ThreadBlock *tb, int32_t step, bool sends) {
  const mscclsh_step &s = steps_[size_t(tb->first_step + step)];
  const int32_t peer = sends ? s.send_peer : s.recv_peer;
  size_t i = 0;
  while (i < tb->ends.size() &&
         !(tb->ends[i].sends == sends && tb->ends[i].peer == peer && tb->ends[i].chan == s.chan))
    i++;
  if (i == tb->ends.size()) {
    const Conn &c = sends ? comm->connect(tb->rank, peer, s.chan, wire_)
                          : comm->connect(peer, tb->rank, s.chan, wire_);
    tb->ends.push_back({&c, sends, peer, s.chan});
  }
  (sends ? tb->out : tb->in)[size_t(step)] = int32_t(i);
}

}  // namespace mscclsh
