#include "bundle.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

namespace {

enum { kIn, kOut };

// Maker adds steps to a program.
class Maker {
 public:
  explicit Maker(const Shape &s) : shape_(s), n_(s.ranks), m_(s.parts) {
    p_.ranks = n_;
    p_.protocol = s.protocol;
    if (s.protocol == MSCCLSH_SIMPLE) p_.slots = 2, p_.slot_bytes = 65536;
    if (s.protocol == MSCCLSH_DIRECT) p_.slots = 0, p_.slot_bytes = 0;
    p_.count_chunks = m_;
    p_.steps.resize(size_t(n_));
    for (auto &of : p_.steps) of.resize(s.protocol == MSCCLSH_DIRECT ? 2 : 1);
    for (int32_t r = 0; r < n_; r++)
      for (int32_t b = 0; b < 3; b++) {
        p_.chunks.push_back(0);
        p_.base_buf.push_back(b);
        p_.base_chunk.push_back(0);
      }
  }

  // buffers says how many blocks of the count rank r has, and where, in place, the smaller
  // buffer lies in the larger.
  void buffers(int32_t r, int32_t in, int32_t out, int32_t at) {
    p_.chunks[size_t(3 * r + kIn)] = in * m_;
    p_.chunks[size_t(3 * r + kOut)] = out * m_;
    if (!shape_.in_place || in == 0 || out == 0) return;
    const int32_t inner = in < out ? kIn : kOut;
    p_.base_buf[size_t(3 * r + inner)] = 1 - inner;
    p_.base_chunk[size_t(3 * r + inner)] = in == out ? 0 : at * m_;
  }
  void send(int32_t r, int32_t peer, int32_t block) {
    step(r, MSCCLSH_SEND, block, 0).send_peer = peer;
  }
  void recv(int32_t r, int32_t peer, int32_t block) {
    step(r, MSCCLSH_RECV, 0, block).recv_peer = peer;
  }
  // own takes block from of the input to block to of the output.
  void own(int32_t r, int32_t from, int32_t to) {
    if (!shape_.in_place) step(r, MSCCLSH_COPY, from, to);
  }
  // add receives a block from a peer and adds it to block to of the output.
  void add(int32_t r, int32_t peer, int32_t to) {
    mscclsh_step &s = step(r, MSCCLSH_RRC, to, to);
    s.src_buf = kOut;
    s.recv_peer = peer;
  }
  void divide(int32_t r, int32_t blocks) { p_.divides.push_back({r, 0, blocks * m_, n_}); }
  HandProgram done() { return std::move(p_); }

 private:
  mscclsh_step &step(int32_t r, int32_t kind, int32_t src, int32_t dst) {
    mscclsh_step s = {};
    s.kind = kind;
    s.src_buf = kIn;
    s.src_chunk = src * m_;
    s.dst_buf = kOut;
    s.dst_chunk = dst * m_;
    s.count = m_;
    s.send_peer = s.recv_peer = -1;
    auto &of = p_.steps[size_t(r)];
    std::vector<mscclsh_step> &steps = kind == MSCCLSH_SEND ? of.front() : of.back();
    steps.push_back(s);
    return steps.back();
  }

