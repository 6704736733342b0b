#include "expect.h"

#include <algorithm>
#include <set>

namespace mscclsh {

namespace {

// Format is what exactness depends on in a type; floats come first.
struct Format {
  int32_t bytes, mantissa, min_exp;
};
constexpr Format kFormats[kDTypes] = {{4, 23, -126}, {8, 52, -1022}, {2, 10, -14}, {2, 7, -126},
                                      {1, 3, -6},    {1, 2, -14},    {1, 0, 0},    {1, 0, 0},
                                      {4, 0, 0},     {4, 0, 0},      {8, 0, 0},    {8, 0, 0}};

// kMost bounds the size of generated numbers.
constexpr int64_t kMost = int64_t(1) << 30;

constexpr DataRecord kClear = {0, kNoneWrong, 0, 0, 0};

// total is how many contributions a result has.
int64_t total(const mscclsh_expectation &e, const mscclsh_result &r) {
  int64_t n = 0;
  for (int32_t k = 0; k < r.n_parts; k++) n += e.parts[r.first_part + k].times;
  return n;
}

// one_a_rank reports whether a result has at most one contribution of each rank, all
// from the same place of their inputs.
bool one_a_rank(const mscclsh_expectation &e, const mscclsh_result &r) {
  std::set<int32_t> ranks;
  for (int32_t k = 0; k < r.n_parts; k++) {
    const mscclsh_part &p = e.parts[r.first_part + k];
    if (p.times != 1 || p.chunk != e.parts[r.first_part].chunk || !ranks.insert(p.rank).second)
      return false;
  }
  return true;
}

}  // namespace

Expectation::Expectation(Prog *prog, const mscclsh_expectation &e) : prog_(prog) {
  if (e.dtype < 0 || e.dtype >= kDTypes || e.op < 0 || e.op >= kOps)
    invalid(format("data type %d or reduction %d is not known", e.dtype, e.op));
  if (e.n_held < 0 || e.n_results < 0 || e.n_parts < 0 || (e.n_held && !e.held) ||
      (e.n_results && !e.results) || (e.n_parts && !e.parts))
    invalid("an expectation lacks a table");
  kernels_ = data_kernels_of(DType(e.dtype));
  args_.op = e.op;
  elem_ = kFormats[e.dtype].bytes;
  if (prog->chunk_bytes() % elem_)
    invalid(format("chunks of %lld bytes are no whole elements of %lld",
                   static_cast<long long>(prog->chunk_bytes()), static_cast<long long>(elem_)));
  sides_.resize(size_t(prog->comm->devices()));
  for (int64_t i = 0; i < e.n_held; i++) {
    const mscclsh_held &h = e.held[i];
    const mscclsh_part own = {h.rank, h.chunk, 1, 0};
    add(&Side::inputs, {h.rank, 0, h.chunk, h.count, 0, 1, 0}, &own);
  }
  for (int64_t i = 0; i < e.n_results; i++) {
    const mscclsh_result &r = e.results[i];
    if (r.n_parts < 1 || r.first_part < 0 || r.first_part > e.n_parts - r.n_parts)
      invalid(format("result %lld has parts %lld to %lld of %lld", static_cast<long long>(i),
                     static_cast<long long>(r.first_part),
                     static_cast<long long>(r.first_part) + r.n_parts,
                     static_cast<long long>(e.n_parts)));
    add(&Side::results, r, e.parts + r.first_part);
  }
  shape(e);
  add_junk();
  try {
    for (size_t i = 0; i < sides_.size(); i++) {
      Device &d = prog->comm->device(int32_t(i));
      d.load(kernels_.generate);
      d.load(kernels_.verify);
      upload(&d, &sides_[i].junk);
      upload(&d, &sides_[i].inputs);
      upload(&d, &sides_[i].results);
      sides_[i].record = static_cast<DataRecord *>(d.alloc(sizeof(DataRecord)));
      elems_ += sides_[i].results.elems();
    }
    clear();
  } catch (...) {
    free();
    throw;
  }
}

Expectation::~Expectation() {
  try {
    free();
  } catch (const Failure &) {  // of a device that is beyond use
  }
}

void Expectation::free() {
  for (size_t i = 0; i < sides_.size(); i++) {
    Device &d = prog_->comm->device(int32_t(i));
    Side &s = sides_[i];
    for (Table *t : {&s.junk, &s.inputs, &s.results}) {
      d.free(t->at);
      d.free(t->parts_at);
      t->at = nullptr;
      t->parts_at = nullptr;
    }
    d.free(s.record);
    s.record = nullptr;
  }
}

// local checks a rank and reports whether it lives in this process.
bool Expectation::local(int32_t rank) const {
  if (rank < 0 || rank >= prog_->comm->ranks()) invalid(format("there is no rank %d", rank));
  return prog_->comm->local(rank);
}

int64_t Expectation::Table::elems() const {
  return runs.empty() ? 0 : runs.back().before + runs.back().elems;
}

// add appends a run of chunks to a table of its rank's device.
void Expectation::add(Table Side::*which, const mscclsh_result &result, const mscclsh_part *parts) {
  const int64_t chunk = prog_->chunk_bytes();
  if (result.buf < 0 || result.buf > 1 || result.chunk < 0 || result.count < 0)
    invalid(format("%d chunks from %d on of buffer %d", result.count, result.chunk, result.buf));
  if (!local(result.rank)) return;
  unsigned char *at =
      prog_->range(result.rank, result.buf, result.chunk * chunk, result.count * chunk);
  Table &t = sides_[size_t(prog_->comm->device_of(result.rank))].*which;
  DataRun run = {
      at, result.count * chunk / elem_, t.elems(), int64_t(t.parts.size()), result.n_parts, 1};
  int64_t divisor = 0;
  for (int32_t k = 0; k < result.n_parts; k++) {
    const mscclsh_part &p = parts[k];
    local(p.rank);
    if (p.times < 1 || p.chunk < 0 || p.chunk > prog_->chunks(p.rank, 0) - result.count)
      invalid(format("%d times chunks %d to %lld of the input of rank %d", p.times, p.chunk,
                     static_cast<long long>(p.chunk) + result.count, p.rank));
    divisor += p.times;
    t.parts.push_back({mix(spread(uint64_t(p.rank))), p.chunk * chunk / elem_, p.rank, p.times});
  }
  if (divisor > INT32_MAX || run.before + run.elems >= int64_t(1) << kCallShift)
    invalid("a result is too large");
  run.divisor = args_.op == kAvg ? int32_t(divisor) : 1;
  t.runs.push_back(run);
  t.origins.push_back(result);
}

// shape chooses numbers whose reductions are exact, see verify.h.
void Expectation::shape(const mscclsh_expectation &e) {
  const int32_t ranks = prog_->comm->ranks();
  const Format &f = kFormats[e.dtype];
  args_.most = kMost;
  args_.dense = args_.rotate = ranks;
  if (f.mantissa == 0) return;
  const int64_t exact = int64_t(1) << (f.mantissa + 1), room = e.op == kProd ? -f.min_exp : exact;
  int64_t most = 1;
  for (int64_t i = 0; i < e.n_results; i++) most = std::max(most, total(e, e.results[i]));
  if (e.op == kMin || e.op == kMax) most = 1;
  args_.most = std::min(kMost, std::max(room / most, int64_t(1)));
  if (most <= room) return;
  args_.dense = int32_t(std::min(room, int64_t(ranks)));
  for (int64_t i = 0; i < e.n_results; i++)
    if (total(e, e.results[i]) > room && !one_a_rank(e, e.results[i]))
      refused(format("the data type has no room for exact results of %lld contributions",
                     static_cast<long long>(most)));
}

// add_junk lists all of the buffers: what lies in them is made of no parts.
void Expectation::add_junk() {
  for (int32_t r = 0; r < prog_->comm->ranks(); r++) {
    if (!local(r)) continue;
    for (int32_t b = 0; b < 3; b++) {
      const int64_t bytes = prog_->own(r, b) ? prog_->buffer_bytes(r, b) : 0;
      if (bytes == 0) continue;
      Table &t = sides_[size_t(prog_->comm->device_of(r))].junk;
      t.runs.push_back({prog_->range(r, b, 0, bytes), bytes / elem_, t.elems(), 0, 0, 1});
    }
  }
}

void Expectation::upload(Device *d, Table *t) {
  if (t->runs.empty()) return;
  const size_t runs = t->runs.size() * sizeof(DataRun);
  const size_t parts = t->parts.size() * sizeof(DataPart);
  t->at = static_cast<DataRun *>(d->alloc(runs));
  d->upload(t->at, t->runs.data(), runs);
  t->parts_at = static_cast<DataPart *>(d->alloc(parts));
  if (parts > 0) d->upload(t->parts_at, t->parts.data(), parts);
}

// clear forgets what was found.
void Expectation::clear() {
  for (size_t i = 0; i < sides_.size(); i++)
    prog_->comm->device(int32_t(i)).upload(sides_[i].record, &kClear, sizeof kClear);
  calls_ = 0;
  compared_ = 0;
}

void Expectation::launch(int32_t device, DataKernel kernel, const Table &t, DataArgs args) {
  if (t.elems() == 0) return;
  args.runs = t.at;
  args.parts = t.parts_at;
  args.n_runs = int64_t(t.runs.size());
  args.record = sides_[size_t(device)].record;
  prog_->comm->device(device).launch(kernel, args);
}

void Expectation::generate(uint64_t seed) {
  prog_->comm->check_alive();
  // Peers reach into a rank's memory before and after its own launch.
  if (prog_->one_sided()) prog_->comm->sync();
  args_.seed = seed;
  for (size_t i = 0; i < sides_.size(); i++) {
    launch(int32_t(i), kernels_.generate, sides_[i].junk, args_);
    launch(int32_t(i), kernels_.generate, sides_[i].inputs, args_);
  }
  if (prog_->one_sided()) prog_->comm->sync();
}

void Expectation::verify(uint64_t seed) {
  prog_->comm->check_alive();
  args_.seed = seed;
  args_.call = std::min(calls_++, (uint64_t(1) << (63 - kCallShift)) - 1);
  for (size_t i = 0; i < sides_.size(); i++) {
    DataArgs a = args_;
    launch(int32_t(i), kernels_.verify, sides_[i].results, a);
    a.explain = 1;
    launch(int32_t(i), kernels_.verify, sides_[i].results, a);
  }
  compared_ += elems_;
}

mscclsh_verdict_data Expectation::verdict() {
  prog_->comm->sync();
  mscclsh_verdict_data v = {};
  v.compared = compared_;
  uint64_t first_call = kNoneWrong;
  for (size_t i = 0; i < sides_.size(); i++) {
    DataRecord rec;
    prog_->comm->device(int32_t(i)).download(&rec, sides_[i].record, sizeof rec);
    v.wrong += int64_t(rec.wrong);
    if (rec.wrong == 0 || rec.first >> kCallShift >= first_call) continue;
    first_call = rec.first >> kCallShift;
    const int64_t at = int64_t(rec.first & ((uint64_t(1) << kCallShift) - 1));
    const Table &t = sides_[i].results;
    size_t k = 0;
    while (k + 1 < t.runs.size() && t.runs[k + 1].before <= at) k++;
    const int64_t chunk = prog_->chunk_bytes() / elem_, e = at - t.runs[k].before;
    v.rank = t.origins[k].rank;
    v.buf = t.origins[k].buf;
    v.chunk = t.origins[k].chunk + int32_t(e / chunk);
    v.element = e % chunk;
    v.seed = rec.seed;
    v.want = rec.want;
    v.have = rec.have;
  }
  clear();
  return v;
}

}  // namespace mscclsh
