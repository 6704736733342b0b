// One-sided programs made by hand (bundle.h): every rank brings what others need of it
// straight to them.
#include <algorithm>

#include "bundle.h"

namespace {

constexpr int32_t kIn = 0, kOut = 1, kScratch = 2;

// Range is a block, or several, of a rank's buffer.
struct Range {
  int32_t rank, buf, block;
  int32_t packets = 0;
};

bool reducing(int32_t c) {
  return c == MSCCLSH_ALLREDUCE || c == MSCCLSH_REDUCESCATTER || c == MSCCLSH_REDUCE_TO_ROOT;
}

// OneMaker writes rank by rank, thread block by thread block.
class OneMaker {
 public:
  OneMaker(const Shape &s, Way way) : s_(s), way_(way), n_(s.ranks), m_(s.parts), o_(new HandOne) {
    p_.ranks = n_;
    p_.protocol = s.protocol;
    p_.count_chunks = m_;
    o_->packets = o_->double_scratch = way == Way::kPackets;
    for (int32_t r = 0; r < n_; r++) {
      for (const int32_t set : {kData, kPort, kAsk})
        for (int32_t q = 0; q < n_; q++)
          if (q != r)
            o_->channels.push_back(
                {set == kPort ? MSCCLSH_VIA_PORT : MSCCLSH_VIA_MEMORY, q, channel(q, r, set), 0});
      o_->n_channels.push_back(3 * (n_ - 1));
      o_->n_semaphores.push_back(1);
      o_->semaphores.push_back(0);
      buffers(r);
    }
  }

  HandProgram make() {
    for (int32_t r = 0; r < n_; r++) {
      o_->tbs.push_back(0);
      switch (way_) {
        case Way::kPackets:
          packets(r);
          break;
        case Way::kPipeline:
          pipeline(r);
          break;
        default:
          windows(r);
      }
      if (reducing(s_.collective) && gets(r)) p_.divides.push_back({r, 0, m_, n_});
    }
    p_.one = o_;
    p_.title = "one-sided";
    return std::move(p_);
  }

 private:
  // Every rank has three channels to every other one: for what comes with data, by memory and
  // by ports, and for whoever asks for it.
  enum { kData, kPort, kAsk };
  int32_t channel(int32_t from, int32_t to, int32_t set) const {
    return set * (n_ - 1) + to - (to > from);
  }
  bool rooted() const { return s_.root >= 0; }
  bool from_root() const {
    return s_.collective == MSCCLSH_BROADCAST || s_.collective == MSCCLSH_SCATTER;
  }
  bool to_root() const {
    return s_.collective == MSCCLSH_GATHER || s_.collective == MSCCLSH_REDUCE_TO_ROOT;
  }
  bool parts() const {
    const int32_t c = s_.collective;
    return c == MSCCLSH_ALLTOALL || c == MSCCLSH_SCATTER || c == MSCCLSH_REDUCESCATTER;
  }
  bool gathers() const {
    const int32_t c = s_.collective;
    return c == MSCCLSH_ALLTOALL || c == MSCCLSH_ALLGATHER || c == MSCCLSH_GATHER;
  }
  bool gives(int32_t r) const { return !from_root() || r == s_.root; }
  bool gets(int32_t r) const { return !to_root() || r == s_.root; }
  bool flows(int32_t from, int32_t to) const { return from != to && gives(from) && gets(to); }
  // What to needs of from's input, where it belongs, and where it waits on its way.
  Range source(int32_t from, int32_t to) const { return {from, kIn, parts() ? to : 0}; }
  Range result(int32_t from, int32_t to) const { return {to, kOut, gathers() ? from : 0}; }
  Range slot(int32_t from, int32_t to) const { return {to, kScratch, from, way_ == Way::kPackets}; }

