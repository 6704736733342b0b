// What the trampolines (trampoline.S) call when one is jumped to for the first time.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "real.h"

namespace {

const char *const names[] = {
#define T(index, name) #name,
#include "symbols.inc"
#undef T
};

ncclResult_t lacking() { return ncclInvalidUsage; }

// Functions whose result is a text must give one: who reports an error prints it.
const char *lacking_text() { return "there is no text for this: NCCL has no such function"; }

bool gives_text(const char *name) {
  return std::strstr(name, "GetErrorString") != nullptr ||
         std::strstr(name, "GetLastError") != nullptr;
}

}  // namespace

extern "C" {

extern std::atomic<void *> mscclsh_nccl_slots[] __attribute__((visibility("hidden")));

// mscclsh_nccl_look_up fills a function's slot, and returns what it put there. Two
// threads may do so at once, and find the same.
__attribute__((visibility("hidden"))) void *mscclsh_nccl_look_up(uint32_t index) {
  static_assert(sizeof(std::atomic<void *>) == 8, "a slot is a plain word");
  void *to = mscclsh::real_symbol(names[index]);
  const bool there = to != nullptr;
  if (!there)
    to = gives_text(names[index]) ? reinterpret_cast<void *>(lacking_text)
                                  : reinterpret_cast<void *>(lacking);
  if (mscclsh_nccl_slots[index].exchange(to) != to && !there) mscclsh::say_lacking(names[index]);
  return to;
}

}  // extern "C"
