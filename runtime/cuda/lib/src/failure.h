// Errors on their way to the caller.
#ifndef MSCCLSH_FAILURE_H
#define MSCCLSH_FAILURE_H

#include <cstdint>
#include <stdexcept>
#include <string>

#include "mscclsh_cuda.h"

namespace mscclsh {

// Failure is what a call of the C interface returns, with its sentence.
class Failure : public std::runtime_error {
 public:
  Failure(int32_t code, const std::string &text) : std::runtime_error(text), code(code) {}
  const int32_t code;
};

// format is printf into a string.
std::string format(const char *f, ...) __attribute__((format(printf, 1, 2)));

[[noreturn]] inline void invalid(const std::string &text) { throw Failure(MSCCLSH_EINVAL, text); }
[[noreturn]] inline void refused(const std::string &text) { throw Failure(MSCCLSH_EREFUSED, text); }

}  // namespace mscclsh

#endif
