// One-sided programs of the tests, operation by operation.
#ifndef MSCCLSH_TEST_ONE_PROGRAMS_H
#define MSCCLSH_TEST_ONE_PROGRAMS_H

#include <cstdint>
#include <functional>

#include "programs.h"

constexpr int32_t kIn = 0, kOut = 1, kScratch = 2;

// one_input is an element of rank r's input, of int32.
inline int32_t one_input(int32_t r, int64_t i, int seed) {
  return int32_t(1000003 * (r + 1) + 7 * i + 31 * seed);
}

// Place is a range of chunks of a rank's buffer.
struct Place {
  int32_t rank, buf, index, size = 1, packets = 0;
};

// OneProgram is written rank by rank, thread block by thread block; all ranks have the
// same buffers, and a memory channel and a port channel to every other rank, in the
// order of the ranks.
struct OneProgram {
  OneProgram(int32_t ranks, int32_t in, int32_t out, int32_t scratch) : ranks(ranks) {
    for (int32_t r = 0; r < ranks; r++) {
      for (int32_t n : {in, out, scratch}) {
        base_buf.push_back(int32_t(chunks.size()) % 3);
        base_chunk.push_back(0);
        chunks.push_back(n);
      }
      for (int32_t kind : {MSCCLSH_VIA_MEMORY, MSCCLSH_VIA_PORT})
        for (int32_t peer = 0; peer < ranks; peer++)
          if (peer != r)
            channels.push_back({kind, peer, channel(peer, r, kind == MSCCLSH_VIA_PORT), 0});
      n_channels.push_back(2 * (ranks - 1));
      n_semaphores.push_back(2);
      semaphores.insert(semaphores.end(), {1, 0});
      tbs.push_back(0);
    }
  }

  int32_t channel(int32_t from, int32_t to, bool port) const {
    return (port ? ranks - 1 : 0) + to - (to > from);
  }

  // block begins a thread block of a rank, the same as before or a later one.
  void block(int32_t rank) {
    tbs[size_t(rank)]++;
    blocks.push_back({int32_t(ops.size()), int32_t(ops.size())});
  }

  mscclsh_op &op(int32_t kind, int32_t via = MSCCLSH_VIA_NONE, const std::vector<int32_t> &on = {},
                 const std::vector<Place> &src = {}, const std::vector<Place> &dst = {}) {
    mscclsh_op x = {};
    x.kind = kind;
    x.via = via;
    x.parts = 1;
    x.src_start = list(src, &x.src_end);
    x.dst_start = list(dst, &x.dst_end);
    x.ref_start = int32_t(refs.size());
    refs.insert(refs.end(), on.begin(), on.end());
    x.ref_end = int32_t(refs.size());
    ops.push_back(x);
    if (!open_pipeline) blocks.back().end = int32_t(ops.size());
    return ops.back();
  }
  void nop() { op(MSCCLSH_OP_NOP); }

  // pipeline is one whose body is written by f. It must be a block's last operation.
  template <class F>
  void pipeline(int64_t unit, int32_t n_chunks, F f) {
    mscclsh_op &x = op(MSCCLSH_OP_PIPELINE);
    x.unit_bytes = unit;
    x.unit_chunks = n_chunks;
    const size_t at = ops.size() - 1;
    open_pipeline = true;
    f();
    open_pipeline = false;
    ops[at].body_start = int32_t(at) + 1;
    ops[at].body_end = int32_t(ops.size());
  }

  mscclsh_one_program flatten() const {
    mscclsh_one_program p = {};
    p.tbs = tbs.data();
    p.blocks = blocks.data();
    p.n_channels = n_channels.data();
    p.channels = channels.data();
    p.n_semaphores = n_semaphores.data();
    p.semaphores = semaphores.data();
    p.ops = ops.data();
    p.operands = operands.data();
    p.refs = refs.data();
    p.chunks = chunks.data();
    p.base_buf = base_buf.data();
    p.base_chunk = base_chunk.data();
    p.n_ops = int64_t(ops.size());
    p.n_operands = int64_t(operands.size());
    p.n_refs = int64_t(refs.size());
    p.packets = packets;
    p.double_scratch = double_scratch;
    p.alignment = 16;
    return p;
  }

