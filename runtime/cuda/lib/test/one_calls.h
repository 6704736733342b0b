// Programs that launches of several sizes count differently in, and others of the tests of
// one-sided bound calls.
#ifndef MSCCLSH_TEST_ONE_CALLS_H
#define MSCCLSH_TEST_ONE_CALLS_H

#include "one_programs.h"

// relay hands every rank's input to the next one, unit by unit, through scratch with room for
// all of it: the first block writes and signals, the second waits and copies.
inline OneProgram relay(int32_t n) {
  OneProgram p(n, 1, 1, 1);
  for (int32_t r = 0; r < n; r++) {
    const int32_t next = (r + 1) % n, before = (r + n - 1) % n;
    const int32_t to = p.channel(r, next, false), from = p.channel(r, before, false);
    p.block(r);
    p.op(MSCCLSH_OP_RLXSIGNAL, MSCCLSH_VIA_MEMORY, {from});  // scratch may be written
    p.op(MSCCLSH_OP_RLXWAIT, MSCCLSH_VIA_MEMORY, {to});
    p.op(MSCCLSH_OP_SEM_RELEASE, 0, {1});
    p.nop();
    p.pipeline(64, 1, [&] {
      p.op(MSCCLSH_OP_PUT, MSCCLSH_VIA_MEMORY, {}, {{r, kIn, 0}}, {{next, kScratch, 0}});
      p.nop();
      p.op(MSCCLSH_OP_SIGNAL, MSCCLSH_VIA_MEMORY, {to});
    });
    p.block(r);
    p.op(MSCCLSH_OP_SEM_ACQUIRE, 0, {1});
    if (n == 2) p.nop();
    p.pipeline(64, 1, [&] {
      p.op(MSCCLSH_OP_WAIT, MSCCLSH_VIA_MEMORY, {from});
      p.nop();
      p.op(MSCCLSH_OP_COPY, 0, {}, {{r, kScratch, 0}}, {{r, kOut, 0}});
    });
  }
  return p;
}

// tokens has three blocks of a rank that draw numbers at one semaphore and at one barrier, as
// often as a size has units: the second and the third take what the first gives, which has
// copied everything by then, and meet it, one after the other.
inline OneProgram tokens() {
  OneProgram p(1, 2, 2, 2);
  const int32_t given = 1, met = 2;
  p.n_semaphores = {3};
  p.semaphores = {1, 0, 0};
  p.block(0);
  p.op(MSCCLSH_OP_COPY, 0, {}, {{0, kIn, 0, 2}}, {{0, kScratch, 0, 2}});
  p.nop();
  const size_t first = p.ops.size();
  // Bodies stand behind all operations of the block.
  p.op(MSCCLSH_OP_PIPELINE);
  p.op(MSCCLSH_OP_PIPELINE);
  p.op(MSCCLSH_OP_SEM_RELEASE, 0, {met});
  p.op(MSCCLSH_OP_PIPELINE);
  p.open_pipeline = true;
  auto body = [&](size_t at, const std::function<void()> &f) {
    p.ops[at].unit_bytes = 64;
    p.ops[at].unit_chunks = 2;
    p.ops[at].body_start = int32_t(p.ops.size());
    f();
    p.ops[at].body_end = int32_t(p.ops.size());
  };
  body(first, [&] {
    p.op(MSCCLSH_OP_SEM_RELEASE, 0, {given});
    p.op(MSCCLSH_OP_SEM_RELEASE, 0, {given});
  });
  body(first + 1, [&] { p.op(MSCCLSH_OP_BARRIER, 0, {7}).parts = 2; });
  body(first + 3, [&] { p.op(MSCCLSH_OP_BARRIER, 0, {7}).parts = 2; });
  p.open_pipeline = false;
  for (int32_t part = 0; part < 2; part++) {
    p.block(0);
    const size_t at = p.ops.size();
    p.op(MSCCLSH_OP_PIPELINE);
    if (part == 1) p.op(MSCCLSH_OP_SEM_ACQUIRE, 0, {met});
    p.op(MSCCLSH_OP_PIPELINE);
    p.open_pipeline = true;
    body(at, [&] {
      p.op(MSCCLSH_OP_SEM_ACQUIRE, 0, {given});
      p.nop();
      mscclsh_op &x = p.op(MSCCLSH_OP_COPY, 0, {}, {{0, kScratch, 0, 2}}, {{0, kOut, 0, 2}});
      x.part = part;
      x.parts = 2;
    });
    body(at + 1 + size_t(part), [&] { p.op(MSCCLSH_OP_BARRIER, 0, {7}).parts = 2; });
    p.open_pipeline = false;
  }
  return p;
}

// lengthy is a rank's copy, chunk by chunk, in tables too long for shared memory, that two
// blocks hand on in a pipeline.
inline OneProgram lengthy() {
  const int32_t n = 400;
  OneProgram p(1, n, n, n);
  for (int32_t b = 0; b < 2; b++) {
    p.block(0);
    if (b == 1) {
      const size_t at = p.ops.size();
      p.op(MSCCLSH_OP_PIPELINE);
      for (int32_t i = 0; i < n; i++)
        p.op(MSCCLSH_OP_COPY, 0, {}, {{0, kScratch, i}}, {{0, kOut, i}});
      p.open_pipeline = true;
      p.ops[at].unit_bytes = 64;
      p.ops[at].unit_chunks = 1;
      p.ops[at].body_start = int32_t(p.ops.size());
      p.op(MSCCLSH_OP_SEM_ACQUIRE, 0, {1});
      p.nop();
      p.ops[at].body_end = int32_t(p.ops.size());
      p.open_pipeline = false;
      continue;
    }
    for (int32_t i = 0; i < n; i++) p.op(MSCCLSH_OP_COPY, 0, {}, {{0, kIn, i}}, {{0, kScratch, i}});
    p.nop();
    p.pipeline(64, 1, [&] { p.op(MSCCLSH_OP_SEM_RELEASE, 0, {1}); });
  }
  return p;
}

#endif
