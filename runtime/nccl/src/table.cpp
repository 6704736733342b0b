#include "table.h"

#include <algorithm>
#include <cstring>

namespace mscclsh::nccl {

namespace {

constexpr const char *kCollectiveNames[MSCCLSH_COLLECTIVES] = {
    "allreduce", "allgather", "reducescatter", "broadcast", "reduce",
    "alltoall",  "gather",    "scatter",       "sendrecv"};
constexpr const char *kDtypeNames[kDtypes] = {"fp32",    "fp64",    "fp16",  "bf16",
                                              "fp8e4m3", "fp8e5m2", "int8",  "uint8",
                                              "int32",   "uint32",  "int64", "uint64"};
constexpr int64_t kDtypeBytes[kDtypes] = {4, 8, 2, 2, 1, 1, 1, 1, 4, 4, 8, 8};
constexpr const char *kOpNames[kOps] = {"sum", "prod", "min", "max", "avg"};
constexpr const char *kReasonWords[] = {
    "wanted", "collective", "ranks",  "nodes", "dtype",   "op",       "root",          "place",
    "bytes",  "multiple",   "memory", "ctas",  "scratch", "unloaded", "lower priority"};

// kMaxRegime is the most chunks that a message carries where the program says nothing.
constexpr int64_t kMaxRegime = 71;

}  // namespace

const char *collective_name(int32_t c) { return kCollectiveNames[c]; }
const char *dtype_name(int32_t d) { return kDtypeNames[d]; }
const char *op_name(int32_t o) { return kOpNames[o]; }
int64_t dtype_bytes(int32_t d) { return kDtypeBytes[d]; }
const char *reason_word(Reason reason) { return kReasonWords[reason]; }

int32_t collective_named(const std::string &word) {
  std::string bare;
  for (const char c : word)
    if (c != '_') bare.push_back(c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c);
  for (int32_t c = 0; c < MSCCLSH_COLLECTIVES; c++)
    if (bare == kCollectiveNames[c]) return c;
  return -1;
}

int64_t call_bytes(int32_t collective, uint64_t count, int32_t dtype, int32_t ranks) {
  const uint64_t each = uint64_t(dtype_bytes(dtype)) * uint64_t(blocks_of(collective, ranks));
  return count > uint64_t(INT64_MAX) / each ? INT64_MAX : int64_t(count * each);
}

int64_t chunk_bytes(const mscclsh_table_program &p, int64_t count, int32_t dtype) {
  return count / p.count_chunks * dtype_bytes(dtype);
}

int32_t regime(const mscclsh_table_program &p, int64_t chunk) {
  if (p.one != 0) return 1;
  if (p.slots == 0) return INT32_MAX;  // Direct: every step is one message
  const int64_t most = p.max_regime > 0 ? p.max_regime : kMaxRegime;
  if (chunk <= 0) return int32_t(most);
  return int32_t(std::min(std::max(p.slot_bytes / chunk, int64_t(1)), most));
}

bool average_overflows(int32_t collective, int32_t dtype, int32_t op) {
  constexpr int32_t kAvg = 4, kFp16 = 2, kFp8e4m3 = 4, kFp8e5m2 = 5;
  return reduces(collective) && op == kAvg &&
         (dtype == kFp16 || dtype == kFp8e4m3 || dtype == kFp8e5m2);
}

mscclsh_program Table::flat(int32_t i) const {
  const mscclsh_table_program &p = program(i);
  mscclsh_program f = {};
  f.tbs = at<int32_t>(p.tbs);
  f.steps_per_tb = at<int32_t>(p.steps_per_tb);
  f.steps = at<mscclsh_step>(p.steps);
  f.deps = at<mscclsh_dep>(p.deps);
  f.chunks = at<int32_t>(p.chunks);
  f.base_buf = at<int32_t>(p.base_buf);
  f.base_chunk = at<int32_t>(p.base_chunk);
  f.divides = at<mscclsh_divide>(p.divides);
  f.n_deps = p.n_deps;
  f.n_divides = p.n_divides;
  f.slot_bytes = p.slot_bytes;
  f.slots = p.slots;
  f.protocol = p.protocol;
  return f;
}

mscclsh_one_program Table::one_flat(int32_t i) const {
  const mscclsh_table_program &p = program(i);
  const mscclsh_table_one &o = *one(i);
  mscclsh_one_program f = {};
  f.tbs = at<int32_t>(p.tbs);
  f.blocks = at<mscclsh_span>(o.blocks);
  f.n_channels = at<int32_t>(o.n_channels);
  f.channels = at<mscclsh_channel>(o.channels);
  f.n_semaphores = at<int32_t>(o.n_semaphores);
  f.semaphores = at<int32_t>(o.semaphores);
  f.ops = at<mscclsh_op>(o.ops);
  f.operands = at<mscclsh_operand>(o.operands);
  f.refs = at<int32_t>(o.refs);
  f.chunks = at<int32_t>(p.chunks);
  f.base_buf = at<int32_t>(p.base_buf);
  f.base_chunk = at<int32_t>(p.base_chunk);
  f.divides = at<mscclsh_divide>(p.divides);
  f.n_ops = o.n_ops;
  f.n_operands = o.n_operands;
  f.n_refs = o.n_refs;
  f.n_divides = p.n_divides;
  f.packets = o.packets;
  f.double_scratch = o.double_scratch;
  f.alignment = o.alignment;
  f.threads = o.threads;
  return f;
}

int64_t staging_bytes(const mscclsh_table_entry &e, const Query &q) {
  // Ranks that call in place run one program, those that don't the other.
  if (e.memory == MSCCLSH_WINDOWS || e.mixable) return 0;
  // Else one form serves both. A call in place of a program out of place has its smaller
  // buffer elsewhere, the other way round a whole one at most: see place.h.
  const bool both_large = q.collective == MSCCLSH_ALLREDUCE || q.collective == MSCCLSH_BROADCAST ||
                          q.collective == MSCCLSH_REDUCE_TO_ROOT ||
                          q.collective == MSCCLSH_ALLTOALL;
  if (e.out_of_place >= 0 && !both_large) return q.bytes / q.ranks;
  return q.bytes;
}

namespace {

// scratch_bytes is what the entry's programs need beside the staging.
int64_t scratch_bytes(const Table &t, const mscclsh_table_entry &e, const Query &q) {
  int64_t most = 0;
  for (const int32_t i : {e.in_place, e.out_of_place}) {
    if (i < 0) continue;
    const mscclsh_table_program &p = t.program(i);
    const int64_t chunk = chunk_bytes(p, q.count, q.dtype);
    if (p.scratch_chunks > 0 && chunk > INT64_MAX / p.scratch_chunks) return INT64_MAX;
    most = std::max(most, chunk * p.scratch_chunks);
  }
  return most;
}

bool place_fits(const mscclsh_table_entry &e, const Query &q) {
  return e.memory == MSCCLSH_ANY_MEMORY || (q.in_place ? e.in_place : e.out_of_place) >= 0;
}

}  // namespace

Reason Table::why_not(const mscclsh_table_entry &e, const Query &q) const {
  if (e.collective != q.collective) return kCollective;
  if (e.ranks != q.ranks) return kRanks;
  if (e.nodes != q.nodes) return kNodes;
  if (!(e.dtypes >> q.dtype & 1)) return kDtype;
  if (reduces(q.collective) &&
      (!(e.ops >> q.op & 1) || average_overflows(q.collective, q.dtype, q.op)))
    return kOp;
  if (rooted(q.collective) && e.root >= 0 && e.root != q.root) return kRoot;
  if (!place_fits(e, q)) return kPlace;
  if (q.count < 1 || uint64_t(q.bytes) < e.min_bytes || uint64_t(q.bytes) > e.max_bytes)
    return kBytes;
  if (q.count % e.multiple != 0 || q.count / e.multiple * dtype_bytes(q.dtype) % e.unit != 0)
    return kMultiple;
  if (e.memory == MSCCLSH_WINDOWS && (!q.registered || q.alignment < e.alignment)) return kMemory;
  if (e.max_blocks > q.max_ctas) return kCtas;
  const int64_t need = scratch_bytes(*this, e, q), staging = staging_bytes(e, q);
  if (need > q.scratch || staging > q.scratch) return kScratch;
  return kWanted;
}

int32_t Table::choose(const Query &q, const std::vector<char> *ready,
                      std::vector<Reason> *reasons) const {
  int32_t taken = -1;
  if (reasons != nullptr) reasons->assign(size_t(entries()), kCollective);
  for (int32_t i = 0; i < entries(); i++) {
    Reason r = why_not(entry(i), q);
    if (r == kWanted && ready != nullptr && !(*ready)[size_t(i)]) r = kUnloaded;
    if (r == kWanted && taken >= 0) r = kLowerPriority;
    if (r == kWanted) taken = i;
    if (reasons != nullptr)
      (*reasons)[size_t(i)] = r;
    else if (taken >= 0)
      break;
  }
  return taken;
}

}  // namespace mscclsh::nccl
