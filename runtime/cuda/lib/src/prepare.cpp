// Binding a program to a size: memory, message numbers, the kernel's tables.
#include <algorithm>

#include "prog.h"

namespace mscclsh {

namespace {

constexpr int32_t kElemBytes[kDTypes] = {4, 8, 2, 2, 1, 1, 1, 1, 4, 4, 8, 8};

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
      fit(&info);
    });
  } catch (...) {
    free_prepared();
    throw;
  }
  prepared_ = true;
  if (out != nullptr) *out = info;
}

// kernels finds those for a data type and a reduction, and a number of threads for them.
Sizing Prog::kernels(int32_t dtype, int32_t op, int32_t threads) const {
  if (dtype < 0 || dtype >= kDTypes || op < 0 || op >= kOps)
    invalid(format("data type %d or reduction %d is not known", dtype, op));
  const Kernels *k = kernels_of(DType(dtype));
  const int32_t with = op == kAvg ? int32_t(kSum) : op;
  Sizing s;
  s.kernel = k ? k->at[with][wire_.protocol] : nullptr;
  for (int32_t i = 0; i < 2; i++) s.quick[i] = k ? k->quick[i][with][wire_.protocol] : nullptr;
  s.divide = k ? k->divide : nullptr;
  if (s.kernel == nullptr)
    refused(format("this build (%s) leaves data type %d with reduction %d out", build_name(), dtype,
                   op));
  s.threads = threads ? threads : default_threads();
  if (s.threads < 1 || s.threads > kMaxThreads || s.threads % thread_unit())
    invalid(format("%d threads a block: want a multiple of %d up to %d", s.threads, thread_unit(),
                   kMaxThreads));
  s.elem = kElemBytes[dtype];
  return s;
}

// sizing checks a size and cuts it into tiles as the CPU interpreter does.
Sizing Prog::sizing(const mscclsh_size &size) const {
  Sizing s = kernels(size.dtype, size.op, size.threads);
  s.size = size;
  const int32_t elem = s.elem;
  if (size.chunk_bytes < 0 || size.chunk_bytes > kMostBytes || size.chunk_bytes % elem ||
      size.misalign < 0 || size.misalign > 256 || size.misalign % elem || size.regime < 1)
    invalid(format("chunks of %lld bytes, %d a message, misaligned by %d bytes, elements of %d",
                   static_cast<long long>(size.chunk_bytes), size.regime, size.misalign, elem));
  for (size_t i = 0; size.chunk_bytes > 0 && i < chunks_.size(); i++)
    if (chunks_[i] > kMostBytes / size.chunk_bytes)
      refused(format("rank %zu needs %d chunks of %lld bytes", i / 3, chunks_[i],
                     static_cast<long long>(size.chunk_bytes)));
  const bool direct = wire_.protocol == kDirect;
  if (!direct && wire_.slot_bytes < elem)
    refused(format("slots of %lld bytes can't carry elements of %d",
                   static_cast<long long>(wire_.slot_bytes), elem));
  s.tile_bytes =
      direct ? size.chunk_bytes : std::min(wire_.slot_bytes / elem * elem, size.chunk_bytes);
  s.tiles = s.tile_bytes ? (size.chunk_bytes + s.tile_bytes - 1) / s.tile_bytes : 0;
  if (!direct && size.regime > 1 &&
      (s.tiles > 1 || size.chunk_bytes > wire_.slot_bytes / size.regime))
    invalid(format("%d chunks of %lld bytes don't fit a slot of %lld bytes", size.regime,
                   static_cast<long long>(size.chunk_bytes),
                   static_cast<long long>(wire_.slot_bytes)));
  for (const ThreadBlock &tb : tbs_)
    if (s.tiles * int64_t(tb.steps) >= int64_t(1) << 31)
      refused(format("rank %d thread block %d would do %lld tiles of %d steps, more than 2^31",
                     tb.rank, tb.tb, static_cast<long long>(s.tiles), tb.steps));
  return s;
}

void Prog::set_size(const mscclsh_size &size) {
  sizing_ = sizing(size);
  chunk_bytes_ = size.chunk_bytes;
  tile_bytes_ = sizing_.tile_bytes;
  tiles_ = sizing_.tiles;
  threads_ = sizing_.threads;
  kernel_ = sizing_.kernel;
  divide_ = sizing_.divide;
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
    g.tables = nullptr;
    g.events = nullptr;
    g.divides = nullptr;
    g.n_divides = 0;
  }
}