  const Shape shape_;
  const int32_t n_, m_;
  HandProgram p_;
};

void make_reducing(Maker &m, const Shape &s, int32_t r) {
  const int32_t n = s.ranks;
  const bool scatters = s.collective == MSCCLSH_REDUCESCATTER;
  const bool gets = s.collective != MSCCLSH_REDUCE_TO_ROOT || r == s.root;
  m.buffers(r, scatters ? n : 1, gets ? 1 : 0, r);
  for (int32_t p = 0; p < n; p++)
    if (p != r && (s.collective != MSCCLSH_REDUCE_TO_ROOT || p == s.root))
      m.send(r, p, scatters ? p : 0);
  if (!gets) return;
  m.own(r, scatters ? r : 0, 0);
  for (int32_t p = 0; p < n; p++)
    if (p != r) m.add(r, p, 0);
  m.divide(r, 1);
}

void make_moving(Maker &m, const Shape &s, int32_t r) {
  const int32_t n = s.ranks, c = s.collective;
  const bool from_root = c == MSCCLSH_BROADCAST || c == MSCCLSH_SCATTER;
  const bool gives = !from_root || r == s.root, gets = c != MSCCLSH_GATHER || r == s.root;
  const bool parts = c == MSCCLSH_ALLTOALL || c == MSCCLSH_SCATTER;  // another for each
  const bool gathers = c == MSCCLSH_ALLTOALL || c == MSCCLSH_ALLGATHER || c == MSCCLSH_GATHER;
  m.buffers(r, gives ? (parts ? n : 1) : 0, gets ? (gathers ? n : 1) : 0, r);
  for (int32_t p = 0; p < n && gives; p++)
    if (p != r && (c != MSCCLSH_GATHER || p == s.root)) m.send(r, p, parts ? p : 0);
  if (gives && gets) m.own(r, parts ? r : 0, gathers ? r : 0);
  for (int32_t p = 0; p < n && gets; p++)
    if (p != r && (!from_root || p == s.root)) m.recv(r, p, gathers ? p : 0);
}

bool reducing(int32_t c) {
  return c == MSCCLSH_ALLREDUCE || c == MSCCLSH_REDUCESCATTER || c == MSCCLSH_REDUCE_TO_ROOT;
}

const char *const kNames[] = {"allreduce", "allgather", "reducescatter", "broadcast", "reduce",
                              "alltoall",  "gather",    "scatter",       "sendrecv"};

}  // namespace

HandProgram straight(const Shape &shape) {
  Maker m(shape);
  for (int32_t r = 0; r < shape.ranks; r++) {
    if (reducing(shape.collective)) {
      make_reducing(m, shape, r);
    } else {
      make_moving(m, shape, r);
    }
  }
  HandProgram p = m.done();
  p.title = std::string("straight ") + kNames[shape.collective];
  return p;
}

mscclsh_table_entry &Bundle::add(Shape shape, uint64_t min, uint64_t max, const std::string &name) {
  mscclsh_table_entry e = {};
  e.min_bytes = min;
  e.max_bytes = max;
  e.multiple = shape.parts;
  e.unit = 1;
  e.alignment = 1;
  e.collective = shape.collective;
  e.ranks = shape.ranks;
  e.nodes = 1;
  e.root = shape.root;
  e.dtypes = (1u << 12) - 1;
  e.ops = reducing(shape.collective) ? (1u << 5) - 1 : ~0u;
  e.memory = shape.protocol == MSCCLSH_DIRECT ? MSCCLSH_WINDOWS : MSCCLSH_ANY_MEMORY;
  e.max_blocks = shape.protocol == MSCCLSH_DIRECT ? 2 : 1;
  e.out_of_place = int32_t(programs.size());
  shape.in_place = false;
  programs.push_back(straight(shape));
  e.in_place = -1;
  if (shape.collective != MSCCLSH_ALLTOALL) {
    shape.in_place = true;
    e.in_place = int32_t(programs.size());
    e.mixable = 1;
    programs.push_back(straight(shape));
  }
  const std::string whole =
      !name.empty() ? name
                    : kNames[shape.collective] + std::string("_") + std::to_string(shape.ranks) +
                          (shape.root >= 0 ? "_root" + std::to_string(shape.root) : "");
  entries.push_back({whole, e});
  return entries.back().entry;
}

mscclsh_table_entry &Bundle::add_one(Shape shape, Way way, uint64_t min, uint64_t max,
                                     const std::string &name) {
  const bool windows = way == Way::kGets || way == Way::kPorts;
  shape.protocol = way == Way::kPackets ? MSCCLSH_LL : MSCCLSH_SIMPLE;
  mscclsh_table_entry &e = add(shape, min, max, name);
  programs.resize(size_t(e.out_of_place));
  e.unit = kUnit;
  e.memory = windows ? MSCCLSH_WINDOWS : MSCCLSH_ANY_MEMORY;
  e.max_blocks = way == Way::kPipeline ? 2 : 1;
  e.mixable = !windows;
  shape.in_place = false;
  programs.push_back(one_straight(shape, way));
  e.in_place = windows ? -1 : e.out_of_place;
  if (windows && shape.collective != MSCCLSH_ALLTOALL) {
    shape.in_place = true;
    e.in_place = int32_t(programs.size());
    programs.push_back(one_straight(shape, way));
  }
  return e;
}

