#include "programs.h"

Program::Program(int32_t ranks) : gpus(size_t(ranks)) {
  for (int32_t r = 0; r < ranks; r++) {
    for (int32_t b = 0; b < 3; b++) {
      chunks.push_back(0);
      base_buf.push_back(b);
      base_chunk.push_back(0);
    }
  }
}

int32_t Program::block(int32_t rank) {
  gpus[size_t(rank)].emplace_back();
  return int32_t(gpus[size_t(rank)].size()) - 1;
}

mscclsh_step &Program::step(int32_t rank, int32_t tb, int32_t kind, int32_t count) {
  mscclsh_step s = {};
  s.kind = kind;
  s.count = kind == MSCCLSH_NOP ? 0 : count;
  s.send_peer = s.recv_peer = -1;
  std::vector<mscclsh_step> &steps = gpus[size_t(rank)][size_t(tb)].steps;
  steps.push_back(s);
  return steps.back();
}

void Program::after(int32_t rank, int32_t tb, int32_t on) {
  auto &g = gpus[size_t(rank)];
  g[size_t(on)].steps.back().post = 1;
  waits_.push_back({rank, tb, int32_t(g[size_t(tb)].steps.size()) - 1, on,
                    int32_t(g[size_t(on)].steps.size()) - 1});
}

mscclsh_program Program::flatten(int32_t protocol, int32_t slots, int64_t slot_bytes) {
  tbs_.clear();
  steps_per_tb_.clear();
  steps_.clear();
  deps_.clear();
  for (int32_t r = 0; r < int32_t(gpus.size()); r++) {
    const auto &g = gpus[size_t(r)];
    tbs_.push_back(int32_t(g.size()));
    for (int32_t t = 0; t < int32_t(g.size()); t++) {
      const auto &steps = g[size_t(t)].steps;
      steps_per_tb_.push_back(int32_t(steps.size()));
      for (int32_t i = 0; i < int32_t(steps.size()); i++) {
        mscclsh_step s = steps[size_t(i)];
        s.dep_start = int32_t(deps_.size());
        for (const Wait &w : waits_)
          if (w.rank == r && w.tb == t && w.step == i) deps_.push_back({w.on, w.on_step});
        s.dep_end = int32_t(deps_.size());
        steps_.push_back(s);
      }
    }
  }
  mscclsh_program p = {};
  p.tbs = tbs_.data();
  p.steps_per_tb = steps_per_tb_.data();
  p.steps = steps_.data();
  p.deps = deps_.data();
  p.chunks = chunks.data();
  p.base_buf = base_buf.data();
  p.base_chunk = base_chunk.data();
  p.divides = divides.data();
  p.n_deps = int64_t(deps_.size());
  p.n_divides = int64_t(divides.size());
  p.slot_bytes = slot_bytes;
  p.slots = slots;
  p.protocol = protocol;
  return p;
}

namespace {

enum { kIn, kOut, kScratch };

mscclsh_step &src(mscclsh_step &s, int32_t buf, int32_t chunk) {
  s.src_buf = buf;
  s.src_chunk = chunk;
  return s;
}
mscclsh_step &dst(mscclsh_step &s, int32_t buf, int32_t chunk) {
  s.dst_buf = buf;
  s.dst_chunk = chunk;
  return s;
}
mscclsh_step &peers(mscclsh_step &s, int32_t from, int32_t to, int32_t chan) {
  s.recv_peer = from;
  s.send_peer = to;
  s.chan = chan;
  return s;
}

}  // namespace

