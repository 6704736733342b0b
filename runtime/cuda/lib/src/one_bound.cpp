// What one-sided programs have for bound calls: scratch of their own, and what each thread
// block has to know of launches of other sizes.
#include <algorithm>
#include <set>

#include "one_prog.h"

namespace mscclsh {

// find_touched finds which part of each buffer operations touch, of whatever rank, and whether
// they touch more of peers than scratch.
void OneProg::find_touched() {
  touched_.assign(chunks_.size(), Touched());
  auto touch = [&](int32_t rank, int32_t buf, int32_t chunk, int32_t count) {
    const size_t i = size_t(3 * rank + buf);
    Touched &t = touched_[size_t(3 * rank + base_buf_[i])];
    const int32_t begin = base_chunk_[i] + chunk, end = begin + count;
    const bool first = t.begin == t.end;
    t.begin = first ? begin : std::min(t.begin, begin);
    t.end = first ? end : std::max(t.end, end);
  };
  auto look = [&](int32_t tb, const mscclsh_op &op) {
    auto list = [&](int32_t start, int32_t end) {
      for (int32_t i = start; i < end; i++) {
        const mscclsh_operand &o = operands_[size_t(i)];
        touch(o.rank, o.buf, o.index, o.size);
        reaches_ |= o.buf != 2 && o.rank != tbs_[size_t(tb)].rank;
      }
    };
    list(op.src_start, op.src_end);
    list(op.dst_start, op.dst_end);
  };
  for (int32_t tb = 0; tb < int32_t(tbs_.size()); tb++)
    for (int32_t i = blocks_[size_t(tb)].start; i < blocks_[size_t(tb)].end; i++) {
      const mscclsh_op &op = ops_[size_t(i)];
      look(tb, op);
      for (int32_t k = op.body_start; op.kind == MSCCLSH_OP_PIPELINE && k < op.body_end; k++)
        look(tb, ops_[size_t(k)]);
    }
  for (const mscclsh_divide &d : divides_)
    if (d.count > 0) touch(d.rank, 1, d.chunk, d.count);
}

// find_sums looks for counters within pipelines, whose turns depend on the size, and counts
// those of the thread block that has most.
void OneProg::find_sums() {
  for (size_t tb = 0; tb < tbs_.size(); tb++) {
    std::set<std::pair<int32_t, int32_t>> have;
    auto look = [&](const mscclsh_op &op, bool inner) {
      for (const Use &u : uses(tbs_[tb].rank, op)) {
        if (u.counter < 0) continue;
        sized_ |= inner;
        have.insert({u.rank, u.counter});
      }
    };
    for (int32_t i = blocks_[tb].start; i < blocks_[tb].end; i++) {
      const mscclsh_op &op = ops_[size_t(i)];
      look(op, false);
      for (int32_t k = op.body_start; op.kind == MSCCLSH_OP_PIPELINE && k < op.body_end; k++)
        look(ops_[size_t(k)], true);
    }
    most_sums_ = std::max(most_sums_, uint32_t(have.size()));
  }
  if (!sized_) most_sums_ = 0;
}

// reserve begins with scratch of zeros: no packet has flag 0.
void OneProg::reserve(int64_t chunk_bytes) {
  comm->agree("reserve", [&] {
    comm->check_alive();
    if (chunk_bytes < 0 || chunk_bytes > (int64_t(1) << 50) || chunk_bytes % alignment_)
      invalid(format("scratch for chunks of %lld bytes, cut at multiples of %d",
                     static_cast<long long>(chunk_bytes), alignment_));
    if (chunk_bytes > scratch_chunk_ && (calls > 0 || captured))
      invalid(captured ? "graphs were captured that use the scratch: it can't be replaced any more"
                       : "calls are bound that use the scratch: it can't be replaced now");
    for (int32_t r = 0; r < comm->ranks(); r++)
      if (chunk_bytes > 0 && chunks(r, 2) > (int64_t(1) << 50) / scratch_times_ / chunk_bytes)
        refused(format("rank %d needs %d chunks of scratch of %lld bytes", r, chunks(r, 2),
                       static_cast<long long>(chunk_bytes)));
    if (chunk_bytes > scratch_chunk_) comm->sync();
    return digest(0, &chunk_bytes, 1);
  });
  if (chunk_bytes <= scratch_chunk_) return;
  free_scratch();
  try {
    comm->together("allocate", [&] {
      for (int32_t r = 0; r < comm->ranks(); r++) {
        const int64_t bytes = chunks(r, 2) * chunk_bytes * scratch_times_;
        if (comm->local(r) && bytes > 0)
          scratch_memory_[size_t(3 * r + 2)] = static_cast<unsigned char *>(
              comm->alloc_buffer(comm->device_of(r), size_t(bytes), true));
      }
    });
    scratch_at_.open(scratch_memory_, true);
  } catch (...) {
    free_scratch();
    throw;
  }
  scratch_chunk_ = chunk_bytes;
}

void OneProg::free_scratch() {
  scratch_chunk_ = 0;
  scratch_at_.close();
  for (size_t i = 2; i < scratch_memory_.size(); i += 3) {
    if (scratch_memory_[i] == nullptr) continue;
    try {
      device_of(int32_t(i / 3)).free(scratch_memory_[i]);
    } catch (const Failure &) {  // it goes with the process
    }
    scratch_memory_[i] = nullptr;
  }
}

unsigned char *OneProg::scratch(int32_t device, int32_t rank, const Sizing &s) const {
  if (chunks(rank, 2) > 0 && s.size.chunk_bytes > scratch_chunk_)
    refused(format("the scratch that was set aside is for chunks of up to %lld bytes, not %lld",
                   static_cast<long long>(scratch_chunk_),
                   static_cast<long long>(s.size.chunk_bytes)));
  return scratch_at_.at(device, rank, 2);
}

// image makes a device's tables for a bound call. at has the buffers of the device's ranks, and
// of all ranks where peers touch them.
Image OneProg::image(const Sizing &s, int32_t device, const Places &at) {
  Places all = at;
  for (int32_t r = 0; r < comm->ranks(); r++)
    if (chunks(r, 2) > 0) all[size_t(3 * r + 2)] = scratch_at_.at(device, r, 2);
  return make_image(run_of(s, true), device, all, nullptr);
}

// fits asks for the most threads that a size may have. The tables are as long with any size.
void OneProg::fits(int32_t dtype, int32_t op, int32_t threads, mscclsh_prepared *out) {
  comm->check_alive();
  mscclsh_size size = {};
  size.dtype = dtype;
  size.op = op;
  size.regime = 1;
  size.threads = most_threads(threads);
  const Sizing s = sizing(size);
  if (alignment_ % s.elem)
    refused(format("ranges are cut at multiples of %d bytes, within elements of %d", alignment_,
                   s.elem));
  check_units(0, s.elem);
  *out = mscclsh_prepared{};
  out->threads = s.threads;
  const Run run = run_of(s, true);
  for (int32_t i = 0; i < comm->devices(); i++) {
    if (grids_[size_t(i)].blocks.empty()) continue;
    comm->pool(i).warm();
    const Image image = make_image(run, i, Places(size_t(3 * comm->ranks()), nullptr), nullptr);
    fit(i, s.kernel, s.threads, image.shared, out);
    if (s.quick[0] != nullptr && image.shape.quick)
      fit(i, s.quick[0], s.threads, image.shared + sizeof(OneRehearsal), out);
    if (op == kAvg) comm->device(i).load(s.divide);
  }
}

}  // namespace mscclsh
