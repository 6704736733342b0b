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

void check_program(const Reader &in, const mscclsh_table_program &p, int32_t i) {
  const char *const what = "program";
  in.text(p.title, "a program's title");
  need(p.ranks >= 1 && p.ranks <= 1 << 20, what, i, "has no ranks");
  need(p.tbs_total >= 0 && p.count_chunks >= 1 && p.scratch_chunks >= 0 && p.max_regime >= 0 &&
           p.slot_bytes >= 0,
       what, i, "has negative sizes");
  need(p.protocol >= MSCCLSH_SIMPLE && p.protocol <= MSCCLSH_DIRECT &&
           (p.protocol == MSCCLSH_DIRECT ? p.slots == 0 && p.slot_bytes == 0
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
  const int32_t *per = in.array<int32_t>(p.steps_per_tb, total, "a program's thread blocks");
  for (int64_t t = 0; t < total; t++) {
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
  in.text(h.made_by, "its maker's name");
  entries_ = in.array<mscclsh_table_entry>(h.entries, h.n_entries, "its entries");
  programs_ = in.array<mscclsh_table_program>(h.programs, h.n_programs, "its programs");
  if (h.n_entries > INT32_MAX || h.n_programs > INT32_MAX) invalid("it has too many entries");
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