Program ring(int32_t n, int32_t channels, int32_t k) {
  Program p(n);
  p.chunks_total = n * channels * k;
  for (int32_t r = 0; r < n; r++) {
    p.chunks[size_t(3 * r)] = p.chunks[size_t(3 * r + 1)] = p.chunks_total;
    p.base_buf[size_t(3 * r + 1)] = kIn;
    p.divides.push_back({r, 0, p.chunks_total, n});
    const int32_t prev = (r + n - 1) % n, next = (r + 1) % n;
    for (int32_t c = 0; c < channels; c++) {
      const int32_t tb = p.block(r);
      auto at = [&](int32_t j) { return ((j % n + n) % n * channels + c) * k; };
      auto add = [&](int32_t kind, int32_t j) {
        mscclsh_step &s = p.step(r, tb, kind, k);
        peers(src(dst(s, kOut, at(j)), kIn, at(j)), prev, next, c);
      };
      add(MSCCLSH_SEND, r);
      for (int32_t i = 1; i < n - 1; i++) add(MSCCLSH_RRS, r - i);
      add(n > 1 ? MSCCLSH_RRCS : MSCCLSH_NOP, r - n + 1);
      for (int32_t i = 0; i < n - 2; i++) add(MSCCLSH_RCS, r - i);
      add(MSCCLSH_RECV, r - n + 2);
    }
  }
  return p;
}

Program split_ring(int32_t n) {
  Program p(n);
  p.chunks_total = n;
  for (int32_t r = 0; r < n; r++) {
    p.chunks[size_t(3 * r)] = p.chunks[size_t(3 * r + 1)] = n;
    p.base_buf[size_t(3 * r + 1)] = kIn;
    p.divides.push_back({r, 0, n, n});
    const int32_t prev = (r + n - 1) % n, next = (r + 1) % n;
    const int32_t sender = p.block(r), receiver = p.block(r);
    auto at = [&](int32_t j) { return (j % n + n) % n; };
    for (int32_t i = 0; i < 2 * (n - 1); i++) {
      const int32_t out = at(r - i), in = at(r - i - 1);
      peers(src(p.step(r, sender, MSCCLSH_SEND), kOut, out), -1, next, 2);
      if (i > 0) p.after(r, sender, receiver);
      if (i < n - 1)
        peers(dst(src(p.step(r, receiver, MSCCLSH_RRC), kOut, in), kOut, in), prev, -1, 2);
      else
        peers(dst(p.step(r, receiver, MSCCLSH_RECV), kOut, in), prev, -1, 2);
    }
  }
  return p;
}

Program all_pairs(int32_t n) {
  Program p(n);
  p.chunks_total = n;
  for (int32_t r = 0; r < n; r++) {
    for (int32_t b = 0; b < 3; b++) p.chunks[size_t(3 * r + b)] = n;
    p.divides.push_back({r, 0, n, n});
    const int32_t reducer = p.block(r);
    dst(src(p.step(r, reducer, MSCCLSH_COPY), kIn, r), kOut, r);
    for (int32_t q = 0; q < n; q++) {
      if (q == r) continue;
      const int32_t tb = p.block(r);
      peers(src(p.step(r, tb, MSCCLSH_SEND), kIn, q), -1, q, 0);
      peers(dst(p.step(r, tb, MSCCLSH_RECV), kScratch, q), q, -1, 0);
      dst(src(p.step(r, reducer, MSCCLSH_REDUCE), kScratch, q), kOut, r);
      p.after(r, reducer, tb);
    }
    int32_t tb = 1;
    for (int32_t q = 0; q < n; q++) {
      if (q == r) continue;
      p.step(r, tb, MSCCLSH_NOP);
      p.after(r, tb, reducer);
      peers(src(p.step(r, tb, MSCCLSH_SEND), kOut, r), -1, q, 0);
      peers(dst(p.step(r, tb, MSCCLSH_RECV), kOut, q), q, -1, 0);
      tb++;
    }
  }
  return p;
}

