// Sizes that a one-sided program can be run at, and the kernels and threads for them.
#include <algorithm>
#include <set>

#include "one_prog.h"

namespace mscclsh {

namespace {

constexpr int32_t kElemBytes[kDTypes] = {4, 8, 2, 2, 1, 1, 1, 1, 4, 4, 8, 8};
constexpr int64_t kMostBytes = int64_t(1) << 50;  // so that sums of sizes don't overflow

}  // namespace

Sizing OneProg::sizing(const mscclsh_size &size) const {
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
  for (size_t i = 0; size.chunk_bytes > 0 && i < chunks_.size(); i++)
    if (chunks_[i] > kMostBytes / scratch_times_ / size.chunk_bytes)
      refused(format("rank %zu needs %d chunks of %lld bytes", i / 3, chunks_[i],
                     static_cast<long long>(size.chunk_bytes)));
  if (size.chunk_bytes > 0) check_units(size.chunk_bytes, elem);
  const OneKernels *k = one_kernels_of(DType(size.dtype));
  const Kernels *others = kernels_of(DType(size.dtype));
  Sizing s;
  s.size = size;
  s.elem = elem;
  s.tile_bytes = size.chunk_bytes;
  s.tiles = 1;
  s.divide = others ? others->divide : nullptr;
  if (k != nullptr) {
    s.kernel = kernel_for(*k, size.op, false);
    s.quick[0] = kernel_for(*k, size.op, true);
  }
  if (s.kernel == nullptr)
    refused(format("this build (%s) leaves data type %d with reduction %d out", build_name(),
                   size.dtype, size.op));
  s.threads = threads_for(size);
  if (s.threads < 1 || s.threads > kMaxThreads || s.threads % thread_unit())
    invalid(format("%d threads a block: want a multiple of %d up to %d", s.threads, thread_unit(),
                   kMaxThreads));
  return s;
}

OneProg::Run OneProg::run_of(const Sizing &s, bool bound) const {
  Run run;
  run.chunk = s.size.chunk_bytes;
  run.op = s.size.op;
  run.elem = s.elem;
  run.threads = s.threads;
  run.small = small_at(run.chunk);
  run.bound = bound;
  count(&run);
  return run;
}

// small_at is whether packets are of 4 bytes: ranges are not whole ones of 8.
bool OneProg::small_at(int64_t chunk) const {
  bool small = chunk % 8 != 0 || alignment_ % 8 != 0;
  for (const mscclsh_op &op : ops_)
    small |= op.kind == MSCCLSH_OP_PIPELINE && op.unit_bytes % 8 != 0;
  return small;
}

// check_units refuses pipelines that cut elements or packets.
void OneProg::check_units(int64_t chunk, int32_t elem) const {
  for (const mscclsh_op &op : ops_) {
    if (op.kind != MSCCLSH_OP_PIPELINE) continue;
    if (op.unit_bytes % elem || (packets_ && op.unit_bytes % 4))
      invalid(format("units of %lld bytes cut elements of %d",
                     static_cast<long long>(op.unit_bytes), elem));
    if (turns(op, chunk) >= int64_t(1) << 31)
      refused(format("a pipeline would take %lld turns, more than 2^31",
                     static_cast<long long>(turns(op, chunk))));
  }
}

// kernel_for takes the kernel of the reduction, or that for several. That for short programs
// is null then.
Kernel OneProg::kernel_for(const OneKernels &k, int32_t op, bool quick) const {
  std::set<int32_t> all;
  for (const mscclsh_op &x : ops_)
    if (reduction(x, op) >= 0) all.insert(reduction(x, op));
  if (all.size() > 1) return quick ? nullptr : k.any;
  const int32_t one = all.empty() ? int32_t(kSum) : *all.begin();
  return quick ? k.quick[one] : k.at[one];
}

// most_threads are those of a block that has enough to do.
int32_t OneProg::most_threads(int32_t threads) const {
  if (threads != 0) return threads;
  const int32_t step = thread_unit(), most = default_threads();
  return block_threads_ > 0 ? std::min(most, (block_threads_ + step - 1) / step * step) : most;
}

// threads_for takes as many as have something to do.
int32_t OneProg::threads_for(const mscclsh_size &size) const {
  if (size.threads != 0) return size.threads;
  int64_t longest = 0, unit = kMostBytes;
  for (const mscclsh_op &op : ops_) {
    if (op.kind == MSCCLSH_OP_PIPELINE) unit = std::min(unit, op.unit_bytes);
    for (int32_t i = op.src_start; i < op.src_end; i++)
      longest = std::max(
          longest,
          one_cut(operands_[size_t(i)].size * size.chunk_bytes, alignment_, 0, op.parts).bytes);
  }
  const int32_t step = thread_unit();
  const int64_t need = (std::min(longest, unit) / (packets_ ? 8 : 16) + step - 1) / step * step;
  return int32_t(std::min<int64_t>(most_threads(0), std::max<int64_t>(need, 2 * step)));
}

}  // namespace mscclsh