  void buffers(int32_t r) {
    const int32_t in = gives(r) ? (parts() ? n_ : 1) : 0, out = gets(r) ? (gathers() ? n_ : 1) : 0;
    const int32_t scratch = way_ == Way::kGets ? 1 : way_ == Way::kPorts ? 0 : n_;
    const int32_t sizes[3] = {in, out, scratch};
    for (int32_t b = 0; b < 3; b++) {
      p_.chunks.push_back(sizes[b] * m_);
      p_.base_buf.push_back(b);
      p_.base_chunk.push_back(0);
    }
    if (!s_.in_place || in == 0 || out == 0) return;
    const int32_t inner = in < out ? kIn : kOut;
    p_.base_buf[size_t(3 * r + inner)] = 1 - inner;
    p_.base_chunk[size_t(3 * r + inner)] = in == out ? 0 : r * m_;
  }

  void block(int32_t r) {
    o_->tbs[size_t(r)]++;
    o_->blocks.push_back({int32_t(o_->ops.size()), int32_t(o_->ops.size())});
  }
  mscclsh_op &op(int32_t kind, int32_t via = 0, const std::vector<int32_t> &refs = {},
                 const std::vector<Range> &src = {}, const std::vector<Range> &dst = {}) {
    mscclsh_op x = {};
    x.kind = kind;
    x.via = via;
    x.parts = 1;
    x.src_start = list(src);
    x.src_end = x.dst_start = int32_t(o_->operands.size());
    list(dst);
    x.dst_end = int32_t(o_->operands.size());
    x.ref_start = int32_t(o_->refs.size());
    o_->refs.insert(o_->refs.end(), refs.begin(), refs.end());
    x.ref_end = int32_t(o_->refs.size());
    o_->ops.push_back(x);
    if (!inside_) o_->blocks.back().end = int32_t(o_->ops.size());
    return o_->ops.back();
  }
  int32_t list(const std::vector<Range> &ranges) {
    const int32_t start = int32_t(o_->operands.size());
    for (const Range &x : ranges)
      o_->operands.push_back({x.rank, x.buf, x.block * m_, m_, x.packets, 0});
    return start;
  }
  void nop() { op(MSCCLSH_OP_NOP); }

  // say signals to, or waits for, all to whom rank r sends, or from whom it receives.
  void say(int32_t kind, int32_t set, int32_t r, bool receivers) {
    std::vector<int32_t> on;
    for (int32_t q = 0; q < n_; q++)
      if (receivers ? flows(r, q) : flows(q, r)) on.push_back(channel(r, q, set));
    if (!on.empty()) op(kind, MSCCLSH_VIA_MEMORY, on);
  }
  // ready lets those who send to rank r know that it takes part, and waits until those do to
  // whom it sends.
  void ready(int32_t r) {
    say(MSCCLSH_OP_RLXSIGNAL, kAsk, r, false);
    say(MSCCLSH_OP_RLXWAIT, kAsk, r, true);
    nop();
  }
  void send(int32_t kind, int32_t via, int32_t r) {
    std::vector<Range> from, to;
    std::vector<int32_t> on;
    for (int32_t q = 0; q < n_; q++) {
      if (!flows(r, q)) continue;
      from.push_back(source(r, q));
      to.push_back(via == MSCCLSH_VIA_PORT ? result(r, q) : slot(r, q));
      on.push_back(channel(r, q, kPort));
    }
    if (from.empty()) return;
    op(kind, via, via == MSCCLSH_VIA_PORT ? on : std::vector<int32_t>(), from, to);
  }
  // take makes results of what has come to rank r: sums, or one block after another.
  void take(int32_t r, int32_t adds, int32_t moves) {
    std::vector<Range> terms = {source(r, r)};
    if (gives(r) && gets(r) && !reducing(s_.collective))
      op(MSCCLSH_OP_COPY, 0, {}, {source(r, r)}, {result(r, r)});
    for (int32_t q = 0; q < n_; q++) {
      if (!flows(q, r)) continue;
      terms.push_back(slot(q, r));
      if (!reducing(s_.collective)) op(moves, 0, {}, {slot(q, r)}, {result(q, r)});
    }
    if (reducing(s_.collective) && gets(r)) op(adds, 0, {}, terms, {result(r, r)});
  }

