// Checking a one-sided program, and the words that its ranks count in.
#include "one_prog.h"

namespace mscclsh {

namespace {

// kLine keeps words of different writers apart, bytes.
constexpr int64_t kLine = 128;

const char *const kNames[] = {
    "nop",    "barrier",   "signal", "wait",        "rlxsignal",   "rlxwait", "flush",  "put",
    "pws",    "pwsf",      "get",    "copy",        "re",          "res",     "rre",    "rres",
    "cpkt",   "upkt",      "ppkt",   "rppkt",       "repkt",       "respkt",  "recpkt", "recspkt",
    "gstore", "gstorepkt", "glres",  "sem_acquire", "sem_release", "pipeline"};

// Shape is what lists an operation must have: at least and at most so many sources and
// destinations (-1: any number), and channels.
struct OpShape {
  int32_t src, most_src, dst, most_dst;
  bool pairs;
};
OpShape shape_of(int32_t kind) {
  switch (kind) {
    case MSCCLSH_OP_PUT:
    case MSCCLSH_OP_PWS:
    case MSCCLSH_OP_PWSF:
    case MSCCLSH_OP_GET:
    case MSCCLSH_OP_PPKT:
      return {1, -1, 1, -1, true};
    case MSCCLSH_OP_COPY:
    case MSCCLSH_OP_CPKT:
    case MSCCLSH_OP_UPKT:
      return {1, 1, 1, 1, false};
    case MSCCLSH_OP_RPPKT:
      return {1, 1, 1, -1, false};
    case MSCCLSH_OP_RE:
    case MSCCLSH_OP_RES:
    case MSCCLSH_OP_RRE:
    case MSCCLSH_OP_RRES:
    case MSCCLSH_OP_REPKT:
    case MSCCLSH_OP_RESPKT:
    case MSCCLSH_OP_RECPKT:
    case MSCCLSH_OP_RECSPKT:
      return {1, -1, 1, -1, false};
    default:
      return {0, 0, 0, 0, false};
  }
}

}  // namespace

OneProg::OneProg(Comm *comm, const mscclsh_one_program &p)
    : Prog(comm, Wire{kDirect, 0, 0}), words_at_(comm), scratch_at_(comm) {
  const size_t ranks = size_t(comm->ranks());
  grids_.resize(size_t(comm->devices()));
  buffers_.resize(3 * ranks);
  words_.resize(3 * ranks);
  scratch_memory_.resize(3 * ranks);
  sums_.resize(size_t(comm->devices()));
  queues_.resize(ranks);
  try {
    comm->agree("load", [&] { return build(p); });
    comm->together("allocate", [&] { allocate_words(); });
    words_at_.open(words_, true);
    comm->together("open ports", [&] { open_ports(); });
  } catch (...) {
    free_own();
    throw;
  }
  comm->add(this);
}

OneProg::~OneProg() {
  comm->remove(this);
  comm->settle();
  free_own();
}

void OneProg::free_own() {
  free_scratch();
  for (PortQueue *&q : queues_) {
    if (q != nullptr) comm->ports().close(q);
    q = nullptr;
  }
  words_at_.close();
  for (size_t r = 0; r < queues_.size(); r++) {
    unsigned char *&words = words_[3 * r];
    if (words == nullptr) continue;
    try {
      device_of(int32_t(r)).free(words);
    } catch (const Failure &) {  // it goes with the process
    }
    words = nullptr;
  }
  for (size_t i = 0; i < sums_.size(); i++) {
    try {
      comm->device(int32_t(i)).free(sums_[i]);
    } catch (const Failure &) {  // likewise
    }
    sums_[i] = nullptr;
  }
}

void OneProg::bad(int32_t tb, const mscclsh_op &op, const std::string &text) const {
  const ThreadBlock &b = tbs_[size_t(tb)];
  invalid(format("rank %d thread block %d (%s): %s", b.rank, b.tb,
                 op.kind >= 0 && op.kind <= MSCCLSH_OP_PIPELINE ? kNames[op.kind] : "?",
                 text.c_str()));
}

// check_tables refuses tables that are not there, and buffers that don't fit each other.
void OneProg::check_tables(const mscclsh_one_program &p) const {
  if (p.n_ops < 0 || p.n_ops > INT32_MAX || p.n_operands < 0 || p.n_operands > INT32_MAX ||
      p.n_refs < 0 || p.n_refs > INT32_MAX || p.n_divides < 0 || (p.n_ops && !p.ops) ||
      (p.n_operands && !p.operands) || (p.n_refs && !p.refs) || (p.n_divides && !p.divides) ||
      !p.tbs || !p.n_channels || !p.n_semaphores || !p.chunks || !p.base_buf || !p.base_chunk)
    invalid("a program lacks a table");
  if (p.alignment < 1 || (p.packets && p.alignment % 4) || p.threads < 0)
    invalid(
        format("ranges at multiples of %d bytes, blocks of %d threads", p.alignment, p.threads));
  for (int32_t r = 0; r < comm->ranks(); r++) {
    if (p.tbs[r] < 0 || p.n_channels[r] < 0 || p.n_semaphores[r] < 0 || (p.tbs[r] && !p.blocks) ||
        (p.n_channels[r] && !p.channels) || (p.n_semaphores[r] && !p.semaphores))
      invalid(format("rank %d has %d thread blocks, %d channels and %d semaphores", r, p.tbs[r],
                     p.n_channels[r], p.n_semaphores[r]));
    for (int32_t b = 0; b < 3; b++) {
      const int32_t i = 3 * r + b, owner = p.base_buf[i];
      if (p.chunks[i] < 0 || owner < 0 || owner > 2 || p.base_buf[3 * r + owner] != owner ||
          (b == 2 && owner != 2) || p.base_chunk[i] < 0 || (owner == b && p.base_chunk[i] != 0) ||
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

// build takes over the tables of all ranks and makes grids of those of this process. It
// returns a digest of all of it.
uint64_t OneProg::build(const mscclsh_one_program &p) {
  comm->check_alive();
  check_tables(p);
  const int32_t ranks = comm->ranks();
  chunks_.assign(p.chunks, p.chunks + 3 * ranks);
  base_buf_.assign(p.base_buf, p.base_buf + 3 * ranks);
  base_chunk_.assign(p.base_chunk, p.base_chunk + 3 * ranks);
  divides_.assign(p.divides, p.divides + p.n_divides);
  ops_.assign(p.ops, p.ops + p.n_ops);
  operands_.assign(p.operands, p.operands + p.n_operands);
  refs_.assign(p.refs, p.refs + p.n_refs);
  packets_ = p.packets != 0;
  double_ = p.double_scratch != 0;
  alignment_ = p.alignment;
  block_threads_ = p.threads;
  scratch_times_ = (packets_ ? 2 : 1) * (double_ ? 2 : 1);
  first_tb_.assign(1, 0);
  first_channel_.assign(1, 0);
  first_semaphore_.assign(1, 0);
  for (int32_t r = 0; r < ranks; r++) {
    for (int32_t t = 0; t < p.tbs[r]; t++) {
      ThreadBlock tb = {};
      tb.rank = r;
      tb.tb = t;
      if (comm->local(r)) grids_[size_t(comm->device_of(r))].blocks.push_back(int32_t(tbs_.size()));
      tbs_.push_back(tb);
    }
    first_tb_.push_back(int32_t(tbs_.size()));
    first_channel_.push_back(first_channel_.back() + p.n_channels[r]);
    first_semaphore_.push_back(first_semaphore_.back() + p.n_semaphores[r]);
  }
  blocks_.assign(p.blocks, p.blocks + tbs_.size());
  channels_.assign(p.channels, p.channels + first_channel_.back());
  semaphores_.assign(p.semaphores, p.semaphores + first_semaphore_.back());
  for (int32_t tb = 0; tb < int32_t(tbs_.size()); tb++) check_block(tb);
  find_barriers();
  find_touched();
  find_sums();
  uint64_t d = digest(0, ops_.data(), ops_.size());
  d = digest(digest(d, operands_.data(), operands_.size()), refs_.data(), refs_.size());
  d = digest(digest(d, channels_.data(), channels_.size()), semaphores_.data(), semaphores_.size());
  d = digest(digest(d, blocks_.data(), blocks_.size()), first_tb_.data(), first_tb_.size());
  d = digest(digest(d, chunks_.data(), chunks_.size()), base_buf_.data(), base_buf_.size());
  d = digest(digest(d, base_chunk_.data(), base_chunk_.size()), divides_.data(), divides_.size());
  return digest(digest(d, &scratch_times_, 1), &alignment_, 1);
}

void OneProg::check_block(int32_t tb) const {
  const ThreadBlock &b = tbs_[size_t(tb)];
  const int32_t n = int32_t(ops_.size());
  auto within = [&](int32_t start, int32_t end) { return start >= 0 && start <= end && end <= n; };
  const mscclsh_span s = blocks_[size_t(tb)];
  if (!within(s.start, s.end))
    invalid(format("rank %d thread block %d has operations %d to %d of %d", b.rank, b.tb, s.start,
                   s.end, n));
  for (int32_t i = s.start; i < s.end; i++) {
    const mscclsh_op &op = ops_[size_t(i)];
    check_op(tb, op, false);
    if (op.kind != MSCCLSH_OP_PIPELINE) continue;
    if (!within(op.body_start, op.body_end) || op.unit_bytes < 1 || op.unit_chunks < 1)
      bad(tb, op,
          format("operations %d to %d on %lld bytes of %d chunks", op.body_start, op.body_end,
                 static_cast<long long>(op.unit_bytes), op.unit_chunks));
    for (int32_t k = op.body_start; k < op.body_end; k++) check_op(tb, ops_[size_t(k)], true);
  }
}

void OneProg::check_op(int32_t tb, const mscclsh_op &op, bool inner) const {
  if (op.kind < 0 || op.kind > MSCCLSH_OP_PIPELINE || (inner && op.kind == MSCCLSH_OP_PIPELINE))
    bad(tb, op, inner ? "a pipeline within a pipeline" : "no known kind of operation");
  const bool multicast = op.kind >= MSCCLSH_OP_GSTORE && op.kind <= MSCCLSH_OP_GLRES;
  if (multicast || op.via == MSCCLSH_VIA_SWITCH)
    refused(
        format("rank %d thread block %d (%s): switch channels need multicast between GPUs, "
               "which this library leaves alone",
               tbs_[size_t(tb)].rank, tbs_[size_t(tb)].tb, kNames[op.kind]));
  auto within = [](int32_t start, int32_t end, size_t n) {
    return start >= 0 && start <= end && size_t(end) <= n;
  };
  if (!within(op.src_start, op.src_end, operands_.size()) ||
      !within(op.dst_start, op.dst_end, operands_.size()) ||
      !within(op.ref_start, op.ref_end, refs_.size()))
    bad(tb, op, "operands or references that don't exist");
  if (op.parts < 1 || (op.kind != MSCCLSH_OP_BARRIER && (op.part < 0 || op.part >= op.parts)) ||
      op.reduce < 0 || op.reduce > 4)
    bad(tb, op, format("part %d of %d, reduction %d", op.part, op.parts, op.reduce));
  const OpShape s = shape_of(op.kind);
  const int32_t n_src = op.src_end - op.src_start, n_dst = op.dst_end - op.dst_start;
  if (n_src < s.src || (s.most_src >= 0 && n_src > s.most_src) || n_dst < s.dst ||
      (s.most_dst >= 0 && n_dst > s.most_dst) || (s.pairs && n_src != n_dst))
    bad(tb, op, format("%d sources and %d destinations", n_src, n_dst));
  for (int32_t i = op.src_start; i < op.src_end; i++) check_operand(tb, op, operands_[size_t(i)]);
  for (int32_t i = op.dst_start; i < op.dst_end; i++) {
    const mscclsh_operand &o = operands_[size_t(i)];
    check_operand(tb, op, o);
    const int32_t from = s.pairs ? op.src_start + i - op.dst_start : op.src_start;
    if (o.size != operands_[size_t(from)].size)
      bad(tb, op, format("%d chunks into %d", operands_[size_t(from)].size, o.size));
  }
  for (int32_t i = op.src_start; !s.pairs && i < op.src_end; i++)
    if (operands_[size_t(i)].size != operands_[size_t(op.src_start)].size)
      bad(tb, op,
          format("sources of %d and %d chunks", operands_[size_t(op.src_start)].size,
                 operands_[size_t(i)].size));
  check_refs(tb, op);
}

void OneProg::check_operand(int32_t tb, const mscclsh_op &op, const mscclsh_operand &o) const {
  if (o.rank < 0 || o.rank >= comm->ranks() || o.buf < 0 || o.buf > 2 || o.index < 0 ||
      o.size < 1 || int64_t(o.index) + o.size > chunks_[size_t(3 * o.rank + o.buf)])
    bad(tb, op,
        format("chunks %d to %lld of buffer %d of rank %d", o.index,
               static_cast<long long>(o.index) + o.size, o.buf, o.rank));
  if (o.packets && (o.buf != 2 || !packets_)) bad(tb, op, "packets outside of packet scratch");
}

void OneProg::check_refs(int32_t tb, const mscclsh_op &op) const {
  const int32_t r = tbs_[size_t(tb)].rank, n = op.ref_end - op.ref_start;
  const int32_t channels = first_channel_[size_t(r) + 1] - first_channel_[size_t(r)];
  const bool sems = op.kind == MSCCLSH_OP_SEM_ACQUIRE || op.kind == MSCCLSH_OP_SEM_RELEASE;
  const int32_t have = sems ? first_semaphore_[size_t(r) + 1] - first_semaphore_[size_t(r)]
                       : op.kind == MSCCLSH_OP_BARRIER ? INT32_MAX
                                                       : channels;
  for (int32_t i = op.ref_start; i < op.ref_end; i++) {
    const int32_t ref = refs_[size_t(i)];
    if (ref < 0 || ref >= have) bad(tb, op, format("channel, semaphore or barrier %d", ref));
    if (sems || op.kind == MSCCLSH_OP_BARRIER) continue;
    const mscclsh_channel &c = channel(r, ref);
    if (c.peer < 0 || c.peer >= comm->ranks() || c.peer == r || c.kind != op.via)
      bad(tb, op, format("channel %d to rank %d is of another kind", ref, c.peer));
    const int32_t theirs = first_channel_[size_t(c.peer) + 1] - first_channel_[size_t(c.peer)];
    const bool moves = op.kind == MSCCLSH_OP_PUT || op.kind == MSCCLSH_OP_PPKT ||
                       op.kind == MSCCLSH_OP_RPPKT || op.kind == MSCCLSH_OP_FLUSH;
    if (!moves && (c.pair < 0 || c.pair >= theirs))
      bad(tb, op, format("channel %d to rank %d has no other end", ref, c.peer));
  }
  if (op.kind == MSCCLSH_OP_BARRIER && n != 1) bad(tb, op, "a barrier without a number");
  if (op.via == MSCCLSH_VIA_PORT && op.dst_end > op.dst_start && n != op.dst_end - op.dst_start)
    bad(tb, op, format("%d channels for %d destinations", n, op.dst_end - op.dst_start));
}

// find_barriers numbers what each rank counts.
void OneProg::find_barriers() {
  const int32_t ranks = comm->ranks();
  barriers_.resize(size_t(ranks));
  for (size_t tb = 0; tb < tbs_.size(); tb++) {
    auto add = [&](const mscclsh_op &op) {
      if (op.kind != MSCCLSH_OP_BARRIER) return;
      std::map<int32_t, int32_t> &of = barriers_[size_t(tbs_[tb].rank)];
      of.insert({refs_[size_t(op.ref_start)], int32_t(of.size())});
    };
    for (int32_t i = blocks_[tb].start; i < blocks_[tb].end; i++) {
      const mscclsh_op &op = ops_[size_t(i)];
      add(op);
      if (op.kind != MSCCLSH_OP_PIPELINE) continue;
      for (int32_t k = op.body_start; k < op.body_end; k++) add(ops_[size_t(k)]);
    }
  }
  for (int32_t r = 0; r < ranks; r++) {
    const int32_t channels = first_channel_[size_t(r) + 1] - first_channel_[size_t(r)];
    const int32_t semaphores = first_semaphore_[size_t(r) + 1] - first_semaphore_[size_t(r)];
    first_.insert(first_.end(), {0, channels, channels + semaphores});
    n_counters_.push_back(channels + semaphores + int32_t(barriers_[size_t(r)].size()));
    int32_t ports = 0;
    for (int32_t i = 0; i < channels; i++) ports += channel(r, i).kind == MSCCLSH_VIA_PORT;
    n_ports_.push_back(ports);
  }
}

void OneProg::allocate_words() {
  for (int32_t r = 0; r < comm->ranks(); r++) {
    if (!comm->local(r)) continue;
    const int64_t lines = requests(r) + 1 + ports(r);
    words_[size_t(3 * r)] = static_cast<unsigned char *>(
        comm->alloc_buffer(comm->device_of(r), size_t(lines * kLine), true));
  }
  for (int32_t i = 0; i < comm->devices(); i++) {
    Grid &g = grids_[size_t(i)];
    g.records = static_cast<Record *>(comm->device(i).alloc(g.blocks.size() * sizeof(Record)));
    g.launches =
        static_cast<uint64_t *>(comm->device(i).alloc(2 * g.blocks.size() * sizeof(uint64_t)));
    if (most_sums_ > 0)
      sums_[size_t(i)] = static_cast<OneSum *>(
          comm->device(i).alloc(g.blocks.size() * most_sums_ * sizeof(OneSum)));
  }
}

uint64_t *OneProg::word(int32_t device, int32_t rank, int64_t line) const {
  return reinterpret_cast<uint64_t *>(words_at_.at(device, rank, 0) + line * kLine);
}

int32_t OneProg::port_of(int32_t rank, int32_t channel_index) const {
  int32_t n = 0;
  for (int32_t i = 0; i < channel_index; i++) n += channel(rank, i).kind == MSCCLSH_VIA_PORT;
  return n;
}

// open_ports gives each rank here that has ports a queue to the host's thread.
void OneProg::open_ports() {
  for (int32_t r = 0; r < comm->ranks(); r++) {
    if (!comm->local(r) || ports(r) == 0) continue;
    const int32_t d = comm->device_of(r);
    std::vector<PortEnd> ends;
    const int32_t channels = first_channel_[size_t(r) + 1] - first_channel_[size_t(r)];
    for (bool bound : {false, true}) {
      int64_t port = 0;
      for (int32_t i = 0; i < channels; i++) {
        const mscclsh_channel &c = channel(r, i);
        if (c.kind != MSCCLSH_VIA_PORT) continue;
        PortEnd e;
        if (c.peer >= 0 && c.peer < comm->ranks() && c.pair >= 0)
          e.signals = word(d, c.peer, counted(c.peer, bound) + c.pair);
        e.flushed = word(d, r, requests(r) + 1 + port++);
        ends.push_back(e);
      }
    }
    queues_[size_t(r)] = comm->ports().open(comm->device(d).id, std::move(ends));
  }
}

// clear_words lets every launch that follows count from 0, but those of bound calls. What ports
// count goes on.
void OneProg::clear_words() {
  for (int32_t i = 0; i < comm->devices(); i++) {
    const Grid &g = grids_[size_t(i)];
    if (!g.blocks.empty()) comm->device(i).fill(g.launches, 0, g.blocks.size() * sizeof(uint64_t));
  }
  for (int32_t r = 0; r < comm->ranks(); r++) {
    if (!comm->local(r)) continue;
    if (counters(r) > 0)
      device_of(r).fill(words_[size_t(3 * r)], 0, size_t(2 * counters(r) * kLine));
    if (queues_[size_t(r)] != nullptr) comm->ports().reset(queues_[size_t(r)], uint32_t(ports(r)));
  }
}

}  // namespace mscclsh
