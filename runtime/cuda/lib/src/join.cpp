// What prepare works out about steps beyond their places: which meet whom without a
// slot, which are done in one pass, and before which a block's threads must meet.
#include <algorithm>
#include <map>
#include <tuple>

#include "build.h"

namespace mscclsh {

// match_messages pairs the k-th send of every connection with its k-th receive, by
// numbers of steps over the whole program.
void Prog::match_messages() {
  if (!partner_in_.empty() || steps_.empty()) return;
  using Key = std::tuple<int32_t, int32_t, int32_t>;
  std::map<Key, std::vector<int32_t>> sent, received;
  for (const ThreadBlock &tb : tbs_) {
    for (int32_t i = tb.first_step; i < tb.first_step + tb.steps; i++) {
      const mscclsh_step &s = steps_[size_t(i)];
      if (sends(s.kind)) sent[Key(tb.rank, s.send_peer, s.chan)].push_back(i);
      if (receives(s.kind)) received[Key(s.recv_peer, tb.rank, s.chan)].push_back(i);
    }
  }
  std::vector<int32_t> in(steps_.size(), -1), out(steps_.size(), -1);
  for (auto &c : received) sent[c.first];  // a connection that only receives
  for (const auto &c : sent) {
    const std::vector<int32_t> &from = c.second, &to = received[c.first];
    if (from.size() != to.size())
      invalid(format("rank %d sends rank %d %zu messages on channel %d, which takes %zu",
                     std::get<0>(c.first), std::get<1>(c.first), from.size(), std::get<2>(c.first),
                     to.size()));
    for (size_t k = 0; k < from.size(); k++) {
      const mscclsh_step &s = steps_[size_t(from[k])], &r = steps_[size_t(to[k])];
      if (s.count != r.count)
        invalid(format(
            "message %zu of rank %d to rank %d on channel %d: %d chunks are sent, %d "
            "received",
            k, std::get<0>(c.first), std::get<1>(c.first), std::get<2>(c.first), s.count, r.count));
      if (s.kind == kRrs && reduces(r.kind))
        invalid(format("message %zu of rank %d to rank %d on channel %d has memory on neither side",
                       k, std::get<0>(c.first), std::get<1>(c.first), std::get<2>(c.first)));
      out[size_t(from[k])] = to[k];
      in[size_t(to[k])] = from[k];
    }
  }
  partner_in_ = in;
  partner_out_ = out;
}

// is_exchange says whether step i of a thread block is a send that arrives together with
// the receive after it.
bool Prog::is_exchange(const ThreadBlock &tb, int32_t i) const {
  if (i < 0 || i + 1 >= tb.steps) return false;
  const mscclsh_step &s = steps_[size_t(tb.first_step + i)], &r = (&s)[1];
  return s.kind == kSend && r.kind == kRecv && r.recv_peer == s.send_peer &&
         r.dep_start == r.dep_end;
}

// early says whether a step of a Direct program arrives without waiting for anybody: it
// depends on nothing and is the first of its thread block, or the receive of an exchange
// that is.
bool Prog::early(int32_t global) const {
  const ThreadBlock &tb =
      *(std::upper_bound(tbs_.begin(), tbs_.end(), global,
                         [](int32_t g, const ThreadBlock &t) { return g < t.first_step; }) -
        1);
  int32_t i = global - tb.first_step;
  if (i > 0 && is_exchange(tb, i - 1)) i--;
  return i == 0 && steps_[size_t(tb.first_step)].dep_start == steps_[size_t(tb.first_step)].dep_end;
}

// set_ways says how the messages of a Direct program get across.
void Prog::Builder::set_ways(const ThreadBlock &tb, Step *steps) const {
  for (int32_t i = 0; i < tb.steps; i++) {
    const size_t global = size_t(tb.first_step + i);
    Step &s = steps[i];
    if (receives(s.kind)) {
      const mscclsh_step &from = p_.steps_[size_t(p_.partner_in_[global])];
      s.in_way = reduces(s.kind) ? kPull : kPush;
      const bool source = from.kind == kSend;
      if (s.in_way == kPull)
        s.x = place(p_.steps_[global].recv_peer, source ? from.src_buf : from.dst_buf,
                    source ? from.src_chunk : from.dst_chunk);
      if (p_.is_exchange(tb, i - 1)) s.flags |= kArrived;
    }
    if (sends(s.kind)) {
      const mscclsh_step &to = p_.steps_[size_t(p_.partner_out_[global])];
      s.out_way = reduces(to.kind) ? kPull : kPush;
      if (s.out_way == kPush) s.far = place(p_.steps_[global].send_peer, to.dst_buf, to.dst_chunk);
      if (p_.is_exchange(tb, i)) {
        s.flags |= kExchange;
        // Both end together: the receive's post, which is the later one, stands for both.
        steps[i + 1].post |= s.post;
        s.post = 0;
        s.in = steps[i + 1].in;
        s.in_before = steps[i + 1].in_before;
      }
    }
  }
}

// joins says whether step k of a thread block can be done in one pass with step i and
// those between, all joined already.
//
// The first step's message leaves no earlier than the others' slots are free. That must
// not depend on it: a connection that carries no more messages a launch than a receiver
// may keep to itself waits at most for its receiver to enter this launch.
bool Prog::Builder::joins(const ThreadBlock &tb, const Step *steps, const End *ends, int32_t i,
                          int32_t k) const {
  const Step &first = steps[i], &last = steps[k - 1], &s = steps[k];
  if (s.count != first.count || s.deps > 0 || last.post) return false;
  if ((s.flags | last.flags) & (kExchange | kArrived | kStrict)) return false;
  // The place where the result stands.
  const unsigned char *result = first.kind == kSend ? first.x : first.dst;
  if (result == nullptr) return false;
  const bool adds = (s.kind == kRrc || s.kind == kRrcs || (s.kind == kReduce && s.x != result)) &&
                    s.y == result && s.dst == result;
  const bool passes_on = s.kind == kSend && s.x == result;
  // What is added from memory is aligned as the result is, and no part of it.
  const int64_t bytes = s.count * chunk_bytes_;
  if (s.kind == kReduce && ((uintptr_t(s.x) ^ uintptr_t(result)) % 16 != 0 ||
                            (s.x < result + bytes && result < s.x + bytes)))
    return false;
  if (!adds && !passes_on) return false;
  for (int32_t j = i; j < k; j++) {
    if (adds && (sends(steps[j].kind) || (receives(s.kind) && steps[j].in == s.in))) return false;
    if (sends(s.kind) && sends(steps[j].kind) && steps[j].out == s.out) return false;
  }
  if (p_.wire_.protocol != kDirect && sends(s.kind) &&
      ends[s.out].per_tile * s_.tiles > p_.wire_.slots)
    return false;
  return p_.wire_.protocol != kDirect || joins_direct(tb, first, s, i, k);
}

// joins_direct adds what holds without slots: the messages of one pass all get across in
// the same way, and their other sides are there without any of the pass being done.
bool Prog::Builder::joins_direct(const ThreadBlock &tb, const Step &first, const Step &s, int32_t i,
                                 int32_t k) const {
  const int32_t me = tb.first_step + k, leader = tb.first_step + i;
  // What is read and written at peers in one pass must be the same or apart.
  const unsigned char *at[] = {s.in_way == kPull ? s.x : nullptr,
                               s.out_way == kPush ? s.far : nullptr};
  const int64_t bytes = s.count * chunk_bytes_;
  for (const Step *o = &first; o < &s; o++) {
    const unsigned char *others[] = {o->in_way == kPull ? o->x : nullptr,
                                     o->out_way == kPush ? o->far : nullptr};
    for (const unsigned char *p : at)
      for (const unsigned char *q : others)
        if (p && q && p != q && p < q + bytes && q < p + bytes) return false;
  }
  if (first.kind == kSend && first.out_way == kPull)
    return s.kind == kSend && s.out_way == kPull;  // nobody waits before this
  if (first.kind == kSend)
    return s.kind == kSend && s.out_way == kPush && p_.early(p_.partner_out_[size_t(me)]) &&
           p_.early(p_.partner_out_[size_t(leader)]);
  // What an rcs or rrcs holds is there only after its own message.
  auto ready = [&](int32_t step) {
    const int32_t from = p_.partner_in_[size_t(step)];
    return p_.steps_[size_t(from)].kind == kSend && p_.early(from);
  };
  if (first.kind != kRrc || !ready(leader)) return false;
  if (s.kind == kRrc) return ready(me);
  return s.kind == kSend && s.out_way == kPush && p_.early(p_.partner_out_[size_t(me)]);
}

// join_steps joins steps of a thread block. Those of several messages stay alone, and
// nothing is joined over the end of what lies in shared memory at once.
void Prog::Builder::join_steps(const ThreadBlock &tb, int32_t regime, int32_t window,
                               const End *ends, Step *steps) const {
  for (int32_t i = 0; i < tb.steps; i += 1 + steps[i].join) {
    const uint8_t kind = steps[i].kind;
    if (kind == kNop || (p_.wire_.protocol != kDirect && steps[i].count > regime)) continue;
    if (p_.wire_.protocol == kDirect && kind != kSend && kind != kRrc) continue;
    int32_t k = i + 1;
    while (k < tb.steps && k / window == i / window && k - i <= kMaxJoin &&
           joins(tb, steps, ends, i, k))
      k++;
    Step &s = steps[i];
    s.join = uint8_t(k - i - 1);
    while (s.join_in < s.join && (&s)[1 + s.join_in].kind != kSend) s.join_in++;
    s.join_out = s.join_in;
    if (s.join_in > 0 && ((&s)[s.join_in].flags & kOut)) s.join_out--;
  }
}

namespace {

// Touch is a range of memory that a block's threads have touched; threads that move data
// in the same way over the same range touch the same bytes each.
struct Touch {
  const unsigned char *begin, *end;
  int32_t way;
  bool writes;

