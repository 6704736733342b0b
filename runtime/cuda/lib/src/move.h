// Moving one message: from memory, from a slot, or both, to memory, a slot, or both.
#ifndef MSCCLSH_MOVE_H
#define MSCCLSH_MOVE_H

#include "number.h"
#include "wait.h"

namespace mscclsh {

// kUnitBytes is what a unit of eight LL128 lines carries.
constexpr int64_t kUnitBytes = 960;

// Slot is where one message lies in a connection, or, with Direct, where it lies in the
// peer's memory.
struct Slot {
  unsigned char *at = nullptr;
  uint64_t flag = 0;
  uint32_t clean = 0;  // packets or lines to write at least
};

// Message is what a step does once: result = x, or x op y, into memory and a slot.
struct Message {
  unsigned char *x;    // null: the message received
  unsigned char *y;    // null: no reduction
  unsigned char *dst;  // null: not written to memory
  Slot in, out;        // at null where none is
  int64_t bytes;
};

// load_part and store_part are for words that are not aligned or not whole: element
// by element.
template <class Bits>
MSCCLSH_DEV uint64_t load_part(const unsigned char *p, int64_t bytes) {
  constexpr int kElems = 8 / sizeof(Bits);
  union {
    uint64_t word;
    Bits elems[kElems];
  } v;
  v.word = 0;
  MSCCLSH_UNROLL
  for (int i = 0; i < kElems; i++)
    if (int64_t(i * sizeof(Bits)) < bytes)
      v.elems[i] = *reinterpret_cast<const volatile Bits *>(p + i * sizeof(Bits));
  return v.word;
}

template <class Bits>
MSCCLSH_DEV void store_part(unsigned char *p, int64_t bytes, uint64_t word) {
  constexpr int kElems = 8 / sizeof(Bits);
  union {
    uint64_t word;
    Bits elems[kElems];
  } v;
  v.word = word;
  MSCCLSH_UNROLL
  for (int i = 0; i < kElems; i++)
    if (int64_t(i * sizeof(Bits)) < bytes)
      *reinterpret_cast<volatile Bits *>(p + i * sizeof(Bits)) = v.elems[i];
}

// Joined, in what follows, are further messages that are reduced into a result, in order,
// n_in of them, and n_out further slots that it is sent to.

// Words are elements T and a reduction kOp, several at a time.
template <class T, Op kOp>
struct Words {
  using Bits = typename T::Bits;
  Thread t;
  const Args &a;

  MSCCLSH_DEV static uintptr_t bits(const unsigned char *p) {
    return reinterpret_cast<uintptr_t>(p);
  }

  // aligned is how far a message's places in memory are: 16, 8, or 1 for less.
  MSCCLSH_DEV static int aligned(const Message &m) {
    const uintptr_t all = bits(m.x) | bits(m.y) | bits(m.dst);
    return (all & 15) == 0 ? 16 : (all & 7) == 0 ? 8 : 1;
  }

  // get and put are a word of which the range has left bytes more, aligned to align.
  MSCCLSH_DEV static uint64_t get(const unsigned char *p, int64_t left, int align) {
    return align >= 8 ? load8(p) : load_part<Bits>(p, left);
  }
  MSCCLSH_DEV static void put(unsigned char *p, int64_t left, int align, uint64_t v) {
    if (align >= 8)
      store8(p, v);
    else
      store_part<Bits>(p, left, v);
  }
  // get16 and put16 are the same for vectors of 16 bytes.
  MSCCLSH_DEV static Pair get16(const unsigned char *p, int64_t left, int align) {
    if (align >= 16) return load16(p);
    return Pair{get(p, left, align), get(p + 8, left - 8, align)};
  }
  MSCCLSH_DEV static void put16(unsigned char *p, int64_t left, int align, Pair v) {
    if (align >= 16) {
      store16(p, v);
    } else {
      put(p, left, align, v.a);
      put(p + 8, left - 8, align, v.b);
    }
  }
  MSCCLSH_DEV static Pair combine16(Pair x, Pair y) {
    return Pair{combine<T, kOp>(x.a, y.a), combine<T, kOp>(x.b, y.b)};
  }
};

}  // namespace mscclsh

#endif