namespace {

// File is a file in the making: everything is appended at a multiple of 16.
class File {
 public:
  template <class T>
  uint64_t put(const T *values, size_t n) {
    while (bytes.size() % 16 != 0) bytes.push_back(0);
    const uint64_t at = bytes.size();
    const unsigned char *from = reinterpret_cast<const unsigned char *>(values);
    bytes.insert(bytes.end(), from, from + n * sizeof(T));
    return at;
  }
  uint64_t text(const std::string &s) { return put(s.c_str(), s.size() + 1); }

  std::vector<unsigned char> bytes;
};

// put_one puts what a one-sided program has beside, and tells of its thread blocks.
uint64_t put_one(File &f, const HandOne &o) {
  mscclsh_table_one t = {};
  t.blocks = f.put(o.blocks.data(), o.blocks.size());
  t.n_channels = f.put(o.n_channels.data(), o.n_channels.size());
  t.channels = f.put(o.channels.data(), o.channels.size());
  t.n_semaphores = f.put(o.n_semaphores.data(), o.n_semaphores.size());
  t.semaphores = f.put(o.semaphores.data(), o.semaphores.size());
  t.ops = f.put(o.ops.data(), o.ops.size());
  t.operands = f.put(o.operands.data(), o.operands.size());
  t.refs = f.put(o.refs.data(), o.refs.size());
  t.n_ops = int64_t(o.ops.size());
  t.n_operands = int64_t(o.operands.size());
  t.n_refs = int64_t(o.refs.size());
  t.all_channels = int64_t(o.channels.size());
  t.all_semaphores = int64_t(o.semaphores.size());
  t.packets = o.packets;
  t.double_scratch = o.double_scratch;
  t.alignment = kUnit;
  t.threads = 3;
  return f.put(&t, 1);
}

mscclsh_table_program put_program(File &f, const HandProgram &p) {
  std::vector<int32_t> tbs, lengths;
  std::vector<mscclsh_step> steps;
  for (const auto &of_rank : p.steps) {
    int32_t n = 0;
    for (const std::vector<mscclsh_step> &tb : of_rank) {
      if (tb.empty()) continue;
      lengths.push_back(int32_t(tb.size()));
      steps.insert(steps.end(), tb.begin(), tb.end());
      n++;
    }
    tbs.push_back(n);
  }
  mscclsh_table_program t = {};
  if (p.one != nullptr) tbs = p.one->tbs;
  t.tbs = f.put(tbs.data(), tbs.size());
  t.steps_per_tb = f.put(lengths.data(), lengths.size());
  t.steps = f.put(steps.data(), steps.size());
  t.deps = f.put<mscclsh_dep>(nullptr, 0);
  t.chunks = f.put(p.chunks.data(), p.chunks.size());
  t.base_buf = f.put(p.base_buf.data(), p.base_buf.size());
  t.base_chunk = f.put(p.base_chunk.data(), p.base_chunk.size());
  t.divides = f.put(p.divides.data(), p.divides.size());
  t.title = f.text(p.title);
  t.n_steps = int64_t(steps.size());
  t.n_divides = int64_t(p.divides.size());
  t.slot_bytes = p.slot_bytes;
  t.count_chunks = p.count_chunks;
  t.max_regime = 71;
  t.ranks = p.ranks;
  t.tbs_total = int32_t(lengths.size());
  t.slots = p.slots;
  t.protocol = p.protocol;
  if (p.one == nullptr) return t;
  t.one = put_one(f, *p.one);
  t.tbs_total = int32_t(p.one->blocks.size());
  t.max_regime = 1;
  t.slots = 0;
  t.slot_bytes = 0;
  t.steps_per_tb = t.steps = t.deps = 0;
  for (size_t i = 2; i < p.chunks.size(); i += 3)
    t.scratch_chunks = std::max(t.scratch_chunks, int64_t(p.chunks[i]) * (p.one->packets ? 2 : 1) *
                                                      (p.one->double_scratch ? 2 : 1));
  return t;
}

bool before(const HandEntry &a, const HandEntry &b) {
  const mscclsh_table_entry &x = a.entry, &y = b.entry;
  if (x.collective != y.collective) return x.collective < y.collective;
  if (x.ranks != y.ranks) return x.ranks < y.ranks;
  if (x.priority != y.priority) return x.priority > y.priority;
  if (x.min_bytes != y.min_bytes) return x.min_bytes < y.min_bytes;
  return a.name < b.name;
}

}  // namespace