  const int32_t ranks;
  int32_t packets = 0, double_scratch = 0;
  bool open_pipeline = false;
  std::vector<int32_t> tbs, n_channels, n_semaphores, semaphores, refs, chunks, base_buf,
      base_chunk;
  std::vector<mscclsh_span> blocks;
  std::vector<mscclsh_channel> channels;
  std::vector<mscclsh_op> ops;
  std::vector<mscclsh_operand> operands;

 private:
  int32_t list(const std::vector<Place> &places, int32_t *end) {
    const int32_t start = int32_t(operands.size());
    for (const Place &p : places)
      operands.push_back({p.rank, p.buf, p.index, p.size, p.packets, 0});
    *end = int32_t(operands.size());
    return start;
  }
};

// gather_of wants an allgather.
using Wanted = std::function<int32_t(int32_t, int32_t, int64_t)>;  // rank, chunk, element
inline Wanted gather_of(int seed) {
  return [=](int32_t, int32_t c, int64_t i) { return one_input(c, i, seed); };
}

// gather_all is an allgather: every rank puts its chunk everywhere and signals, after all have
// said that they are ready. Via ports, or memory.
inline OneProgram gather_all(int32_t n, bool port) {
  OneProgram p(n, 1, n, 0);
  const int32_t via = port ? MSCCLSH_VIA_PORT : MSCCLSH_VIA_MEMORY;
  for (int32_t r = 0; r < n; r++) {
    std::vector<int32_t> ready, on;
    std::vector<Place> from, to;
    for (int32_t q = 0; q < n; q++) {
      if (q == r) continue;
      ready.push_back(p.channel(r, q, false));
      on.push_back(p.channel(r, q, port));
      from.push_back({r, kIn, 0});
      to.push_back({q, kOut, r});
    }
    p.block(r);
    p.op(MSCCLSH_OP_RLXSIGNAL, MSCCLSH_VIA_MEMORY, ready);
    p.op(MSCCLSH_OP_RLXWAIT, MSCCLSH_VIA_MEMORY, ready);
    p.nop();
    p.op(MSCCLSH_OP_PUT, via, port ? on : std::vector<int32_t>(), from, to);
    p.op(MSCCLSH_OP_COPY, 0, {}, {{r, kIn, 0}}, {{r, kOut, r}});
    p.nop();
    p.op(MSCCLSH_OP_SIGNAL, via, on);
    p.op(MSCCLSH_OP_WAIT, via, on);
    if (port) p.op(MSCCLSH_OP_FLUSH, via, on);
  }
  return p;
}

// reduce_all is an allreduce of packets: everything is sent everywhere, into a slot for each.
// If threads meet before a sum is written it may be where the input was.
inline OneProgram reduce_all(int32_t n, bool meets = false) {
  OneProgram p(n, 1, 1, n);
  p.packets = p.double_scratch = 1;
  for (int32_t r = 0; r < n; r++) {
    std::vector<Place> from, to, sum = {{r, kIn, 0}};
    for (int32_t q = 0; q < n; q++) {
      if (q == r) continue;
      from.push_back({r, kIn, 0});
      to.push_back({q, kScratch, r, 1, 1});
      sum.push_back({r, kScratch, q, 1, 1});
    }
    p.block(r);
    p.op(MSCCLSH_OP_PPKT, MSCCLSH_VIA_MEMORY, {}, from, to);
    if (meets) p.nop();
    p.op(MSCCLSH_OP_REPKT, 0, {}, sum, {{r, kOut, 0}});
  }
  return p;
}

inline Wanted sum_of(int32_t n, int seed) {
  return [=](int32_t, int32_t, int64_t i) {
    uint32_t v = 0;
    for (int32_t r = 0; r < n; r++) v += uint32_t(one_input(r, i, seed));
    return int32_t(v);
  };
}

#endif
