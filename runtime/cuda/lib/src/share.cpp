// Which memory thread blocks of a rank share, in an order that messages alone may say.
#include <algorithm>
#include <map>
#include <tuple>

#include "prog.h"

namespace mscclsh {

namespace {

// Order follows a rank's steps in an order in which they may be done. It knows which steps
// of each thread block come before the next one of another by what is posted and waited for.
class Order {
 public:
  explicit Order(size_t tbs) : before_(tbs, std::vector<int32_t>(tbs)) {}

  // note says that others wait for a step.
  void note(int32_t tb, int32_t step) { noted_[{tb, step}]; }

  // after lets a thread block wait for a step, and returns whether that one is done.
  bool after(int32_t tb, int32_t on, int32_t step) {
    if (before_[size_t(on)][size_t(on)] <= step) return false;
    const std::vector<int32_t> &from = noted_[{on, step}];
    std::vector<int32_t> &to = before_[size_t(tb)];
    for (size_t t = 0; t < to.size(); t++) to[t] = std::max(to[t], from[t]);
    return true;
  }

  void done(int32_t tb, int32_t step) {
    before_[size_t(tb)][size_t(tb)] = step + 1;
    const auto waited = noted_.find({tb, step});
    if (waited != noted_.end()) waited->second = before_[size_t(tb)];
  }

  bool has(int32_t tb, int32_t other, int32_t step) const {
    return step < before_[size_t(tb)][size_t(other)];
  }

 private:
  std::vector<std::vector<int32_t>> before_;  // of each thread block, how many of each
  std::map<std::pair<int32_t, int32_t>, std::vector<int32_t>> noted_;
};

// Access is a thread block's last step that touched a chunk, and its last that wrote it.
struct Access {
  int32_t tb, touched, wrote;
};

}  // namespace

// Sharing finds a rank's shared chunks.
class Prog::Sharing {
 public:
  Sharing(Prog *p, int32_t rank)
      : p_(*p),
        rank_(rank),
        first_(p->first_tb_[size_t(rank)]),
        tbs_(size_t(p->first_tb_[size_t(rank) + 1] - first_)),
        order_(tbs_) {
    for (int32_t b = 0; b < 3; b++) by_[b].resize(size_t(p->chunks_[size_t(3 * rank + b)]));
  }

  // find takes steps of all thread blocks in turns, each when what it waits for is done.
  // Where all wait for each other they never happen, and are taken as they come.
  void find() {
    for (size_t t = 0; t < tbs_; t++)
      for (int32_t i = 0; i < tb(t).steps; i++)
        for (const mscclsh_dep &d : deps(t, i)) order_.note(d.tb, d.step);
    std::vector<int32_t> next(tbs_);
    bool stuck = false;
    for (size_t left = tbs_; left > 0;) {
      bool moved = false;
      left = 0;
      for (size_t t = 0; t < tbs_; t++) {
        for (; next[t] < tb(t).steps && (wait(t, next[t]) || stuck); next[t]++, moved = true)
          step(int32_t(t), next[t]);
        left += next[t] < tb(t).steps;
      }
      stuck = !moved;
    }
  }

 private:
  struct Deps {
    const mscclsh_dep *from, *to;
    const mscclsh_dep *begin() const { return from; }
    const mscclsh_dep *end() const { return to; }
  };

  const ThreadBlock &tb(size_t t) const { return p_.tbs_[size_t(first_) + t]; }
  Deps deps(size_t t, int32_t i) const {
    const mscclsh_step &s = p_.steps_[size_t(tb(t).first_step + i)];
    return {p_.deps_.data() + s.dep_start, p_.deps_.data() + s.dep_end};
  }

  bool wait(size_t t, int32_t i) {
    bool all = true;
    for (const mscclsh_dep &d : deps(t, i)) all &= order_.after(int32_t(t), d.tb, d.step);
    return all;
  }

  void step(int32_t t, int32_t i) {
    const mscclsh_step &s = p_.steps_[size_t(tb(size_t(t)).first_step + i)];
    if (reads_src(s.kind)) touch(t, i, s.src_buf, s.src_chunk, s.count, false);
    if (writes_dst(s.kind)) touch(t, i, s.dst_buf, s.dst_chunk, s.count, true);
    order_.done(t, i);
  }

  void touch(int32_t t, int32_t i, int32_t buf, int32_t chunk, int32_t count, bool writes) {
    const size_t at = size_t(3 * rank_ + buf), own = size_t(p_.base_buf_[at]);
    const int32_t from = p_.base_chunk_[at] + chunk;
    for (int32_t c = from; c < from + count; c++) {
      std::vector<Access> &all = by_[own][size_t(c)];
      Access *mine = nullptr;
      for (Access &a : all) {
        if (a.tb == t)
          mine = &a;
        else if (!order_.has(t, a.tb, writes ? a.touched : a.wrote))
          p_.messages_order_ = p_.shared_[size_t(3 * rank_) + own][size_t(c)] = true;
      }
      if (mine == nullptr) {
        all.push_back({t, -1, -1});
        mine = &all.back();
      }
      mine->touched = i;
      if (writes) mine->wrote = i;
    }
  }

  Prog &p_;
  const int32_t rank_, first_;
  const size_t tbs_;
  Order order_;
  std::vector<std::vector<Access>> by_[3];
};

// find_shared finds the chunks that several thread blocks of a rank touch, and one writes,
// where what is posted and waited for does not order them.
void Prog::find_shared() {
  if (!shared_.empty()) return;
  shared_.resize(buffers_.size());
  for (size_t i = 0; i < buffers_.size(); i++) shared_[i].assign(size_t(chunks_[i]), false);
  for (int32_t r = 0; r < comm->ranks(); r++) Sharing(this, r).find();
}

// shares says whether step i of a thread block touches such a chunk.
bool Prog::shares(const ThreadBlock &tb, int32_t i) const {
  const mscclsh_step &s = steps_[size_t(tb.first_step + i)];
  auto any = [&](int32_t buf, int32_t chunk) {
    const size_t at = size_t(3 * tb.rank + buf), own = size_t(3 * tb.rank + base_buf_[at]);
    for (int32_t c = base_chunk_[at] + chunk; c < base_chunk_[at] + chunk + s.count; c++)
      if (shared_[own][size_t(c)]) return true;
    return false;
  };
  return (reads_src(s.kind) && any(s.src_buf, s.src_chunk)) ||
         (writes_dst(s.kind) && any(s.dst_buf, s.dst_chunk));
}

}  // namespace mscclsh