std::vector<unsigned char> Bundle::bytes() const {
  std::vector<HandEntry> sorted = entries;
  std::sort(sorted.begin(), sorted.end(), before);
  File f;
  mscclsh_table_header h = {};
  f.put(&h, 1);
  // What follows the header stands there in this order; it is filled in at the end.
  std::vector<mscclsh_table_entry> written(sorted.size());
  std::vector<mscclsh_table_program> made(programs.size());
  if (!written.empty()) h.entries = f.put(written.data(), written.size());
  if (!made.empty()) h.programs = f.put(made.data(), made.size());
  h.made_by = f.text("by hand");
  for (size_t i = 0; i < programs.size(); i++) made[i] = put_program(f, programs[i]);
  for (size_t i = 0; i < sorted.size(); i++) {
    written[i] = sorted[i].entry;
    written[i].name = f.text(sorted[i].name);
    written[i].source = f.text("by hand:" + std::to_string(i + 1));
  }
  std::memcpy(h.magic, MSCCLSH_TABLE_MAGIC, sizeof h.magic);
  h.version = MSCCLSH_TABLE_VERSION;
  h.header_bytes = sizeof h;
  h.n_programs = uint32_t(made.size());
  h.n_entries = uint32_t(written.size());
  h.abi = MSCCLSH_ABI;
  f.put<unsigned char>(nullptr, 0);
  h.file_bytes = f.bytes.size();
  std::memcpy(f.bytes.data(), &h, sizeof h);
  if (!written.empty())
    std::memcpy(f.bytes.data() + h.entries, written.data(), written.size() * sizeof written[0]);
  if (!made.empty())
    std::memcpy(f.bytes.data() + h.programs, made.data(), made.size() * sizeof made[0]);
  sign(f.bytes);
  return f.bytes;
}

void sign(std::vector<unsigned char> &file) {
  uint64_t digest = 14695981039346656037u;
  for (size_t i = sizeof(mscclsh_table_header); i < file.size(); i++)
    digest = (digest ^ file[i]) * 1099511628211u;
  std::memcpy(file.data() + offsetof(mscclsh_table_header, digest), &digest, sizeof digest);
}

void write_file(const std::string &path, const std::vector<unsigned char> &bytes) {
  FILE *f = std::fopen(path.c_str(), "wb");
  if (f == nullptr || std::fwrite(bytes.data(), 1, bytes.size(), f) != bytes.size() ||
      std::fclose(f) != 0) {
    std::fprintf(stderr, "writing %s failed\n", path.c_str());
    std::exit(1);
  }
}

namespace {

// of_all has f add an entry for each collective of so many ranks, and each root.
template <class F>
Bundle of_all(const std::vector<int32_t> &ranks, F f) {
  Bundle b;
  for (const int32_t n : ranks) {
    for (int32_t c = 0; c < MSCCLSH_SENDRECV; c++) {
      const bool rooted = c == MSCCLSH_BROADCAST || c == MSCCLSH_REDUCE_TO_ROOT ||
                          c == MSCCLSH_GATHER || c == MSCCLSH_SCATTER;
      for (int32_t root = 0; root < (rooted ? n : 1); root++) {
        Shape s = {c, n};
        s.root = rooted ? root : -1;
        f(b, s);
      }
    }
  }
  return b;
}

}  // namespace

Bundle standard(const std::vector<int32_t> &ranks) {
  return of_all(ranks, [](Bundle &b, const Shape &s) { b.add(s, 1, 1 << 20); });
}

Bundle one_sided(const std::vector<int32_t> &ranks) {
  return of_all(ranks, [](Bundle &b, const Shape &s) { b.add_one(s, Way::kPackets, 1, 1 << 18); });
}
