// What echo.cpp notes of the latest call.
#ifndef MSCCLSH_TEST_ECHO_H
#define MSCCLSH_TEST_ECHO_H

#include <cstddef>
#include <cstdint>

struct EchoId {
  unsigned char bytes[128];
};

struct EchoCall {
  int calls;
  uint64_t integers[11];
  double doubles[8];
  EchoId id;
};

#endif
