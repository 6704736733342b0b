// What the entry points share. api_*.cpp define those of NCCL's functions that the library
// looks into; all others go to NCCL by trampolines.
#ifndef MSCCLSH_NCCL_API_H
#define MSCCLSH_NCCL_API_H

#include "group.h"
#include "options.h"
#include "real.h"

#define MSCCLSH_EXPORT extern "C" __attribute__((visibility("default")))

namespace mscclsh::nccl {

// passing says that a call goes to NCCL as it is: NCCL itself makes it, or the library is
// switched off.
inline bool passing() { return inside_real() || !options().on; }

// guarded runs f, whose exceptions must not reach the application.
template <class F>
ncclResult_t guarded(F f) try {
  return f();
} catch (const std::exception &e) {
  last_error() = e.what();
  return ncclSystemError;
}

}  // namespace mscclsh::nccl

#endif