Program gather(int32_t n) {
  Program p(n);
  p.chunks_total = n;
  for (int32_t r = 0; r < n; r++) {
    p.chunks[size_t(3 * r)] = p.chunks[size_t(3 * r + 1)] = n;
    p.base_buf[size_t(3 * r + 1)] = kIn;
    p.divides.push_back({r, 0, n, n});
    const int32_t tb = p.block(r);
    for (int32_t q = 0; q < n; q++)
      if (q != r) peers(src(p.step(r, tb, MSCCLSH_SEND), kIn, q), -1, q, 3);
    for (int32_t q = 0; q < n; q++)
      if (q != r) peers(dst(src(p.step(r, tb, MSCCLSH_RRC), kIn, r), kOut, r), q, -1, 3);
    for (int32_t q = 0; q < n; q++)
      if (q != r) peers(src(p.step(r, tb, MSCCLSH_SEND), kOut, r), -1, q, 3);
    for (int32_t q = 0; q < n; q++)
      if (q != r) peers(dst(p.step(r, tb, MSCCLSH_RECV), kOut, q), q, -1, 3);
  }
  return p;
}

Program chain(int32_t n, int32_t root) {
  Program p(n);
  p.chunks_total = 2;
  for (int32_t r = 0; r < n; r++) {
    p.chunks[size_t(3 * r)] = p.chunks[size_t(3 * r + 1)] = 2;
    const int32_t at = (r - root + n) % n, tb = p.block(r);
    const int32_t prev = at > 0 ? (r + n - 1) % n : -1, next = at < n - 1 ? (r + 1) % n : -1;
    if (at == 0) {
      peers(src(p.step(r, tb, MSCCLSH_SEND, 2), kIn, 0), -1, next, 0);
      dst(src(p.step(r, tb, MSCCLSH_COPY, 2), kIn, 0), kOut, 0);
    } else {
      peers(dst(p.step(r, tb, next < 0 ? MSCCLSH_RECV : MSCCLSH_RCS, 2), kOut, 0), prev, next, 0);
    }
  }
  return p;
}

Program swaps(int32_t chunks, bool in_place) {
  Program p(2);
  p.chunks_total = chunks;
  for (int32_t r = 0; r < 2; r++) {
    p.chunks[size_t(3 * r)] = p.chunks[size_t(3 * r + 1)] = chunks;
    if (in_place) p.base_buf[size_t(3 * r + 1)] = kIn;
    p.divides.push_back({r, 0, chunks, 2});
    const int32_t tb = p.block(r);
    for (int32_t c = 0; c < chunks; c++) {
      peers(src(p.step(r, tb, MSCCLSH_SEND), kIn, c), -1, 1 - r, 0);
      peers(dst(src(p.step(r, tb, MSCCLSH_RRC), kIn, c), kOut, c), 1 - r, -1, 0);
    }
  }
  return p;
}

Program long_chain(int32_t rounds) {
  Program p(2);
  p.chunks_total = 1;
  for (int32_t r = 0; r < 2; r++) {
    p.chunks[size_t(3 * r)] = p.chunks[size_t(3 * r + 1)] = p.chunks[size_t(3 * r + 2)] = 1;
    const int32_t tb = p.block(r), other = p.block(r);
    p.step(r, other, MSCCLSH_NOP);
    for (int32_t i = 0; i < rounds; i++) {
      const bool first = i == 0;
      if (r == 0) {
        peers(src(p.step(r, tb, MSCCLSH_SEND), first ? kIn : kScratch, 0), -1, 1, 0);
        p.after(r, tb, other);
        peers(dst(p.step(r, tb, MSCCLSH_RECV), kScratch, 0), 1, -1, 0);
        p.step(r, other, MSCCLSH_NOP);
        p.after(r, other, tb);
      } else {
        peers(dst(p.step(r, tb, MSCCLSH_RECV), kScratch, 0), 0, -1, 0);
        peers(src(p.step(r, tb, MSCCLSH_SEND), kScratch, 0), -1, 0, 0);
      }
    }
    dst(src(p.step(r, tb, MSCCLSH_COPY), kScratch, 0), kOut, 0);
  }
  return p;
}