void Prog::allocate(int32_t shift, int32_t elem) {
  for (int32_t i = 0; i < int32_t(buffers_.size()); i++) {
    if (base_buf_[size_t(i)] != i % 3 || !comm->local(i / 3)) continue;
    Buffer &b = buffers_[size_t(i)];
    if (chunk_bytes_ > 0 && chunks_[size_t(i)] > kMostBytes / chunk_bytes_)
      refused(format("rank %d needs %d chunks of %lld bytes", i / 3, chunks_[size_t(i)],
                     static_cast<long long>(chunk_bytes_)));
    b.bytes = buffer_bytes(i / 3, i % 3);
    const int32_t misalign = one_sided() && i % 3 == 2 ? 0 : shift;  // packets are aligned
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
  Shape all;
  all.quick = true;
  for (int32_t i = 0; i < comm->devices(); i++) {
    Grid &g = grids_[size_t(i)];
    if (g.blocks.empty()) continue;
    const Image image = this->image(sizing_, i, views_.of(i));
    all.add(image.shape);
    if (size.trace) {
      if (image.events > uint64_t(1) << 28)
        refused(format("%llu steps are too many to record",
                       static_cast<unsigned long long>(image.events)));
      g.events = static_cast<Event *>(comm->device(i).alloc(image.events * sizeof(Event)));
    }
    g.tables = static_cast<unsigned char *>(comm->device(i).alloc(image.bytes.size()));
    comm->device(i).upload(g.tables, image.bytes.data(), image.bytes.size());
    g.args = image.args;
    g.args.blocks = g.tables;
    g.args.events = g.events;
    g.shared = image.shared;
    g.n_divides = image.n_divides;
    g.divides = reinterpret_cast<DivideRun *>(g.tables + image.divides_at);
  }
  size_t more = 0;
  choose(sizing_, all, &kernel_, &threads_, &more);
  for (Grid &g : grids_) g.shared += more;
}

// fit refuses what can't be resident at once: blocks wait for one another.
void Prog::fit(mscclsh_prepared *out) {
  *out = mscclsh_prepared{};
  out->tile_bytes = tile_bytes_;
  out->tiles = tiles_;
  out->threads = threads_;
  for (int32_t i = 0; i < comm->devices(); i++) {
    const Grid &g = grids_[size_t(i)];
    if (g.blocks.empty()) continue;
    fit(i, kernel_, threads_, g.shared, out);
    if (g.n_divides > 0) comm->device(i).load(divide_);
  }
}

void Prog::fit(int32_t device, Kernel kernel, int32_t threads, size_t shared,
               mscclsh_prepared *out) {
  const Fit f = comm->device(device).fit(kernel, threads, shared);
  const int32_t need = blocks(device);
  if (need > f.blocks)
    refused(format("device %d needs %d thread blocks of %d threads at once, but %d fit",
                   comm->device(device).id, need, threads, f.blocks));
  out->registers = std::max(out->registers, f.registers);
  if (need < out->blocks_needed || (need == out->blocks_needed && f.blocks > out->blocks_resident))
    return;
  out->blocks_needed = need;
  out->blocks_resident = f.blocks;
}

unsigned char *Prog::scratch(int32_t device, int32_t rank, const Sizing &s) const {
  const Touched t = touched(rank, 2);
  const int64_t need = t.begin == t.end ? 0 : t.end * s.size.chunk_bytes;
  if (need > comm->scratch_bytes())
    refused(format("rank %d needs %lld bytes of scratch, reserved are %lld", rank,
                   static_cast<long long>(need), static_cast<long long>(comm->scratch_bytes())));
  return comm->scratch(device, rank);
}

void Prog::reserve(int64_t) {
  invalid("programs of sends and receives share the scratch of mscclsh_reserve");
}

void Prog::fits(int32_t dtype, int32_t op, int32_t threads, mscclsh_prepared *out) {
  comm->check_alive();
  const Sizing s = kernels(dtype, op, threads);
  work_out();
  *out = mscclsh_prepared{};
  out->threads = s.threads;
  for (int32_t i = 0; i < comm->devices(); i++) {
    const Grid &g = grids_[size_t(i)];
    if (g.blocks.empty()) continue;
    comm->pool(i).warm();
    fit(i, s.kernel, s.threads, shared_bytes(g), out);
    for (const Kernel quick : s.quick)
      if (quick != nullptr) fit(i, quick, s.threads, shared_bytes(g) + sizeof(Nothing), out);
    if (op == kAvg) comm->device(i).load(s.divide);
  }
}

}  // namespace mscclsh