  bool conflicts(const Touch &o) const {
    if (!(writes || o.writes) || begin >= o.end || o.begin >= end) return false;
    return way != o.way || begin != o.begin || end != o.end;
  }
};

// kTouches is how many are remembered before the threads just meet.
constexpr size_t kTouches = 64;

}  // namespace

// set_meetings finds the steps before which a block's threads must meet. Steps of
// different tiles touch different bytes.
//
// With LL and LL128 each thread sends its parts of a message once it has taken its own parts
// of those before. In a shorter message some threads have none, so that it does not say that
// those before were taken whole, unless the threads have met.
void Prog::Builder::set_meetings(const ThreadBlock &tb, int32_t regime, Step *steps) const {
  std::vector<Touch> touched, now;
  int32_t taken = 0;  // chunks of the longest message since the threads last met
  for (int32_t i = 0; i < tb.steps; i += 1 + steps[i].join) {
    Step &s = steps[i];
    const int32_t chunks = std::min(s.count, regime);
    bool takes = false, gives = false;
    for (int32_t k = i; k <= i + s.join; k++) {
      takes |= receives(steps[k].kind);
      gives |= sends(steps[k].kind);
    }
    const bool messages = sends(s.kind) || receives(s.kind) || s.join > 0;
    const int32_t way = messages && p_.wire_.protocol != kSimple ? 1 : 0;
    now.clear();
    const int64_t bytes = s.count * chunk_bytes_;
    for (int32_t k = i; k <= i + s.join; k++) {
      if (steps[k].x && steps[k].in_way != kPull)
        now.push_back({steps[k].x, steps[k].x + bytes, way, false});
      if (steps[k].y) now.push_back({steps[k].y, steps[k].y + bytes, way, false});
      if (steps[k].dst) now.push_back({steps[k].dst, steps[k].dst + bytes, way, true});
    }
    const bool met = s.deps > 0 || (messages && p_.wire_.protocol == kDirect);
    if (met) touched.clear();
    if (met || (s.flags & kStrict)) taken = 0;
    bool meet = touched.size() > kTouches || (p_.messages_order_ && gives && chunks < taken);
    for (const Touch &t : touched)
      for (const Touch &n : now) meet |= t.conflicts(n);
    if (meet) {
      s.flags |= kMeet;
      touched.clear();
      taken = 0;
    }
    if (takes) taken = std::max(taken, chunks);
    touched.insert(touched.end(), now.begin(), now.end());
    bool meets_after = steps[i + s.join].post;
    for (int32_t k = i; k <= i + s.join; k++)
      meets_after |= sends(steps[k].kind) && p_.wire_.protocol == kSimple;
    if (meets_after || (messages && p_.wire_.protocol == kDirect)) touched.clear();
    if (meets_after || (s.flags & kStrict)) taken = 0;
  }
}

}  // namespace mscclsh
