// Reading a table's file: every offset and every bound is looked at once, here, so that
// nobody else has to.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "failure.h"
#include "options.h"
#include "table.h"

namespace mscclsh::nccl {

namespace {

constexpr uint64_t kAlign = 16;  // of all offsets

// Reader looks at what lies in a file.
class Reader {
 public:
  Reader(const unsigned char *bytes, uint64_t n) : bytes_(bytes), n_(n) {}

  // array fails for what is not n values of type T inside the file.
  template <class T>
  const T *array(uint64_t offset, int64_t n, const char *what) const {
    if (n < 0 || offset % kAlign != 0 || offset > n_ || uint64_t(n) > (n_ - offset) / sizeof(T))
      invalid(format("%s lie outside of it", what));
    return reinterpret_cast<const T *>(bytes_ + offset);
  }

  void text(uint64_t offset, const char *what) const {
    if (offset >= n_ || offset % kAlign != 0 ||
        std::memchr(bytes_ + offset, 0, size_t(n_ - offset)) == nullptr)
      invalid(format("%s lies outside of it", what));
  }

 private:
  const unsigned char *bytes_;
  uint64_t n_;
};

// common is the greatest number that divides both.
int64_t common(int64_t a, int64_t b) {
  while (b != 0) {
    const int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

void need(bool right, const char *what, int32_t i, const char *bad) {
  if (!right) invalid(format("%s %d %s", what, i, bad));
}

void check_header(const mscclsh_table_header &h, uint64_t n) {
  if (n < sizeof h || std::memcmp(h.magic, MSCCLSH_TABLE_MAGIC, sizeof h.magic) != 0)
    invalid("it is no table of algorithms");
  if (h.version != MSCCLSH_TABLE_VERSION || h.header_bytes != sizeof h)
    invalid(format("it is of version %u, and this library reads version %d: build it anew",
                   h.version, MSCCLSH_TABLE_VERSION));
  if (h.abi != MSCCLSH_ABI)
    invalid(
        format("its programs are laid out for version %u of the runtime's interface, which is %d: "
               "build it anew",
               h.abi, MSCCLSH_ABI));
  const uint64_t none[5] = {};
  if (h.zero != 0 || std::memcmp(h.zeros, none, sizeof none) != 0)
    invalid("its header has values where it should have none");
  if (h.file_bytes != n)
    invalid(format("it has %llu bytes and should have %llu", static_cast<unsigned long long>(n),
                   static_cast<unsigned long long>(h.file_bytes)));
}

// check_places is about where entries, programs and the first string lie: one behind the other.
// The digest leaves the header out: this way no count and no place in it can be another one
// unnoticed.
void check_places(const mscclsh_table_header &h) {
  if (h.n_entries > INT32_MAX || h.n_programs > INT32_MAX) invalid("it has too many entries");
  const auto behind = [](uint64_t at, uint64_t n, size_t size) {
    return (at + n * size + kAlign - 1) / kAlign * kAlign;
  };
  const uint64_t programs = behind(sizeof h, h.n_entries, sizeof(mscclsh_table_entry));
  const uint64_t made_by = behind(programs, h.n_programs, sizeof(mscclsh_table_program));
  if (h.entries != (h.n_entries > 0 ? sizeof h : 0) ||
      h.programs != (h.n_programs > 0 ? programs : 0) || h.made_by != made_by)
    invalid("its entries and programs don't lie where its header says");
}

// add_up is the sum of a number of each rank.
int64_t add_up(const int32_t *each, int32_t n, int32_t i, const char *bad) {
  int64_t total = 0;
  for (int32_t r = 0; r < n; r++) {
    need(each[r] >= 0, "program", i, bad);
    total += each[r];
  }
  return total;
}

bool within(int32_t start, int32_t end, int64_t n) {
  return start >= 0 && start <= end && end <= n;
}

// check_one is about what a one-sided program has beside: that nothing in it leads out of it.
// What its operations make of it is looked at where it is loaded.
void check_one(const Reader &in, const mscclsh_table_program &p, int32_t i) {
  const char *const what = "program";
  const mscclsh_table_one &o = *in.array<mscclsh_table_one>(p.one, 1, "a program's operations");
  need(p.slots == 0 && p.slot_bytes == 0 && p.max_regime == 1 && p.n_steps == 0 && p.n_deps == 0 &&
           p.steps_per_tb == 0,
       what, i, "is one-sided and has slots or steps");
  need(uint32_t(o.packets) <= 1 && uint32_t(o.double_scratch) <= 1 &&
           p.protocol == (o.packets ? MSCCLSH_LL : MSCCLSH_SIMPLE),
       what, i, "has packets of no protocol");
  need(o.alignment >= 1 && o.threads >= 1 && o.threads <= 1 << 16, what, i,
       "has ranges or blocks without a size");
  const mscclsh_span *blocks =
      in.array<mscclsh_span>(o.blocks, p.tbs_total, "a program's thread blocks");
  for (int32_t b = 0; b < p.tbs_total; b++)
    need(within(blocks[b].start, blocks[b].end, o.n_ops), what, i,
         "has thread blocks of operations that are not there");
  need(o.n_ops <= INT32_MAX && o.n_operands <= INT32_MAX && o.n_refs <= INT32_MAX, what, i,
       "has too many operations");
  need(add_up(in.array<int32_t>(o.n_channels, p.ranks, "a program's channels"), p.ranks, i,
              "has negative numbers of channels") == o.all_channels,
       what, i, "counts its channels wrong");
  need(add_up(in.array<int32_t>(o.n_semaphores, p.ranks, "a program's semaphores"), p.ranks, i,
              "has negative numbers of semaphores") == o.all_semaphores,
       what, i, "counts its semaphores wrong");
  const mscclsh_channel *channels =
      in.array<mscclsh_channel>(o.channels, o.all_channels, "a program's channels");
  for (int64_t c = 0; c < o.all_channels; c++)
    need(uint32_t(channels[c].kind) <= MSCCLSH_VIA_PORT &&
             uint32_t(channels[c].peer) < uint32_t(p.ranks) && channels[c].zero == 0,
         what, i, "has a channel that is none");
  in.array<int32_t>(o.semaphores, o.all_semaphores, "a program's semaphores");
  in.array<int32_t>(o.refs, o.n_refs, "a program's references");
  const mscclsh_operand *operands =
      in.array<mscclsh_operand>(o.operands, o.n_operands, "a program's operands");
  for (int64_t k = 0; k < o.n_operands; k++)
    need(uint32_t(operands[k].rank) < uint32_t(p.ranks) && uint32_t(operands[k].buf) <= 2 &&
             operands[k].index >= 0 && operands[k].size >= 1 &&
             uint32_t(operands[k].packets) <= 1 && operands[k].zero == 0,
         what, i, "has an operand that is none");
  const mscclsh_op *ops = in.array<mscclsh_op>(o.ops, o.n_ops, "a program's operations");
  for (int64_t k = 0; k < o.n_ops; k++) {
    const mscclsh_op &x = ops[k];
    need(uint32_t(x.kind) <= MSCCLSH_OP_PIPELINE && uint32_t(x.via) < MSCCLSH_VIA_SWITCH &&
             uint32_t(x.reduce) <= 4 && within(x.src_start, x.src_end, o.n_operands) &&
             within(x.dst_start, x.dst_end, o.n_operands) &&
             within(x.ref_start, x.ref_end, o.n_refs) && within(x.body_start, x.body_end, o.n_ops),
         what, i, "has an operation that is none");
  }
}

void check_program(const Reader &in, const mscclsh_table_program &p, int32_t i) {
  const char *const what = "program";
  in.text(p.title, "a program's title");
  need(p.ranks >= 1 && p.ranks <= 1 << 20, what, i, "has no ranks");
  need(p.tbs_total >= 0 && p.count_chunks >= 1 && p.scratch_chunks >= 0 && p.max_regime >= 0 &&
           p.slot_bytes >= 0,
       what, i, "has negative sizes");
  need(p.protocol >= MSCCLSH_SIMPLE && p.protocol <= MSCCLSH_DIRECT &&
           (p.protocol == MSCCLSH_DIRECT || p.one != 0 ? p.slots == 0 && p.slot_bytes == 0
                                                       : p.slots >= 1 && p.slot_bytes >= 1),
       what, i, "has no protocol or slots that there are");
  need(p.max_regime <= INT32_MAX, what, i, "has messages too large");
  const int32_t *tbs = in.array<int32_t>(p.tbs, p.ranks, "a program's thread blocks");
  int64_t total = 0, steps = 0;
  for (int32_t r = 0; r < p.ranks; r++) {
    need(tbs[r] >= 0, what, i, "has negative numbers of thread blocks");
    total += tbs[r];
  }
  need(total == p.tbs_total, what, i, "counts its thread blocks wrong");
  const int64_t with_steps = p.one != 0 ? 0 : total;
  const int32_t *per = in.array<int32_t>(p.steps_per_tb, with_steps, "a program's thread blocks");
  for (int64_t t = 0; t < with_steps; t++) {
    need(per[t] >= 0, what, i, "has negative numbers of steps");
    steps += per[t];
  }
  need(steps == p.n_steps, what, i, "counts its steps wrong");
  const mscclsh_step *all = in.array<mscclsh_step>(p.steps, steps, "a program's steps");
  for (int64_t s = 0; s < steps; s++)
    need(all[s].count >= 0 && all[s].src_chunk >= 0 && all[s].dst_chunk >= 0 &&
             uint32_t(all[s].src_buf) <= 2 && uint32_t(all[s].dst_buf) <= 2 &&
             uint32_t(all[s].kind) <= MSCCLSH_REDUCE,
         what, i, "has a step that is none");
  in.array<mscclsh_dep>(p.deps, p.n_deps, "a program's dependencies");
  in.array<mscclsh_divide>(p.divides, p.n_divides, "a program's divisions");
  const int64_t places = 3 * int64_t(p.ranks);
  const int32_t *chunks = in.array<int32_t>(p.chunks, places, "a program's buffers");
  const int32_t *base = in.array<int32_t>(p.base_buf, places, "a program's buffers");
  const int32_t *first = in.array<int32_t>(p.base_chunk, places, "a program's buffers");
  for (int64_t b = 0; b < places; b++)
    need(chunks[b] >= 0 && first[b] >= 0 && uint32_t(base[b]) <= 2, what, i,
         "has buffers that lie nowhere");
  if (p.one != 0) check_one(in, p, i);
}

// Reach is what a one-sided program touches and reduces by.
struct Reach {
  bool peers = false;   // other ranks' input or output
  bool inputs = false;  // it writes what it names as an input
  uint32_t ops = ~0u;   // bit o: it can reduce by operation o
  int64_t unit = 0;     // a number that all units of its pipelines are multiples of; 0: none
};

Reach reach_of(const Table &t, int32_t program) {
  const mscclsh_one_program p = t.one_flat(program);
  const uint32_t kSum = 1 << 0 | 1 << 4;                          // of which averages are made
  const uint32_t kFixed[] = {~0u, kSum, 1 << 2, 1 << 3, 1 << 1};  // by run, sum, min, max, prod
  Reach to;
  auto look = [&](int32_t rank, const mscclsh_op &x) {
    const bool reduces = (x.kind >= MSCCLSH_OP_RE && x.kind <= MSCCLSH_OP_RRES) ||
                         (x.kind >= MSCCLSH_OP_REPKT && x.kind <= MSCCLSH_OP_RECSPKT);
    if (reduces) to.ops &= kFixed[x.reduce];
    if (x.kind == MSCCLSH_OP_PIPELINE) to.unit = common(to.unit, x.unit_bytes);
    for (int32_t k = x.src_start; k < x.src_end; k++)
      to.peers |= p.operands[k].buf != 2 && p.operands[k].rank != rank;
    for (int32_t k = x.dst_start; k < x.dst_end; k++) {
      to.peers |= p.operands[k].buf != 2 && p.operands[k].rank != rank;
      to.inputs |= p.operands[k].buf == 0;
    }
  };
  int32_t block = 0;
  for (int32_t r = 0; r < t.program(program).ranks; r++)
    for (int32_t b = 0; b < p.tbs[r]; b++, block++)
      for (int32_t i = p.blocks[block].start; i < p.blocks[block].end; i++) {
        look(r, p.ops[i]);
        for (int32_t k = p.ops[i].body_start; k < p.ops[i].body_end; k++) look(r, p.ops[k]);
      }
  return to;
}

// check_one_entry is about an entry's one-sided program.
void check_one_entry(const mscclsh_table_entry &e, int32_t i, const Table &t, int32_t program) {
  const char *const what = "entry";
  const Reach reach = reach_of(t, program);
  const int64_t alignment = t.one(program)->alignment;
  need(reach.peers == (e.memory == MSCCLSH_WINDOWS), what, i,
       "has a one-sided program for other memory");
  need(e.mixable == (e.in_place == e.out_of_place), what, i,
       "mixes one-sided programs that can't meet");
  need(!e.mixable || !reach.inputs, what, i, "has a program for both places that writes inputs");
  for (int32_t d = 0; d < kDtypes; d++)
    need(!(e.dtypes >> d & 1) ||
             (alignment % dtype_bytes(d) == 0 && reach.unit % dtype_bytes(d) == 0),
         what, i, "has a program that cuts elements");
  need(!reduces(e.collective) || (e.ops & ~reach.ops) == 0, what, i,
       "has a program that reduces by something else");
}

void check_entry(const Reader &in, const mscclsh_table_entry &e, int32_t i, const Table &t) {
  const char *const what = "entry";
  in.text(e.name, "an entry's name");
  in.text(e.source, "an entry's source");
  need(e.collective >= 0 && e.collective < MSCCLSH_COLLECTIVES, what, i, "is of no collective");
  need(e.ranks >= 1 && e.nodes >= 1, what, i, "has no ranks");
  need(e.root >= -1 && e.root < e.ranks, what, i, "has a root that is no rank");
  need(e.min_bytes <= e.max_bytes && e.max_bytes <= INT64_MAX, what, i, "has no bytes");
  need(e.multiple >= 1, what, i, "has no multiple");
  need(e.alignment >= 1 && (e.alignment & (e.alignment - 1)) == 0, what, i,
       "has an alignment that is no power of two");
  need(e.memory == MSCCLSH_ANY_MEMORY || e.memory == MSCCLSH_WINDOWS, what, i,
       "demands no memory that there is");
  need(e.threads >= 0 && e.max_blocks >= 0, what, i, "has negative numbers of threads");
  need(e.mixable == 0 || (e.in_place >= 0 && e.out_of_place >= 0), what, i,
       "mixes programs that it has not got");
  need(e.in_place >= 0 || e.out_of_place >= 0, what, i, "has no program");
  for (const int32_t p : {e.in_place, e.out_of_place}) {
    need(p >= -1 && p < t.programs(), what, i, "names a program that is not there");
    if (p < 0) continue;
    need(t.program(p).ranks == e.ranks, what, i, "has a program for other ranks");
    need(e.multiple % t.program(p).count_chunks == 0, what, i,
         "has a multiple that leaves chunks unequal");
    need(e.memory == MSCCLSH_WINDOWS || t.program(p).protocol != MSCCLSH_DIRECT, what, i,
         "runs Direct in memory that is in no window");
    need(e.unit == (t.one(p) != nullptr ? t.one(p)->alignment : 1), what, i,
         "has chunks that its program cuts otherwise");
    if (t.one(p) != nullptr) check_one_entry(e, i, t, p);
  }
}

// ordered is the order of entries, by which the first that matches is the best.
bool ordered(const Table &t, int32_t i) {
  const mscclsh_table_entry &a = t.entry(i), &b = t.entry(i + 1);
  if (a.collective != b.collective) return a.collective < b.collective;
  if (a.ranks != b.ranks) return a.ranks < b.ranks;
  if (a.priority != b.priority) return a.priority > b.priority;
  if (a.min_bytes != b.min_bytes) return a.min_bytes < b.min_bytes;
  return std::strcmp(t.text(a.name), t.text(b.name)) < 0;
}

}  // namespace

// The file's own digest leaves the header out; ranks have to agree on its counts too.
uint64_t Table::digest() const { return mix_bytes(header().digest, bytes_, sizeof header()); }

bool Table::check(std::string *why) try {
  const Reader in(bytes_, size_);
  if (size_ < sizeof(mscclsh_table_header)) invalid("it is no table of algorithms");
  const mscclsh_table_header &h = header();
  check_header(h, size_);
  if (h.digest != mix_bytes(kDigest, bytes_ + sizeof h, size_ - sizeof h))
    invalid("it is damaged: its digest is another");
  check_places(h);
  in.text(h.made_by, "its maker's name");
  entries_ = in.array<mscclsh_table_entry>(h.entries, h.n_entries, "its entries");
  programs_ = in.array<mscclsh_table_program>(h.programs, h.n_programs, "its programs");
  for (int32_t i = 0; i < programs(); i++) check_program(in, program(i), i);
  for (int32_t i = 0; i < entries(); i++) check_entry(in, entry(i), i, *this);
  for (int32_t i = 0; i + 1 < entries(); i++)
    need(ordered(*this, i), "entry", i, "is out of order");
  return true;
} catch (const Failure &f) {
  *why = "the table of algorithms " + name_ + " can't be used: " + f.what();
  return false;
}

std::unique_ptr<Table> Table::over(const void *bytes, size_t n, const std::string &name,
                                   std::string *why) {
  std::unique_ptr<Table> t(new Table);
  t->name_ = name;
  t->bytes_ = static_cast<const unsigned char *>(bytes);
  t->size_ = n;
  if (!t->check(why)) return nullptr;
  return t;
}

namespace {

// read_whole reads a file into memory, or says why it can't. A mapping would not do: a file
// that is written anew in its place while a job runs would end it, or change its table.
bool read_whole(const std::string &path, std::unique_ptr<unsigned char[]> *to, size_t *n,
                std::string *why) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe may be silent
  struct stat s = {};
  if (fd < 0 || fstat(fd, &s) != 0) {
    *why = std::strerror(errno);
    if (fd >= 0) close(fd);
    return false;
  }
  *why = !S_ISREG(s.st_mode) ? "it is no file" : s.st_size == 0 ? "it is empty" : "";
  size_t got = 0;
  if (why->empty()) {
    *n = size_t(s.st_size);
    to->reset(new unsigned char[*n]);  // aligned to 16, as all that new gives
  }
  while (why->empty() && got < *n) {
    const ssize_t k = ::read(fd, to->get() + got, *n - got);
    if (k > 0)
      got += size_t(k);
    else if (k == 0)
      *why = "it has become shorter";
    else if (errno != EINTR)
      *why = std::strerror(errno);
  }
  close(fd);
  return why->empty();
}

}  // namespace

std::unique_ptr<Table> Table::open(const std::string &path, std::string *why) {
  std::unique_ptr<Table> t(new Table);
  std::string reason;
  if (!read_whole(path, &t->own_, &t->size_, &reason)) {
    *why = "the table of algorithms " + path + " can't be read: " + reason;
    return nullptr;
  }
  t->name_ = path;
  t->bytes_ = t->own_.get();
  if (!t->check(why)) return nullptr;
  return t;
}

}  // namespace mscclsh::nccl