  // packets: who sends all the time and never hears of it must ask first.
  void packets(int32_t r) {
    block(r);
    if (rooted()) ready(r);
    send(MSCCLSH_OP_PPKT, MSCCLSH_VIA_MEMORY, r);
    nop();
    take(r, MSCCLSH_OP_REPKT, MSCCLSH_OP_UPKT);
  }

  // pipeline: the second block goes on with a unit when the first has sent it, as its results
  // may lie where that was.
  void pipeline(int32_t r) {
    block(r);
    ready(r);
    turns([&] {
      send(MSCCLSH_OP_PUT, MSCCLSH_VIA_MEMORY, r);
      nop();
      say(MSCCLSH_OP_SIGNAL, kData, r, true);
      op(MSCCLSH_OP_SEM_RELEASE, 0, {0});
    });
    block(r);
    turns([&] {
      op(MSCCLSH_OP_SEM_ACQUIRE, 0, {0});
      say(MSCCLSH_OP_WAIT, kData, r, false);
      nop();
      take(r, MSCCLSH_OP_RE, MSCCLSH_OP_COPY);
    });
  }
  template <class F>
  void turns(F f) {
    const size_t at = o_->ops.size();
    op(MSCCLSH_OP_PIPELINE);
    inside_ = true;
    f();
    inside_ = false;
    o_->ops[at].unit_bytes = 64;
    o_->ops[at].unit_chunks = m_;
    o_->ops[at].body_start = int32_t(at) + 1;
    o_->ops[at].body_end = int32_t(o_->ops.size());
  }

  // windows: all are there before the first touches another one's memory, and after the last
  // has.
  void windows(int32_t r) {
    const bool port = way_ == Way::kPorts;
    block(r);
    op(MSCCLSH_OP_SIGNAL, MSCCLSH_VIA_MEMORY, others(r, kData));
    op(MSCCLSH_OP_WAIT, MSCCLSH_VIA_MEMORY, others(r, kData));
    nop();
    if (port) {
      send(MSCCLSH_OP_PUT, MSCCLSH_VIA_PORT, r);
      if (!s_.in_place) op(MSCCLSH_OP_COPY, 0, {}, {source(r, r)}, {result(r, r)});
      op(MSCCLSH_OP_SIGNAL, MSCCLSH_VIA_PORT, others(r, kPort));
      op(MSCCLSH_OP_WAIT, MSCCLSH_VIA_PORT, others(r, kPort));
      op(MSCCLSH_OP_FLUSH, MSCCLSH_VIA_PORT, others(r, kPort));
      return;
    }
    std::vector<Range> from = {source(r, r)}, to;
    for (int32_t q = 0; q < n_; q++)
      if (q != r) from.push_back(source(q, r)), to.push_back(result(q, r));
    const Range kept = {r, kScratch, 0};
    if (reducing(s_.collective)) {
      op(MSCCLSH_OP_RRE, MSCCLSH_VIA_MEMORY, {}, from, {kept});
    } else {
      if (!s_.in_place) op(MSCCLSH_OP_COPY, 0, {}, {source(r, r)}, {result(r, r)});
      from.erase(from.begin());
      op(MSCCLSH_OP_GET, MSCCLSH_VIA_MEMORY, {}, from, to);
    }
    nop();
    op(MSCCLSH_OP_SIGNAL, MSCCLSH_VIA_MEMORY, others(r, kData));
    op(MSCCLSH_OP_WAIT, MSCCLSH_VIA_MEMORY, others(r, kData));
    nop();
    if (reducing(s_.collective)) op(MSCCLSH_OP_COPY, 0, {}, {kept}, {result(r, r)});
  }
  std::vector<int32_t> others(int32_t r, int32_t set) const {
    std::vector<int32_t> on;
    for (int32_t q = 0; q < n_; q++)
      if (q != r) on.push_back(channel(r, q, set));
    return on;
  }

  const Shape s_;
  const Way way_;
  const int32_t n_, m_;
  bool inside_ = false;
  HandProgram p_;
  std::shared_ptr<HandOne> o_;
};

}  // namespace

HandProgram one_straight(const Shape &shape, Way way) { return OneMaker(shape, way).make(); }
